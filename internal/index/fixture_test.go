package index

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashChild); dir != "" {
		fmt.Fprintln(os.Stderr, indexForever(dir))
		os.Exit(1)
	}
	testkit.Main(m)
}

const (
	base   = "https://example.com/"
	origin = "folder:/srv/site"
)

// fixture is a site in a store, with its index.
type fixture struct {
	testing.TB
	dir     string
	config  store.Config
	options Options
	store   store.Store
	site    store.Site
	pub     store.Publication // the searched publication
	index   *Index

	mu  sync.Mutex
	now time.Time
}

func newFixture(t testing.TB) *fixture {
	return fixtureIn(t, t.TempDir(), Options{})
}

func fixtureIn(t testing.TB, dir string, o Options) *fixture {
	f := &fixture{TB: t, dir: dir, options: o, config: store.Config{Base: base}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	f.open()
	t.Cleanup(f.close)
	return f
}

func (f *fixture) file() string { return filepath.Join(f.dir, "store.db") }

func (f *fixture) open() {
	f.Helper()
	var err error
	if f.store, err = stores.Open(f.Context(), f.file(), &store.Options{Now: f.clock}); err != nil {
		f.Fatal(err)
	}
	if f.site, err = f.store.Site(f.Context(), base, base); err != nil {
		f.Fatal(err)
	}
	if f.pub, err = f.site.Publication(f.Context(), f.config); err != nil {
		f.Fatal(err)
	}
	f.index = f.openIndex()
}

func (f *fixture) openIndex() *Index {
	f.Helper()
	x, err := Open(f.Context(), File(f.file(), base), &f.options)
	if err != nil {
		f.Fatal(err)
	}
	return x
}

func (f *fixture) close() {
	f.Helper()
	if err := f.index.Close(); err != nil {
		f.Error(err)
	}
	if err := f.store.Close(); err != nil {
		f.Error(err)
	}
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

// reopen closes the store and the index, calls repair, and opens them again. repair may be nil.
func (f *fixture) reopen(repair func()) {
	f.Helper()
	f.close()
	if repair != nil {
		repair()
	}
	f.open()
}

func (f *fixture) apply(batch ...millrace.Change) {
	f.Helper()
	if _, err := f.site.Apply(f.Context(), origin, batch); err != nil {
		f.Fatal(err)
	}
}

// puts adds pages with one text each.
func (f *fixture) puts(paths ...string) {
	f.Helper()
	var batch []millrace.Change
	for _, p := range paths {
		batch = append(batch, put(article(p, "Text of "+p)))
	}
	f.apply(batch...)
}

func (f *fixture) head() millrace.View {
	f.Helper()
	if _, err := f.pub.Refresh(f.Context(), store.Lease{}, 0, nil); err != nil {
		f.Fatal(err)
	}
	v, err := f.pub.Head(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return v
}

// update brings the index up to date with the site.
func (f *fixture) update() {
	f.Helper()
	if err := f.index.Update(f.Context(), f.head(), nil); err != nil {
		f.Fatalf("update: %v", err)
	}
}

func (f *fixture) fit() {
	f.Helper()
	if err := f.index.Fit(f.Context(), nil); err != nil {
		f.Fatalf("fit: %v", err)
	}
}

// search returns the paths of the pages found, the best first.
func (f *fixture) search(v millrace.View, text string) []string {
	f.Helper()
	pages := []string{}
	for _, h := range f.ask(v, millrace.Query{Text: text, Limit: 1000}).Hits {
		pages = append(pages, relative(h.URL))
	}
	return pages
}

func (f *fixture) ask(v millrace.View, q millrace.Query) *millrace.Found {
	f.Helper()
	found, err := f.index.Search(f.Context(), v, q)
	if err != nil {
		f.Fatalf("search %q: %v", q.Text, err)
	}
	for i, h := range found.Hits {
		if h.Relevance <= 0 || h.Relevance > 1 || i > 0 && h.Relevance > found.Hits[i-1].Relevance {
			f.Errorf("search %q: hit %d has relevance %v", q.Text, i, h.Relevance)
		}
		for _, m := range h.Marks {
			if m[0] < 0 || m[0] >= m[1] || m[1] > len(h.Snippet) {
				f.Errorf("search %q: hit %d marks %v of %q", q.Text, i, m, h.Snippet)
			}
		}
	}
	return found
}

// state returns the state of the index.
func (f *fixture) state() (s state) {
	f.Helper()
	err := f.index.read(f.Context(), func(c *conn) (err error) {
		s, err = c.state()
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// article returns a page with a title, a heading and a text.
func article(path, text string) *millrace.Page {
	return &millrace.Page{
		URL: base + strings.TrimPrefix(path, "/"), Title: "Title of " + path,
		Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Level: 2, Text: "Heading"}, {Type: millrace.TextBlock, Text: text}},
		Detail: millrace.DetailBlocks,
		Known:  millrace.FieldTitle | millrace.FieldContent | millrace.FieldAccess,
	}
}

// prose returns a page of random words, with one word that is unique to its number.
func prose(path string, number, words int) *millrace.Page {
	rng := rand.New(rand.NewPCG(uint64(number), 1))
	p := article(path, "")
	for n := 0; n < words; n += 60 {
		var text strings.Builder
		for range 60 {
			fmt.Fprintf(&text, "word%d ", int(rng.ExpFloat64()*200))
		}
		p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TextBlock, Text: text.String()})
	}
	p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TextBlock, Text: fmt.Sprintf("text%d", number)})
	return p
}

// put returns the change that adds a page.
func put(p *millrace.Page) millrace.Change {
	return millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p}
}

// gone returns the change that deletes a page.
func gone(path string) millrace.Change {
	return millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: base + strings.TrimPrefix(path, "/")}}
}

// relative returns the path of a URL.
func relative(url string) string { return "/" + strings.TrimPrefix(url, base) }

func want[T any](f *fixture, what string, got, want T) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// set returns a list of strings, which is never nil.
func set(s ...string) []string { return append([]string{}, s...) }
