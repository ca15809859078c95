// Package storetest is the test suite of the contract of package store. Every engine must
// pass it.
package storetest

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Engine describes an engine. Only Open is required.
type Engine struct {
	// Open opens the store at a location, or creates it. now is the clock of the store.
	Open func(t testing.TB, location string, now func() time.Time) store.Store
	// Location returns a location without a store: a path or a DSN. If nil, the suite uses a path in
	// a temporary folder.
	Location func(t testing.TB) string
	// Durable means that a closed store can be opened again.
	Durable bool
	// Writes returns the number of rows that the store has written. If nil, the suite skips
	// the test cases that need it.
	Writes func(t testing.TB, s store.Store) int64
}

// testCase is a test of one sentence of the contract.
type testCase struct {
	name string
	run  func(t *testing.T, f *fixture)
}

// Run runs the suite with a new store for each test case.
func Run(t *testing.T, e Engine) {
	parts := []struct {
		name  string
		cases []testCase
	}{
		{"site", slices.Concat(siteCases(), applyCases(), mergeCases(), nameCases(), originalCases(), weightCases())},
		{"view", slices.Concat(both(viewCases()), both(logCases()))},
		{"publication", slices.Concat(publicationCases(), refreshCases(), partCases(), editionCases(), tagCases())},
		{"generation", slices.Concat(generationCases(), dropCases())},
		{"life", lifeCases()},
		{"state", stateCases()},
		{"lease", leaseCases()},
		{"key", keyCases()},
		{"cost", costCases()},
		{"random", slices.Concat(randomCases(), generationModelCases())},
		{"usage", usageCases()},
		{"fleet", fleetCases()},
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			for _, c := range part.cases {
				t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
					t.Parallel()
					c.run(t, newFixture(t, e))
				})
			}
		})
	}
}

const (
	base      = "https://example.com/"
	localBase = "http://localhost:8080/" // base of a second publication
	siteName  = base
	origin    = "folder:/srv/site" // default source of changes
)

// fixture is a store with one site, one publication and a stopped clock.
type fixture struct {
	*testing.T
	engine   Engine
	location string
	name     string       // name of the site
	config   store.Config // configuration of pub
	store    store.Store
	usage    store.Usage // the Usage of store
	site     store.Site
	pub      store.Publication
	ofSite   bool // head returns the view of the site, not of pub

	mu  sync.Mutex
	now time.Time
}

func newFixture(t *testing.T, e Engine) *fixture {
	f := &fixture{T: t, engine: e, name: siteName, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	f.setPlace()
	f.config = store.Config{Base: base}
	f.open()
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

func (f *fixture) setPlace() {
	if f.engine.Location != nil {
		f.location = f.engine.Location(f.T)
	} else {
		f.location = filepath.Join(f.TempDir(), "store")
	}
}

// both returns the cases about views twice: for views of a publication, and for views of its
// site.
func both(cases []testCase) []testCase {
	all := slices.Clone(cases)
	for _, c := range cases {
		all = append(all, testCase{c.name + " (site)", func(t *testing.T, f *fixture) {
			f.ofSite = true
			c.run(t, f)
		}})
	}
	return all
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

// open opens the store, the site and the publication. The store may already be open.
func (f *fixture) open() {
	f.Helper()
	if f.store == nil {
		f.store = f.engine.Open(f.T, f.location, f.clock)
		f.usage = f.store.Usage()
	}
	f.site = f.openSite(f.name, base)
	f.pub = f.publication(f.config)
}

// reopen opens the site and the publication again. If the engine is durable, reopen also opens
// the store again.
func (f *fixture) reopen() {
	f.Helper()
	if f.engine.Durable {
		if err := f.store.Close(); err != nil {
			f.Fatalf("close: %v", err)
		}
		f.store = nil
	}
	f.open()
}

// configure opens the publication with another configuration.
func (f *fixture) configure(change func(c *store.Config)) {
	f.Helper()
	change(&f.config)
	f.pub = f.publication(f.config)
}

// taggers opens the publication with other taggers.
func (f *fixture) taggers(taggers ...millrace.Tagger) {
	f.Helper()
	f.configure(func(c *store.Config) { c.Taggers = taggers })
}

func (f *fixture) openSite(name, base string) store.Site {
	f.Helper()
	s, err := f.store.Site(f.Context(), name, base)
	if err != nil {
		f.Fatalf("site %s: %v", name, err)
	}
	return s
}

func (f *fixture) publication(c store.Config) store.Publication {
	f.Helper()
	p, err := f.site.Publication(f.Context(), c)
	if err != nil {
		f.Fatalf("publication: %v", err)
	}
	return p
}

// head returns the newest view of the site or of the publication. It refreshes the publication
// first.
func (f *fixture) head() millrace.View {
	f.Helper()
	if f.ofSite {
		return f.siteHead()
	}
	return f.refresh(f.pub)
}

func (f *fixture) siteHead() millrace.View {
	f.Helper()
	v, err := f.site.Head(f.Context())
	if err != nil {
		f.Fatalf("head of the site: %v", err)
	}
	return v
}

// refresh refreshes a publication and returns its head.
func (f *fixture) refresh(p store.Publication) millrace.View {
	f.Helper()
	if _, err := p.Refresh(f.Context(), store.Lease{}, 0, nil); err != nil {
		f.Fatalf("refresh: %v", err)
	}
	return f.headOf(p)
}

func (f *fixture) headOf(p store.Publication) millrace.View {
	f.Helper()
	v, err := p.Head(f.Context())
	if err != nil {
		f.Fatalf("head: %v", err)
	}
	return v
}

func (f *fixture) compact(keep, horizon time.Duration) {
	f.Helper()
	if err := f.site.Compact(f.Context(), keep, horizon); err != nil {
		f.Fatalf("compact: %v", err)
	}
}
