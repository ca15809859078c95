package sqlite

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/storetest"
)

// suited fits a Store to the suite.
type suited struct{ *Store }

func (s suited) Site(ctx context.Context, name string, c store.Config) (store.Site, error) {
	site, err := s.Store.Site(ctx, name, c)
	if err != nil {
		return nil, err
	}
	return site, nil
}

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Engine{
		Open: func(t testing.TB, place string, now func() time.Time) storetest.Store {
			t.Helper()
			s, err := Open(context.Background(), place, &Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			return suited{s}
		},
		Writes: func(t testing.TB, s storetest.Store) int64 {
			t.Helper()
			var n int64
			err := s.(suited).writer.do(context.Background(), func(t *tx) error {
				return t.row("SELECT total_changes()", nil, &n)
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		},
	})
}

// TestBodies counts the bodies: each content has one, whoever shows it, and
// none is left that nobody shows.
func TestBodies(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), &Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(ctx, "bodies", crashConfig)
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
		if err := s.read.row(ctx, "SELECT count(*) FROM body", nil, &n); err != nil || n != want {
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
	first := visible("one")
	apply(first, hidden())
	bodies("two pages", 2)
	again := first
	again.Page = first.Page.Clone()
	again.Page.Title = "two"
	apply(again)
	bodies("another title", 2)
	apply(hidden(), hidden())
	bodies("a hidden page is replaced", 2)
	apply(visible("three"))
	bodies("a visible page is replaced", 3)
	apply(millrace.Change{Kind: millrace.Delete, Ref: hidden().Ref})
	bodies("a hidden page is removed", 2)
	now = now.Add(time.Hour)
	if err := site.Compact(ctx, time.Minute, time.Minute); err != nil {
		t.Fatal(err)
	}
	bodies("compacted", 1)
	apply(millrace.Change{Kind: millrace.Delete, Ref: first.Ref})
	now = now.Add(time.Hour)
	if err := site.Compact(ctx, time.Minute, time.Minute); err != nil {
		t.Fatal(err)
	}
	bodies("everything removed", 0)
	// The one entry is that which the log reaches back to.
	for table, want := range map[string]int{"entry": 1, "tag": 0, "raw": 0, "memory": 0, "original": 0} {
		var n int
		if err := s.read.row(ctx, "SELECT count(*) FROM "+table, nil, &n); err != nil || n != want {
			t.Errorf("%s: %d rows are left (%v)", table, n, err)
		}
	}
}

// TestShrink looks whether the file gives back what compaction frees.
func TestShrink(t *testing.T) {
	ctx := t.Context()
	site := benchSite(t, filepath.Join(t.TempDir(), "x.db"))
	pages := func() (n int) {
		if err := site.store.read.row(ctx, "SELECT page_count FROM pragma_page_count", nil, &n); err != nil {
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
