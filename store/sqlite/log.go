package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// log is the log of a site or of one generation of a publication. Each entry is one state of
// one page. Views read entries by sequence number.
type log struct {
	store     *Store
	id        int64
	site      int64 // number of the site's log
	what      string
	names     record.Names
	docs      string
	epoch     string
	earlier   []millrace.Epoch
	protocols map[string]bool // protocols with tags
}

// logState is the row of a log.
type logState struct{ seq, time, floor, horizon int64 }

func (l *log) state(q querier) (st logState, err error) {
	err = q.row("SELECT seq, time, floor, horizon FROM log WHERE id = ?", []any{l.id}, &st.seq, &st.time, &st.floor, &st.horizon)
	if absent(err) {
		err = millrace.Coded("log-dropped", fmt.Errorf("%w: dropped after a long time without use; open it again", millrace.ErrConflict))
	}
	return st, err
}

// entryID returns the entry.id of a sequence number.
func (l *log) entryID(seq int64) int64 { return l.id<<logBits | seq }

// work is a transaction on a log.
type work struct {
	*tx
	*log
	logState
	now      time.Time
	sections map[string]int // growth in pages, by section
	tagged   map[string]int // growth in tagged pages, by protocol
}

// change runs f in a transaction. If the lease has expired or has another holder, it returns
// ErrConflict. The zero Lease is not checked.
func (s *Store) change(ctx context.Context, l store.Lease, f func(t *tx, now time.Time) error) error {
	return s.writer.do(ctx, func(t *tx) error {
		now := s.now().UTC()
		if l != (store.Lease{}) {
			var value []byte
			if err := t.row(stateValue, []any{record.LeaseNamespace, l.Name}, &value); err != nil && !absent(err) {
				return err
			}
			if err := record.CheckLease(l, value, now); err != nil {
				return err
			}
		}
		return f(t, now)
	})
}

// change runs f in a transaction, and writes the log's row if it has changed. If the lease has
// expired or has another holder, it returns an error.
func (l *log) change(ctx context.Context, lease store.Lease, f func(w *work) error) error {
	return l.store.change(ctx, lease, func(t *tx, now time.Time) error {
		old, err := l.state(t)
		if err != nil {
			return err
		}
		w := &work{tx: t, log: l, logState: old, now: now, sections: make(map[string]int), tagged: make(map[string]int)}
		if err := f(w); err != nil {
			return err
		}
		for name, n := range w.sections {
			if n == 0 {
				continue
			}
			err := w.exec(`INSERT INTO section (log, name, pages) VALUES (?, ?, ?)
				ON CONFLICT DO UPDATE SET pages = pages + excluded.pages`, l.id, name, n)
			if err != nil {
				return err
			}
		}
		if w.logState == old {
			return nil
		}
		return w.exec("UPDATE log SET seq = ?, time = ?, floor = ?, horizon = ? WHERE id = ?", w.seq, w.time, w.floor, w.horizon, l.id)
	})
}

// mark makes the written entries visible. Their time is strictly later than the times of all
// earlier entries, even if the clock was set back.
func (w *work) mark() error {
	w.time = max(w.now.UnixMilli(), w.time+1)
	return w.exec("INSERT INTO moment (log, seq, time) VALUES (?, ?, ?)", w.id, w.seq, w.time)
}

// The kinds of entries.
const (
	added = iota + 1
	updated
	deleted
	configured
)

// row is a stored entry.
type row struct {
	record.Entry
	seq, rank int64
	kind      int
	body      int64
	url       string
}

// current returns the newest entry of a page without its blocks, or the zero row if the page
// has never existed.
func (l *log) current(q querier, url string) (r row, err error) {
	err = q.row(`SELECT id, kind, modified, body, section, revision, meta, hint, html_bytes, html_received FROM entry
		WHERE log = ? AND url = ? AND until = 1099511627775`, []any{l.id, url},
		&r.seq, &r.kind, &r.Modified, &r.body, &r.Section, &r.Revision, &r.Meta, &r.Hint, &r.HTMLSize.Bytes, &r.HTMLSize.Received)
	if absent(err) {
		return row{}, nil
	}
	r.seq, r.url = r.seq&forever, url
	r.Present = r.kind == added || r.kind == updated
	return r, err
}

// isPresent reports whether a page is present.
func (w *work) isPresent(url string) (bool, error) {
	var one int
	err := w.row(`SELECT 1 FROM entry WHERE log = ? AND url = ? AND until = 1099511627775 AND kind < 3`, []any{w.id, url}, &one)
	if absent(err) {
		return false, nil
	}
	return err == nil, err
}

// enter appends an entry of a page after old. It sets the entry's number and kind.
func (w *work) enter(url string, old row, e *row) error {
	w.seq++
	e.seq = w.seq
	if old.seq != 0 {
		if err := w.exec("UPDATE entry SET until = ? WHERE id = ?", w.seq, w.entryID(old.seq)); err != nil {
			return err
		}
	}
	e.kind = updated
	switch {
	case !e.Present:
		e.kind = deleted
	case !old.Present:
		e.kind = added
	}
	err := w.exec(`INSERT INTO entry (id, log, kind, prev, until, modified, rank, body, section, url, revision, meta, hint, html_bytes, html_received)
		VALUES (?, ?, ?, ?, 1099511627775, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.entryID(w.seq), w.id, e.kind, old.seq, e.Modified, e.Rank(), e.body, e.Section, url, e.Revision, e.Meta, e.Hint, e.HTMLSize.Bytes, e.HTMLSize.Received)
	if err != nil {
		return err
	}
	if old.Present {
		w.sections[old.Section]--
	}
	if e.Present {
		w.sections[e.Section]++
	}
	return nil
}

// configure appends an entry without a page, which records that the configuration has changed.
func (w *work) configure() error {
	w.seq++
	return w.exec(`INSERT INTO entry (id, log, kind, prev, until, modified, rank, body, section, url)
		VALUES (?, ?, ?, 0, 1099511627775, 0, 0, 0, '', '')`, w.entryID(w.seq), w.id, configured)
}

// dropBody deletes a body that no entry uses.
func (w *work) dropBody(url string, body int64) error {
	if body == 0 {
		return nil
	}
	return w.exec(`DELETE FROM body WHERE id = ?1 AND NOT EXISTS
		(SELECT 1 FROM log CROSS JOIN entry ON entry.log = log.id WHERE log.site = ?2 AND entry.url = ?3 AND entry.body = ?1)`, body, w.site, url)
}
