package index

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// FTS5 writes the words of each transaction as a segment, and a search reads all segments.
// By default, FTS5 merges them during a write, hundreds of pages at once. Here it merges
// them in separate transactions.
const (
	// mergePages is the number of 4 kB pages that one transaction merges.
	mergePages = 64
	// fillPages is the same limit during the first fill.
	fillPages = 1000
	// crisisSegments is the number of segments on one level at which FTS5 merges during writes. It
	// is reached only if many updates ended before they could merge.
	crisisSegments = 64
	// manySegments is the number of segments at which FTS5 merges fillMerge segments of
	// similar size during the first fill. With more than 2,000 segments FTS5 reports a full
	// disk.
	manySegments = 500
	fillMerge    = 16
)

// tune disables automatic merging, and sets the size of FTS5's buffer for words.
func (c *conn) tune(fillBytes int) error {
	return errors.Join(c.set("automerge", 0), c.set("crisismerge", 1999), c.set("hashsize", fillBytes))
}

// raise moves the segments of the first fill a few levels up. FTS5 merges four segments of a level
// regardless of their size, so without raise, a few edits would rewrite the whole index. A merge
// of all segments results in a segment two levels higher if the segments are on different levels.
// Therefore raise merges while there is little data. It does so after several transactions,
// because FTS5 moves smaller segments down again. before is the id of the next passage when the
// transaction began.
func (w *work) raise(before int64) error {
	const from, to = 4, 7 // first and last transaction after which raise merges
	if n := w.next / indexPassages; n == before/indexPassages || n < from || n > to {
		return nil
	}
	if _, err := w.exec("INSERT INTO words (words) VALUES ('flush')"); err != nil {
		return err
	}
	_, err := w.mergeWords(-2 * fillPages)
	return err
}

// limitSegments enables merging during writes when there are many segments. Without merging below
// that number, filling an index of 100,000 passages takes a quarter less time.
func (w *work) limitSegments() error {
	var segments int // the highest segment number; FTS5 uses the lowest free one
	if err := w.row("SELECT coalesce(max(segid), 0) FROM words_idx", nil, &segments); err != nil || segments < manySegments {
		return err
	}
	return w.set("automerge", fillMerge)
}

// mergeWords merges up to the given number of pages, if there are four segments of similar
// size. With a negative number, it merges all segments into one, up to the absolute number of pages
// in a call. more reports whether work may remain.
func (c *conn) mergeWords(pages int) (more bool, err error) {
	var before, after int
	if err := c.row("SELECT total_changes()", nil, &before); err != nil {
		return false, err
	}
	if err := c.set("merge", pages); err != nil {
		return false, err
	}
	err = c.row("SELECT total_changes()", nil, &after)
	return after-before >= 2, err
}

// merge runs mergeWords in at most steps transactions.
func (x *Index) merge(ctx context.Context, steps int) error {
	for more := true; more && steps > 0; steps-- {
		err := x.change(ctx, func(w *work) (err error) {
			more, err = w.mergeWords(mergePages)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shrinkPages is the maximum number of 4 kB pages that one transaction frees.
const shrinkPages = 1000

// shrink returns free pages to the file system if they exceed a sixteenth of the file. Otherwise
// it keeps them for the next merge. A file without auto_vacuum keeps its pages.
func (x *Index) shrink(ctx context.Context) error {
	before := math.MaxInt
	for more := true; more; {
		err := x.change(ctx, func(w *work) error {
			var free, all int
			err := w.row("SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count", nil, &free, &all)
			if more = err == nil && free > all/16 && free < before; !more {
				return err
			}
			before = free
			return w.rows(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", shrinkPages), nil, func(scanner) error { return nil })
		})
		if err != nil {
			return err
		}
	}
	return nil
}
