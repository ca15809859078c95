package origintest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// size is the number of pages of a site. One page is less than a fifth of them, so package mirror
// deletes a missing page at once.
const size = 24

// from is the name of the source in the stores.
const from = "origin"

// words are the title and the text of a page.
type words struct{ title, text string }

// fixture is a site with known content, and the stores that contain copies of the site.
type fixture struct {
	*testing.T
	origin  Origin
	site    Site
	model   map[string]words      // current content of the site, by page name
	history map[string][]words    // all content that each page has ever had, by page name
	edits   int                   // number of pages that were written
	copies  map[string]store.Site // copies of the site, by name of the store
}

// newFixture returns a site of the usual size.
func newFixture(t *testing.T, o Origin) *fixture {
	f := &fixture{T: t, origin: o, site: o.New(t), copies: map[string]store.Site{}, model: map[string]words{}, history: map[string][]words{}}
	for i := range size {
		f.put(fmt.Sprintf("page-%02d", i))
	}
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// next returns words that no page has had before.
func (f *fixture) next(name string) words {
	f.edits++
	w := words{
		title: fmt.Sprintf("Entry %d on %s", f.edits, name),
		text: fmt.Sprintf("Note %d on %s says that the water came down to the wheel, and that %d sacks were ground before the evening.",
			f.edits, name, f.edits*7),
	}
	f.history[name] = append(f.history[name], w)
	return w
}

func (f *fixture) put(name string) {
	f.Helper()
	f.write(name, f.next(name))
}

func (f *fixture) write(name string, w words) {
	f.Helper()
	f.must(f.site.Put(name, w.title, w.text))
	f.model[name] = w
}

func (f *fixture) remove(name string) {
	f.Helper()
	f.must(f.site.Delete(name))
	delete(f.model, name)
}

// rename moves a page and its words to another name.
func (f *fixture) rename(name, to string) {
	f.Helper()
	w := f.model[name]
	f.history[to] = append(f.history[to], w)
	f.remove(name)
	f.write(to, w)
}

// alter changes the site in every supported way.
func (f *fixture) alter() {
	f.Helper()
	f.put("page-16")
	f.put("page-17")
	f.put("page-17-new")
	f.rename("page-18", "page-18-moved")
	f.remove("page-19")
}

// source opens the site.
func (f *fixture) source(knownRefs KnownRefs) millrace.Source {
	f.Helper()
	src, err := f.origin.Open(f.T, f.site.Address(), knownRefs)
	f.must(err)
	return src
}

// newStore creates a store, and returns its name.
func (f *fixture) newStore() string {
	f.Helper()
	st := memory.New(nil)
	f.Cleanup(func() { _ = st.Close() })
	site, err := st.Site(f.Context(), "site", f.site.Base())
	f.must(err)
	name := fmt.Sprintf("copy %d", len(f.copies)+1)
	f.copies[name] = site
	return name
}

// process contains the open source and the open store of one process.
type process struct {
	site store.Site
	src  millrace.Source
}

// knownRefs returns the refs in the store.
func (p *process) knownRefs(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error] {
	return p.site.KnownRefs(ctx, from, urls...)
}

// start opens the site as a new process.
func (f *fixture) start(path string) *process {
	f.Helper()
	p := &process{site: f.copies[path]}
	p.src = f.source(p.knownRefs)
	return p
}

// sync runs once over the site as a new process. It fails the test if the run fails.
func (f *fixture) sync(path string) *mirror.Report {
	f.Helper()
	p := f.start(path)
	ctx, cancel := context.WithTimeout(f.Context(), 3*stopTimeout)
	defer cancel()
	report, err := mirror.Sync(ctx, from, p.src, p.site, nil)
	if err != nil {
		f.Fatalf("run failed: %v", err)
	}
	return report
}

// state is the complete state of a site in a store.
type state struct {
	Pages     map[string]string // revisions by C-URL
	KnownRefs []millrace.Ref
	Cursor    millrace.Cursor
	Seq       uint64
}

// readStore returns the state of a store, and those of its pages that the suite has written, by
// name.
func (f *fixture) readStore(path string) (s state, pages map[string]*millrace.Page) {
	f.Helper()
	ctx := f.Context()
	p := &process{site: f.copies[path]}
	v, err := p.site.Head(ctx)
	f.must(err)
	s = state{Pages: map[string]string{}, Seq: v.Site().Seq}
	for page, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		f.must(err)
		s.Pages[page.URL] = revision(page)
	}
	for ref, err := range p.knownRefs(ctx) {
		f.must(err)
		s.KnownRefs = append(s.KnownRefs, ref)
	}
	s.Cursor, err = p.site.Cursor(ctx, from)
	f.must(err)
	pages = map[string]*millrace.Page{}
	for name := range f.history {
		page, err := v.Page(ctx, millrace.Ref{URL: f.site.URL(name)})
		if errors.Is(err, millrace.ErrNotFound) {
			continue
		}
		f.must(err)
		pages[name] = page
	}
	return s, pages
}

// revision returns a hash of a page's content. It ignores dates, because a store assigns
// increasing dates.
func revision(p *millrace.Page) string {
	c := p.Clone()
	c.Known &^= millrace.FieldModified
	return c.Revision()
}

// check fails the test unless the store equals a new copy of the site, and the new copy has the
// content of the site.
func (f *fixture) check(path, when string) {
	f.Helper()
	fresh := f.newStore()
	f.sync(fresh)
	want, pages := f.readStore(fresh)
	f.checkContent(pages, when+", in a new copy")
	got, _ := f.readStore(path)
	if diff := cmp.Diff(want.Pages, got.Pages); diff != "" {
		f.Fatalf("%s: the updated copy differs from a new one (-new +copy):\n%s", when, diff)
	}
}

// checkContent fails the test unless the pages have the content of the site.
func (f *fixture) checkContent(pages map[string]*millrace.Page, when string) {
	f.Helper()
	wrong := 0
	for name := range f.history {
		p := pages[name]
		switch w, exists := f.model[name]; {
		case exists && p == nil:
			f.Errorf("%s: %s (%s) is missing", when, name, f.site.URL(name))
		case exists && !w.isOn(p):
			f.Errorf("%s: %s has the title and text %q: %q, want %q: %q", when, name, p.Title, p.Text(), w.title, w.text)
		case !exists && p != nil:
			f.Errorf("%s: %s (%s) still exists", when, name, f.site.URL(name))
		default:
			continue
		}
		wrong++
	}
	if wrong > 0 {
		f.Fatalf("%s: %d wrong pages among %q", when, wrong, slices.Sorted(maps.Keys(pages)))
	}
}

// checkInvented fails the test if a page has content that it never had on the site.
func (f *fixture) checkInvented(pages map[string]*millrace.Page, when string) {
	f.Helper()
	for name, all := range f.history {
		p := pages[name]
		if p != nil && !slices.ContainsFunc(all, func(w words) bool { return w.isOn(p) }) {
			f.Errorf("%s: %s never had the title and text %q: %q", when, name, p.Title, p.Text())
		}
	}
}

// isOn reports whether a page has these words.
func (w words) isOn(p *millrace.Page) bool {
	return p.Title == w.title && strings.Contains(p.Text(), w.text)
}
