package sqlite

import "context"

// FTS5 writes the words of each transaction as a segment, and has to look for
// a word in all segments. It would merge them in the midst of an edit, hundreds
// of pages at once. So it is told not to, and they are merged here, in
// transactions of their own.
const (
	// mergePages is how many pages of 4 kB one transaction merges.
	mergePages = 64
	// fillPages is the same while an index is filled.
	fillPages = 1000
	// crisisSegments of a level are merged by FTS5 all the same: when so many
	// pages have been published without a rest.
	crisisSegments = 64
	// fillBytes of words are gathered before they are written.
	fillBytes = 4 << 20
	// manySegments are merged by FTS5 while an index is filled, fillMerge of
	// about one size at a time: of more than 2,000 it says that the disk is full.
	manySegments = 500
	fillMerge    = 16
)

// tune tells FTS5 not to merge by itself.
func (w *work) tune(g *generation) error {
	for _, o := range []struct {
		name  string
		value int
	}{{"automerge", 0}, {"crisismerge", 1999}, {"hashsize", w.store.fillBytes}} {
		if err := w.setWords(g, o.name, o.value); err != nil {
			return err
		}
	}
	return nil
}

// raise has what fills a table of words end some levels above what edits it
// later. FTS5 merges four segments of a level whatever their size, so that a few
// edits would have all of the index written anew. Each merging of all segments
// ends two levels higher if they are not of one level: so it is done a few times
// while there is little, but more than any transaction brings, since FTS5 takes
// what is smaller down again. before is the number of passages when the
// transaction began.
func (w *work) raise(g *generation, before int64) error {
	const from, to = 4, 7 // transactions
	if n := g.next / indexPassages; n == before/indexPassages || n < from || n > to {
		return nil
	}
	if err := w.exec("INSERT INTO " + g.words() + " (" + g.words() + ") VALUES ('flush')"); err != nil {
		return err
	}
	_, err := w.mergeWords(g, -2*fillPages)
	return err
}

// thin has FTS5 merge as it writes once there are many segments. Without it,
// filling an index of a hundred thousand passages takes a quarter less time.
func (w *work) thin(g *generation) error {
	var segments int // the highest number; the lowest that is free is taken
	if err := w.row("SELECT coalesce(max(segid), 0) FROM "+g.words()+"_idx", nil, &segments); err != nil || segments < manySegments {
		return err
	}
	return w.setWords(g, "automerge", fillMerge)
}

// setWords sets an option of a table of words, or has it do something.
func (w *work) setWords(g *generation, name string, value int) error {
	return w.exec("INSERT INTO "+g.words()+" ("+g.words()+", rank) VALUES (?, ?)", name, value)
}

// mergeWords merges so many pages of words, if there are four segments of
// about one size; a negative number merges them into one. more: it has not
// come to an end.
func (w *work) mergeWords(g *generation, pages int) (more bool, err error) {
	var before, after int
	if err := w.row("SELECT total_changes()", nil, &before); err != nil {
		return false, err
	}
	if err := w.setWords(g, "merge", pages); err != nil {
		return false, err
	}
	err = w.row("SELECT total_changes()", nil, &after)
	return after-before >= 2, err
}

// mergeStep merges some of the words of a site's indexes that are past their
// filling.
func (w *work) mergeStep() (more bool, err error) {
	answers, made, err := w.generations(w)
	if err != nil {
		return false, err
	}
	for _, g := range []*generation{answers, made} {
		if g == nil || g.stage <= counting {
			continue
		}
		if more, err := w.mergeWords(g, mergePages); err != nil || more {
			return more, err
		}
	}
	return false, nil
}

// merge merges what there is to merge, in at most so many steps.
func (s *Site) merge(ctx context.Context, steps int) error {
	for range steps {
		more := false
		err := s.change(ctx, func(w *work) (err error) {
			more, err = w.mergeStep()
			return err
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}
