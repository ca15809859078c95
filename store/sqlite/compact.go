package sqlite

import (
	"context"
	"time"
)

// compactRows bounds one step of Compact, so that others get their turn to
// write.
const compactRows = 500

// Compact implements [store.Site].
func (s *Site) Compact(ctx context.Context, keep, horizon time.Duration) error {
	for _, step := range []func(w *work) (more bool, err error){
		func(w *work) (bool, error) { return false, w.bound(keep, max(keep, horizon)) },
		(*work).strip, (*work).dropTags, (*work).dropForeignTags, (*work).dropSuperseded, (*work).dropGone,
		(*work).dropPassages, (*work).dropVectors, (*work).dropGenerations, (*work).mergeStep,
	} {
		for more := true; more; {
			err := s.change(ctx, func(w *work) (err error) {
				more, err = step(w)
				return err
			})
			if err != nil {
				return explain("compact site "+s.name, err)
			}
		}
	}
	return explain("compact site "+s.name, s.store.shrink(ctx))
}

// bound moves the floor and the horizon up to where no view and no cursor
// needs anything from before.
func (w *work) bound(keep, horizon time.Duration) error {
	since := w.now.Add(-keep)
	floor, err := w.seqAt(w, w.seq, since)
	if err != nil {
		return err
	}
	// Whoever asked for the published view may have been given any that was
	// the published one since then; the first of them was published before.
	var first int64
	err = w.row("SELECT coalesce(max(number), 0) FROM published WHERE site = ? AND time <= ?", []any{w.id, since.UnixMilli()}, &first)
	if err != nil {
		return err
	}
	var oldest *int64
	err = w.row("SELECT min(seq) FROM published WHERE site = ? AND number >= ?", []any{w.id, first}, &oldest)
	if err != nil {
		return err
	}
	if oldest != nil {
		floor = min(floor, *oldest)
	}
	if err := w.exec("DELETE FROM published WHERE site = ? AND number < ?", w.id, first); err != nil {
		return err
	}
	log, err := w.seqAt(w, w.seq, w.now.Add(-horizon))
	if err != nil {
		return err
	}
	w.floor = max(w.floor, floor)
	w.state.horizon = max(w.state.horizon, min(log, w.floor))
	return nil
}

// strip takes the content out of superseded entries; the log keeps the rest.
func (w *work) strip() (more bool, err error) {
	type dead struct {
		id, body int64
		url      string
	}
	var rows []dead
	err = w.rows(`SELECT id, body, url FROM entry WHERE site = ? AND until < 1099511627775 AND until <= ? AND meta IS NOT NULL LIMIT ?`,
		[]any{w.id, w.floor, compactRows}, func(scan scanner) error {
			var d dead
			err := scan(&d.id, &d.body, &d.url)
			rows = append(rows, d)
			return err
		})
	if err != nil {
		return false, err
	}
	for _, d := range rows {
		if err := w.exec("UPDATE entry SET meta = NULL, body = 0 WHERE id = ?", d.id); err != nil {
			return false, err
		}
		if err := w.dropBody(d.url, d.body); err != nil {
			return false, err
		}
	}
	return len(rows) == compactRows, nil
}

// dropTags drops tags that have ended. The last one of a page stays as long as
// the log, if it was published: it says that the page is gone.
func (w *work) dropTags() (more bool, err error) {
	n, err := w.count(`DELETE FROM tag WHERE (site, room, url, seq) IN
		(SELECT site, room, url, seq FROM tag AS t WHERE site = ? AND until < 1099511627775 AND until <= ? AND (named = 0 OR until < ?
			OR EXISTS (SELECT 1 FROM tag WHERE site = t.site AND room = t.room AND url = t.url AND seq > t.seq)) LIMIT ?)`,
		w.id, w.floor, w.state.horizon, compactRows)
	return n == compactRows, err
}

// dropForeignTags drops the tags of rooms that the site no longer publishes.
func (w *work) dropForeignTags() (more bool, err error) {
	if w.state.fingerprint != w.Site.fingerprint {
		return false, nil // another configuration is at work, and may know them
	}
	for _, room := range w.unpublished() {
		n, err := w.count(`DELETE FROM tag WHERE (site, room, url, seq) IN
			(SELECT site, room, url, seq FROM tag WHERE site = ? AND room = ? LIMIT ?)`, w.id, room, compactRows)
		if err != nil || n == compactRows {
			return true, err
		}
		w.forgetRoom(room)
	}
	return false, nil
}

// dropSuperseded drops superseded entries from before the horizon. Whatever the
// entry at the horizon is, it stays, since its time says how far the log reaches.
func (w *work) dropSuperseded() (more bool, err error) {
	n, err := w.count(`DELETE FROM entry WHERE id IN (SELECT id FROM entry
		WHERE site = ? AND until < 1099511627775 AND until <= ? AND id < ? LIMIT ?)`,
		w.id, w.floor, w.entryID(w.state.horizon), compactRows)
	return n == compactRows, err
}

// dropGone drops tombstones and configuration entries from before the horizon.
func (w *work) dropGone() (more bool, err error) {
	n, err := w.count(`DELETE FROM entry WHERE id IN (SELECT id FROM entry INDEXED BY entry_gone
		WHERE id > ? AND id < ? AND kind > 2 AND until = 1099511627775 LIMIT ?)`,
		w.entryID(0), w.entryID(w.state.horizon), compactRows)
	return n == compactRows, err
}

// shrink gives free pages back to the file system, a few at a time.
func (s *Store) shrink(ctx context.Context) error {
	for {
		var free int
		err := s.writer.do(ctx, func(t *tx) error {
			if err := t.row("PRAGMA freelist_count", nil, &free); err != nil || free == 0 {
				return err
			}
			return t.rows("PRAGMA incremental_vacuum(1000)", nil, func(scanner) error { return nil })
		})
		if err != nil || free <= 1000 {
			return err
		}
	}
}
