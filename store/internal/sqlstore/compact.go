package sqlstore

import (
	"context"
	"time"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// compactRows is the maximum number of rows in one step of Compact, so that other transactions
// can run in between.
const compactRows = 500

// Compact implements [store.Site].
func (s *Site) Compact(ctx context.Context, keep, horizon time.Duration) error {
	err := s.compact(ctx, keep, max(keep, horizon))
	if err == nil {
		err = s.store.shrink(ctx, s.lease, false)
	}
	return wrap("compact "+s.what, err)
}

func (s *Site) compact(ctx context.Context, keep, horizon time.Duration) error {
	if err := s.markDropped(ctx); err != nil {
		return err
	}
	type part struct {
		log
		dropping bool
	}
	var parts []part
	err := s.store.db.Reader(ctx).Rows(`SELECT log.id, coalesce(stage = 4, FALSE) FROM log LEFT JOIN publication ON publication.id = log.id WHERE log.site = ?`,
		[]any{s.id}, func(scan Scanner) error {
			p := part{log: log{store: s.store, site: s.id}}
			err := scan(&p.id, &p.dropping)
			parts = append(parts, p)
			return err
		})
	if err != nil {
		return err
	}
	for i := range parts {
		p := &parts[i]
		steps := []func(w *work) (more bool, err error){
			func(w *work) (bool, error) { return false, w.bound(keep, horizon) },
			(*work).strip, (*work).dropTags, (*work).dropSuperseded, (*work).dropGone, (*work).dropMoments,
		}
		if p.dropping {
			steps = []func(w *work) (more bool, err error){(*work).dropLog}
		}
		for _, step := range steps {
			for more := true; more; {
				err := p.change(ctx, s.lease, func(w *work) (err error) {
					more, err = step(w)
					return err
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// markDropped marks generations that were not used for [record.DropAfter], and forked generations
// that were not used for [record.DropForkedAfter], except the one that published last.
func (s *Site) markDropped(ctx context.Context) error {
	return s.store.change(ctx, Lock{LockSite, s.id}, s.lease, func(t Tx, now time.Time) error {
		return t.Exec(`UPDATE publication SET stage = 4 WHERE site = ?1 AND (opened < ?2 OR forked = TRUE AND opened < ?3 AND published <
			(SELECT max(published) FROM publication AS other WHERE other.site = ?1 AND other.name = publication.name))`,
			s.id, now.Add(-record.DropAfter).UnixMilli(), now.Add(-record.DropForkedAfter).UnixMilli())
	})
}

// dropLog deletes the next rows of a generation, and finally the generation itself.
func (w *work) dropLog() (more bool, err error) {
	n, err := w.Count(`DELETE FROM tag WHERE (log, protocol, url, seq) IN (SELECT log, protocol, url, seq FROM tag WHERE log = ? LIMIT ?)`, w.id, compactRows)
	if err != nil || n > 0 {
		return true, err
	}
	rows, err := w.dead("log = ?", w.id)
	for _, d := range rows {
		if err == nil {
			err = w.Exec("DELETE FROM entry WHERE id = ?", d.id)
		}
		if err == nil {
			err = w.dropBody(d.url, d.body)
		}
	}
	if err != nil || len(rows) > 0 {
		return true, err
	}
	for _, q := range []string{
		"DELETE FROM section WHERE log = ?", "DELETE FROM tagged WHERE log = ?", "DELETE FROM moment WHERE log = ?", "DELETE FROM published WHERE log = ?", "DELETE FROM publication WHERE id = ?", "DELETE FROM log WHERE id = ?",
	} {
		if err := w.Exec(q, w.id); err != nil {
			return false, err
		}
	}
	return false, nil
}

// bound raises the floor and the horizon of the log as far as views and cursors allow.
func (w *work) bound(keep, horizon time.Duration) error {
	since := w.now.Add(-keep)
	floor, err := w.seqAt(w, w.seq, since)
	if err != nil {
		return err
	}
	// The head of a publication may be older than its newest entry.
	var head int64
	err = w.Row("SELECT head FROM publication WHERE id = ?", []any{w.id}, &head)
	if err == nil {
		floor = max(0, min(floor, head))
	} else if !absent(err) {
		return err
	}
	// The views that were published after since may be in use, and so may the last view that was
	// published before.
	var first int64
	err = w.Row("SELECT coalesce(max(number), 0) FROM published WHERE log = ? AND time <= ?", []any{w.id, since.UnixMilli()}, &first)
	if err != nil {
		return err
	}
	var oldest *int64
	err = w.Row("SELECT min(seq) FROM published WHERE log = ? AND number >= ?", []any{w.id, first}, &oldest)
	if err != nil {
		return err
	}
	if oldest != nil {
		floor = min(floor, *oldest)
	}
	if err := w.Exec("DELETE FROM published WHERE log = ? AND number < ?", w.id, first); err != nil {
		return err
	}
	horizonSeq, err := w.seqAt(w, w.seq, w.now.Add(-horizon))
	if err != nil {
		return err
	}
	w.floor = max(w.floor, floor)
	w.logState.horizon = max(w.logState.horizon, min(horizonSeq, w.floor))
	return nil
}

// deadEntry is an entry whose content is no longer needed.
type deadEntry struct {
	id, body int64
	url      string
}

// dead reads the next entries whose content is no longer needed.
func (w *work) dead(where string, args ...any) (rows []deadEntry, err error) {
	err = w.Rows("SELECT id, body, url FROM entry WHERE "+where+" LIMIT ?", append(args, compactRows), func(scan Scanner) error {
		var d deadEntry
		err := scan(&d.id, &d.body, &d.url)
		rows = append(rows, d)
		return err
	})
	return rows, err
}

// strip drops the content of superseded entries. The log keeps their other columns.
func (w *work) strip() (more bool, err error) {
	rows, err := w.dead("log = ? AND until < 17179869183 AND until <= ? AND meta IS NOT NULL", w.id, w.floor)
	if err != nil {
		return false, err
	}
	for _, d := range rows {
		if err := w.Exec("UPDATE entry SET meta = NULL, body = 0 WHERE id = ?", d.id); err != nil {
			return false, err
		}
		if err := w.dropBody(d.url, d.body); err != nil {
			return false, err
		}
	}
	return len(rows) == compactRows, nil
}

// dropTags drops ended tags. The last published tag of a page is kept until it is before the horizon,
// because it records that the page was published and is gone.
func (w *work) dropTags() (more bool, err error) {
	n, err := w.Count(`DELETE FROM tag WHERE (log, protocol, url, seq) IN
		(SELECT log, protocol, url, seq FROM tag AS t WHERE log = ? AND until < 17179869183 AND until <= ? AND (named = FALSE OR until < ?
			OR EXISTS (SELECT 1 FROM tag WHERE log = t.log AND protocol = t.protocol AND url = t.url AND seq > t.seq)) LIMIT ?)`,
		w.id, w.floor, w.logState.horizon, compactRows)
	return n == compactRows, err
}

// dropSuperseded drops superseded entries from before the horizon.
func (w *work) dropSuperseded() (more bool, err error) {
	n, err := w.Count(`DELETE FROM entry WHERE id IN (SELECT id FROM entry
		WHERE log = ? AND until < 17179869183 AND until <= ? AND id < ? LIMIT ?)`,
		w.id, w.floor, w.entryID(w.logState.horizon), compactRows)
	return n == compactRows, err
}

// dropGone drops tombstones and configuration entries from before the horizon. The tombstones of a
// site are kept longer, so a page that returns gets a later date.
func (w *work) dropGone() (more bool, err error) {
	before := w.logState.horizon
	if w.id == w.site {
		seq, err := w.seqAt(w, w.seq, w.now.Add(-record.DropAfter))
		if err != nil {
			return false, err
		}
		before = min(before, seq)
	}
	n, err := w.Count(`DELETE FROM entry WHERE id IN (SELECT id FROM entry INDEXED BY entry_gone
		WHERE id > ? AND id < ? AND kind > 2 AND until = 17179869183 LIMIT ?)`,
		w.entryID(0), w.entryID(before), compactRows)
	return n == compactRows, err
}

// dropMoments drops the times of entries from before the horizon. Entries from before the horizon
// then have the time of the horizon.
func (w *work) dropMoments() (more bool, err error) {
	n, err := w.Count("DELETE FROM moment WHERE log = ? AND seq IN (SELECT seq FROM moment WHERE log = ? AND seq < ? LIMIT ?)",
		w.id, w.id, w.logState.horizon, compactRows)
	return n == compactRows, err
}

// shrink returns free space to the operating system.
func (s *Store) shrink(ctx context.Context, l store.Lease, rarely bool) error {
	return s.db.Shrink(ctx, rarely, func(f func(t Tx) error) error {
		return s.change(ctx, Lock{}, l, func(t Tx, _ time.Time) error { return f(t) })
	})
}
