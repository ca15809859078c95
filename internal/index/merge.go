package index

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// FTS5 writes the words of each transaction as a segment, and looks for a word
// in all segments. By default it merges them during a write, hundreds of pages at
// once. Here it does not: they are merged in transactions of their own.
const (
	// mergePages is how many pages of 4 kB one transaction merges.
	mergePages = 64
	// fillPages is the same while an index is filled.
	fillPages = 1000
	// crisisSegments of a level are merged by FTS5 all the same: when so many
	// updates had no time to merge.
	crisisSegments = 64
	// manySegments are merged by FTS5 while an index is filled, fillMerge of
	// about one size at a time: of more than 2,000 it says that the disk is full.
	manySegments = 500
	fillMerge    = 16
)

// tune stops FTS5 from merging by itself.
func (c *conn) tune(fillBytes int) error {
	return errors.Join(c.set("automerge", 0), c.set("crisismerge", 1999), c.set("hashsize", fillBytes))
}

// raise has what fills the table of words end some levels above what edits it
// later. FTS5 merges four segments of a level whatever their size, so that a few
// edits would write the whole index again. Each merging of all segments ends two
// levels higher if they are not of one level: so it is done a few times while
// there is little, but more than any transaction brings, since FTS5 takes what is
// smaller down again. before is the next passage when the transaction began.
func (w *work) raise(before int64) error {
	const from, to = 4, 7 // transactions
	if n := w.next / indexPassages; n == before/indexPassages || n < from || n > to {
		return nil
	}
	if _, err := w.exec("INSERT INTO words (words) VALUES ('flush')"); err != nil {
		return err
	}
	_, err := w.mergeWords(-2 * fillPages)
	return err
}

// limitSegments has FTS5 merge as it writes once there are many segments. Without it,
// filling an index of a hundred thousand passages takes a quarter less time.
func (w *work) limitSegments() error {
	var segments int // the highest number; the lowest that is free is taken
	if err := w.row("SELECT coalesce(max(segid), 0) FROM words_idx", nil, &segments); err != nil || segments < manySegments {
		return err
	}
	return w.set("automerge", fillMerge)
}

// mergeWords merges so many pages of words, if there are four segments of
// about one size; a negative number merges them into one. more: it has not
// come to an end.
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

// merge merges what there is to merge, in at most so many transactions.
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

// shrinkPages is how many pages of 4 kB one transaction gives back.
const shrinkPages = 1000

// shrink gives free pages back to the file system once they are more than a
// sixteenth of the file. Fewer are there for the next merging. A file that was not
// made with auto_vacuum keeps its pages.
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
