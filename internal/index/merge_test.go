package index

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

// segments returns the number of segments that a search reads.
func (f *fixture) segments() (n int) {
	f.Helper()
	err := f.index.read(f.Context(), func(c *conn) error {
		return c.row("SELECT count(DISTINCT segid) FROM words_idx", nil, &n)
	})
	if err != nil {
		f.Fatal(err)
	}
	return n
}

// TestSegments updates the index after each of many edits. The number of segments must remain
// small.
func TestSegments(t *testing.T) {
	f := newFixture(t)
	change := func(page, version int) millrace.Change {
		return put(prose(fmt.Sprintf("/p%03d", page), version, 300))
	}
	const pages, edits = 60, 40
	var all []millrace.Change
	for i := range pages {
		all = append(all, change(i, i))
	}
	f.apply(all...)
	f.update()
	if n := f.segments(); n != 1 {
		t.Errorf("%d segments after the first fill", n)
	}
	most := 0
	for i := range edits {
		f.apply(change(i%pages, pages+i))
		f.update()
		most = max(most, f.segments())
	}
	if most > 12 {
		t.Errorf("%d segments after edits", most)
	}
	err := f.index.change(t.Context(), func(w *work) error {
		_, err := w.exec("INSERT INTO words (words) VALUES ('integrity-check')")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Without merging, the first fill would need more segments than the 2,000 that FTS5 supports.
func TestFillSegments(t *testing.T) {
	testkit.Soak(t) // writes thousands of segments
	f := fixtureIn(t, t.TempDir(), Options{fillBytes: 1})
	const pages = 6500 // raise moves 4,000 of them to a higher level
	var all []millrace.Change
	for i := range pages {
		p := prose(fmt.Sprintf("/p%04d", i), i, 100)
		p.Blocks = p.Blocks[1:3]
		all = append(all, put(p))
	}
	f.apply(all...)
	f.update()
	if n := f.segments(); n != 1 {
		t.Errorf("%d segments after the first fill", n)
	}
}

// The file shrinks when pages are deleted.
func TestShrink(t *testing.T) {
	f := newFixture(t)
	const pages = 120
	var all, most []millrace.Change
	for i := range pages {
		p := prose(fmt.Sprintf("/p%03d", i), i, 1000)
		all = append(all, put(p))
		if i > 0 {
			most = append(most, gone(fmt.Sprintf("/p%03d", i)))
		}
	}
	size := func() (all, free int) {
		t.Helper()
		err := f.index.read(t.Context(), func(c *conn) error {
			return c.row("SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count", nil, &all, &free)
		})
		if err != nil {
			t.Fatal(err)
		}
		return all, free
	}
	f.apply(all...)
	f.update()
	full, free := size()
	if free > full/16 {
		t.Errorf("%d of %d pages are free after the first fill", free, full)
	}
	f.apply(most...)
	f.update()
	if left, free := size(); left > full/2 || free > left/16 {
		t.Errorf("%d pages, %d of them free, after most of %d were deleted", left, free, full)
	}

	// An index that was created without auto_vacuum still works.
	for _, q := range []string{"PRAGMA auto_vacuum = NONE", "VACUUM"} {
		if _, err := f.index.writer.exec(q); err != nil {
			t.Fatal(err)
		}
	}
	f.apply(all...)
	f.update()
	f.apply(most...)
	f.update()
	if left, free := size(); free < left/2 {
		t.Errorf("%d pages, %d of them free, without auto_vacuum", left, free)
	}
}
