package sqlite

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// TestBodies counts the bodies: each content has one, shared by all publications, and a body
// without a publication is deleted.
func TestBodies(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), &store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(ctx, "bodies", benchBase)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	apply := func(batch ...millrace.Change) {
		t.Helper()
		if _, err := site.Apply(ctx, "bench", batch); err != nil {
			t.Fatal(err)
		}
	}
	bodies := func(what string, want int) {
		t.Helper()
		var n int
		if err := s.db.read.row(ctx, "SELECT count(*) FROM body", nil, &n); err != nil || n != want {
			t.Errorf("%s: %d bodies, want %d (%v)", what, n, want, err)
		}
	}
	visible := func(title string) millrace.Change {
		c := changesOf(rng, "visible", 1, 500)[0]
		c.Page.Title = title
		return c
	}
	hidden := func() millrace.Change {
		c := changesOf(rng, "hidden", 1, 500)[0]
		c.Page.Access.NoIndex = true
		return c
	}
	pub := benchPublication(t, site)
	publish := func() {
		t.Helper()
		if _, err := pub.Refresh(ctx, store.Lease{}, 0, nil); err != nil {
			t.Fatal(err)
		}
		head, err := pub.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, old, _ := pub.Published(ctx)
		if _, err := pub.Publish(ctx, store.Lease{}, old.Number, head.Site().Seq, nil); err != nil {
			t.Fatal(err)
		}
	}
	compact := func() {
		t.Helper()
		now = now.Add(time.Hour)
		if err := site.Compact(ctx, time.Minute, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	first := visible("one")
	apply(first, hidden())
	publish()
	bodies("two pages", 2)
	again := first
	again.Page = first.Page.Clone()
	again.Page.Title = "two"
	apply(again)
	bodies("another title", 2)
	publish()
	bodies("another title, published", 2)
	apply(visible("three"))
	bodies("a page is replaced", 3)
	compact()
	bodies("an edition shows the page before", 3)
	publish()
	compact()
	compact()
	bodies("no view shows the page before", 2)
	apply(millrace.Change{Kind: millrace.Delete, Ref: first.Ref}, millrace.Change{Kind: millrace.Delete, Ref: hidden().Ref})
	publish()
	compact()
	compact()
	bodies("everything removed", 0)
	for table, want := range map[string]int{"memory": 0, "original": 0} {
		var n int
		if err := s.db.read.row(ctx, "SELECT count(*) FROM "+table, nil, &n); err != nil || n != want {
			t.Errorf("%s: %d rows are left (%v)", table, n, err)
		}
	}
}

// TestShrink checks that Compact returns free pages to the file system.
func TestShrink(t *testing.T) {
	ctx := t.Context()
	site := benchSite(t, filepath.Join(t.TempDir(), "x.db"))
	pages := func() (n int) {
		if err := site.store.db.read.row(ctx, "SELECT page_count FROM pragma_page_count", nil, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		if _, err := site.Apply(ctx, "bench", changesOf(rng, "a", 50, 4000)); err != nil {
			t.Fatal(err)
		}
	}
	before := pages()
	if err := site.Compact(ctx, 0, 0); err != nil {
		t.Fatal(err)
	}
	if after := pages(); after > before/4 {
		t.Errorf("from %d pages to %d", before, after)
	}
}
