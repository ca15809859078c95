package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

// segments counts the segments that the words of a site are looked up in.
func segments(t *testing.T, s *Site) (n int) {
	t.Helper()
	q := readQuerier{t.Context(), s.store.read}
	g, _, err := s.generations(q)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.row("SELECT count(DISTINCT segid) FROM "+g.words()+"_idx", nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestIndexSegments publishes edits, one page after another: the segments stay
// few, and every word is found.
func TestIndexSegments(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(ctx, "one", indexConfig)
	if err != nil {
		t.Fatal(err)
	}
	put := func(batch ...millrace.Change) {
		t.Helper()
		if _, err := site.Apply(ctx, "one", batch); err != nil {
			t.Fatal(err)
		}
	}
	change := func(page, version int) millrace.Change {
		p := indexPage(page, version)
		return millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p}
	}
	const pages, edits = 60, 40
	var all []millrace.Change
	for i := range pages {
		all = append(all, change(i, i))
	}
	put(all...)
	if err := site.Index(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if n := segments(t, site); n != 1 {
		t.Errorf("%d segments of an index that was filled", n)
	}
	if err := site.Publish(ctx, 0, pages, nil); err != nil {
		t.Fatal(err)
	}
	most := 0
	for i := range edits {
		put(change(i%pages, pages+i))
		if err := site.Publish(ctx, uint64(pages+i), uint64(pages+i+1), nil); err != nil {
			t.Fatal(err)
		}
		most = max(most, segments(t, site))
	}
	if most > 12 {
		t.Errorf("%d segments after edits", most)
	}
	if err := s.writer.do(ctx, func(x *tx) error {
		return x.exec("INSERT INTO words_1 (words_1) VALUES ('integrity-check')")
	}); err != nil {
		t.Error(err)
	}
}

// An index is filled with more segments than FTS5 has numbers for, 2,000, when
// nobody merges them.
func TestFillSegments(t *testing.T) {
	testkit.Soak(t) // writes thousands of segments
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), &Options{fillBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(t.Context(), "one", indexConfig)
	if err != nil {
		t.Fatal(err)
	}
	const pages = 6500 // 4,000 are raised above the others
	var all []millrace.Change
	for i := range pages {
		p := indexPage(i, i)
		p.Blocks = p.Blocks[:1]
		all = append(all, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
	}
	if _, err := site.Apply(t.Context(), "one", all); err != nil {
		t.Fatal(err)
	}
	if err := site.Index(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := segments(t, site); n != 1 {
		t.Errorf("%d segments of an index that was filled", n)
	}
}
