// Package storetest is the contract of package store as a suite: every engine
// passes it.
package storetest

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Store is what the suite needs of an engine's store.
type Store interface {
	// Site opens the site of a name, or makes it.
	Site(ctx context.Context, name string, c store.Config) (store.Site, error)
	// State returns the small values that the store keeps.
	State() store.State
	// Keys returns the access keys.
	Keys() store.Keys
	// Costs returns what the mirrors have cost.
	Costs() store.Costs
	store.Usage
	// Close gives the store back.
	Close() error
}

// Engine says how to get stores. Only Open is required.
type Engine struct {
	// Open opens the store at a place, a new one if there is none yet. now is
	// its clock.
	Open func(t testing.TB, place string, now func() time.Time) Store
	// Place makes a place without a store: a path, a DSN. nil = a path in a
	// temporary folder.
	Place func(t testing.TB) string
	// Writes gives a number that moves with every row that the store writes.
	// nil = it cannot tell, and the cases about it are skipped.
	Writes func(t testing.TB, s Store) int64
}

// testCase is one sentence of the contract.
type testCase struct {
	name string
	run  func(t *testing.T, f *fixture)
}

// Run runs the suite, each case on a store of its own.
func Run(t *testing.T, e Engine) {
	cases := slices.Concat(applyCases(), mergeCases(), nameCases(), originalCases(), weightCases(), viewCases(), logCases(), tagCases(), deriveCases(), lifeCases(), stateCases(), keyCases(), costCases(), usageCases(), searchCases(), wordCases())
	for seed := range uint64(4) {
		cases = append(cases, randomCase(seed))
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.run(t, newFixture(t, e))
		})
	}
}

const (
	base   = "https://example.com/"
	origin = "folder:/srv/site" // where most changes come from
)

// fixture is a store with one site and a clock that stands still unless moved.
type fixture struct {
	*testing.T
	engine Engine
	place  string
	config store.Config
	store  Store
	site   store.Site

	mu  sync.Mutex
	now time.Time
}

func newFixture(t *testing.T, e Engine) *fixture {
	f := &fixture{T: t, engine: e, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	if e.Place != nil {
		f.place = e.Place(t)
	} else {
		f.place = filepath.Join(t.TempDir(), "store")
	}
	f.config = store.Config{Base: base}
	f.open()
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fixture) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func (f *fixture) open() {
	f.Helper()
	f.store = f.engine.Open(f.T, f.place, f.clock)
	f.site = f.another("main", f.config)
}

// reopen closes the store and opens it again, with another configuration if
// mend says so.
func (f *fixture) reopen(mend func(c *store.Config)) {
	f.Helper()
	if err := f.store.Close(); err != nil {
		f.Fatalf("close: %v", err)
	}
	if mend != nil {
		mend(&f.config)
	}
	f.open()
}

func (f *fixture) another(name string, c store.Config) store.Site {
	f.Helper()
	s, err := f.store.Site(f.Context(), name, c)
	if err != nil {
		f.Fatalf("site %s: %v", name, err)
	}
	return s
}

// article is a page that a source knows well.
func article(path, text string) *millrace.Page {
	return &millrace.Page{
		URL: base + strings.TrimPrefix(path, "/"), Title: "Title of " + path,
		Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Level: 2, Text: "Heading"}, {Type: millrace.TextBlock, Text: text}},
		Detail: millrace.DetailBlocks,
		Known:  millrace.FieldTitle | millrace.FieldContent | millrace.FieldAccess,
	}
}

// put is the change that brings a page.
func put(p *millrace.Page) millrace.Change {
	return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL, Version: p.Version}, Page: p}
}

// gone is the change that takes a page away.
func gone(path string) millrace.Change {
	return millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: base + strings.TrimPrefix(path, "/")}}
}

// apply applies changes that must be taken.
func (f *fixture) apply(batch ...millrace.Change) millrace.Tally {
	f.Helper()
	return f.from(origin, batch...)
}

func (f *fixture) from(from string, batch ...millrace.Change) millrace.Tally {
	f.Helper()
	tally, err := f.site.Apply(f.Context(), from, batch)
	if err != nil {
		f.Fatalf("apply: %v", err)
	}
	return tally
}

// puts applies pages of one text each.
func (f *fixture) puts(paths ...string) {
	f.Helper()
	var batch []millrace.Change
	for _, p := range paths {
		batch = append(batch, put(article(p, "Text of "+p)))
	}
	f.apply(batch...)
}

func (f *fixture) derive() {
	f.Helper()
	if err := f.site.Derive(f.Context(), nil); err != nil {
		f.Fatalf("derive: %v", err)
	}
}

func (f *fixture) head() millrace.View {
	f.Helper()
	v, err := f.site.Head(f.Context())
	if err != nil {
		f.Fatalf("head: %v", err)
	}
	return v
}

func (f *fixture) page(v millrace.View, path string) *millrace.Page {
	f.Helper()
	p, err := v.Page(f.Context(), millrace.Ref{URL: path})
	if err != nil {
		f.Fatalf("page %s: %v", path, err)
	}
	return p
}

// paths lists what a scan yields, as identities.
func (f *fixture) paths(v millrace.View, s millrace.Scan) []string {
	f.Helper()
	paths := []string{}
	for p, err := range v.Scan(f.Context(), s) {
		if err != nil {
			f.Fatalf("scan: %v", err)
		}
		paths = append(paths, relative(p.URL))
	}
	return paths
}

// held lists what is remembered of a source, as identity=version.
func (f *fixture) held(from string, urls ...string) []string {
	f.Helper()
	list := []string{}
	for r, err := range f.site.Held(f.Context(), from, urls...) {
		if err != nil {
			f.Fatalf("held: %v", err)
		}
		list = append(list, relative(r.URL)+"="+r.Version)
	}
	return list
}

// relative shortens the URLs of the suite.
func relative(url string) string {
	if rest, ok := strings.CutPrefix(url, base); ok {
		return "/" + rest
	}
	return url
}

// changes lists the changes of a view since a cursor: "+/a" new, "~/a" changed,
// "-/a" gone, "±/a" come and gone; and the cursor to go on from.
func (f *fixture) changes(v millrace.View, since millrace.Cursor) (list []string, next millrace.Cursor) {
	f.Helper()
	list = []string{}
	for c, err := range v.Changes(f.Context(), since) {
		if err != nil {
			f.Fatalf("changes since %q: %v", since, err)
		}
		switch {
		case next != "":
			f.Fatalf("a change after the mark: %+v", c)
		case c.Kind == millrace.Mark:
			next = c.Mark.Cursor
			if c.Mark.Whole != (since == "") {
				f.Errorf("since %q: mark.Whole = %v", since, c.Mark.Whole)
			}
		case c.Kind == millrace.Delete && c.New:
			list = append(list, "±"+relative(c.URL))
		case c.Kind == millrace.Delete:
			list = append(list, "-"+relative(c.URL))
		case c.New:
			list = append(list, "+"+relative(c.URL))
		default:
			list = append(list, "~"+relative(c.URL))
		}
	}
	if next == "" {
		f.Fatalf("changes since %q end without a mark", since)
	}
	return list, next
}

// want compares.
func want[T any](f *fixture, what string, got, want T) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// set is a list of strings; an empty one is not nil.
func set(s ...string) []string { return append([]string{}, s...) }
