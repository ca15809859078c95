package sqlstore

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
	site      int64 // ID of the site's log
	what      string
	names     record.Names
	docs      string
	epoch     string
	earlier   []millrace.Epoch
	protocols map[string]bool // protocols with tags
}

// logState is the row of a log.
type logState struct{ seq, time, floor, horizon int64 }

func (l *log) state(q Querier) (st logState, err error) {
	err = q.Row("SELECT seq, time, floor, horizon FROM log WHERE id = ?", []any{l.id}, &st.seq, &st.time, &st.floor, &st.horizon)
	if absent(err) {
		err = errDropped()
	}
	return st, err
}

func errDropped() error {
	return millrace.Coded("log-dropped", fmt.Errorf("%w: dropped after a long time without use; open it again", millrace.ErrConflict))
}

// entryID returns the entry.id of a sequence number.
func (l *log) entryID(seq int64) int64 { return l.id<<logBits | seq }

// work is a transaction on a log.
type work struct {
	Tx
	*log
	logState
	now      time.Time
	sections map[string]int // change in the number of pages, by section

	// Rows to write; see flushEntries.
	entries []*row
	ended   []int64         // alternately the entry.id of a superseded entry, and the seq of the page's next entry
	present map[string]bool // pages that the entries add or delete
	tagWork
}

// change runs f in a transaction, and writes the log's row if it has changed. If the lease has
// expired or has another holder, it returns an error.
func (l *log) change(ctx context.Context, lease store.Lease, f func(w *work) error) error {
	return l.store.change(ctx, Lock{LockSite, l.site}, lease, func(t Tx, now time.Time) error {
		old, err := l.state(t)
		if err != nil {
			return err
		}
		w := &work{Tx: t, log: l, logState: old, now: now, sections: make(map[string]int), present: make(map[string]bool)}
		if err := f(w); err != nil {
			return err
		}
		for name, n := range w.sections {
			if n == 0 {
				continue
			}
			err := w.Exec(`INSERT INTO section (log, name, pages) VALUES (?, ?, ?)
				ON CONFLICT (log, name) DO UPDATE SET pages = section.pages + excluded.pages`, l.id, name, n)
			if err != nil {
				return err
			}
		}
		if w.logState == old {
			return nil
		}
		return w.Exec("UPDATE log SET seq = ?, time = ?, floor = ?, horizon = ? WHERE id = ?", w.seq, w.time, w.floor, w.horizon, l.id)
	})
}

// mark makes the written entries visible. Their time is strictly later than the times of all
// earlier entries, even if the clock was set back.
func (w *work) mark() error {
	w.time = max(w.now.UnixMilli(), w.time+1)
	return w.Exec("INSERT INTO moment (log, seq, time) VALUES (?, ?, ?)", w.id, w.seq, w.time)
}

// Kinds of entries.
const (
	added = iota + 1
	updated
	deleted
	configured
)

// row is a stored entry.
type row struct {
	record.Entry
	seq, rank   int64
	prev, until int64 // set only in entries to write
	kind        int
	body        int64
	url         string
	pending     bool // not written yet
}

// currents returns the newest entries of pages without their blocks. For a page that has never
// existed, the entry has the sequence number 0.
func (l *log) currents(q Querier, urls []string) (map[string]*row, error) {
	all := make(map[string]*row, len(urls))
	for _, url := range urls {
		all[url] = &row{url: url}
	}
	return all, q.Rows(`SELECT url, id, kind, modified, body, section, revision, meta, hint, html_bytes, html_received FROM entry
		WHERE log = ? AND until = 17179869183 AND url = ANY(?)`, []any{l.id, urls}, func(scan Scanner) error {
		r := new(row)
		err := scan(&r.url, &r.seq, &r.kind, &r.Modified, &r.body, &r.Section, &r.Revision, &r.Meta, &r.Hint, &r.HTMLSize.Bytes, &r.HTMLSize.Received)
		r.seq &= forever
		r.Present = r.kind == added || r.kind == updated
		all[r.url] = r
		return err
	})
}

// loadPresent reads which pages are present.
func (w *work) loadPresent(urls []string) error {
	for _, url := range urls {
		w.present[url] = false
	}
	return w.Rows("SELECT url FROM entry WHERE log = ? AND until = 17179869183 AND kind < 3 AND url = ANY(?)", []any{w.id, urls}, func(scan Scanner) error {
		var url string
		err := scan(&url)
		w.present[url] = true
		return err
	})
}

// isPresent reports whether a page is present.
func (w *work) isPresent(url string) (bool, error) {
	if _, ok := w.present[url]; !ok {
		if err := w.loadPresent([]string{url}); err != nil {
			return false, err
		}
	}
	return w.present[url], nil
}

// enter appends the entry e of a page. old is the page's previous entry. enter sets the sequence
// number and the kind of e.
func (w *work) enter(old, e *row) error {
	w.seq++
	e.seq, e.prev, e.until, e.pending = w.seq, old.seq, forever, true
	if old.pending {
		old.until = w.seq
	} else if old.seq != 0 {
		w.ended = append(w.ended, w.entryID(old.seq), w.seq)
	}
	e.kind = updated
	switch {
	case !e.Present:
		e.kind = deleted
	case !old.Present:
		e.kind = added
	}
	if old.Present {
		w.sections[old.Section]--
	}
	if e.Present {
		w.sections[e.Section]++
	}
	w.entries, w.present[e.url] = append(w.entries, e), e.Present
	return nil
}

// flushEntries writes the entries.
func (w *work) flushEntries() error {
	args := make([]any, 0, 15*len(w.entries))
	for _, e := range w.entries {
		args = append(args, w.entryID(e.seq), w.id, e.kind, e.prev, e.until, e.Modified, e.Rank(), e.body, e.Section, e.url,
			e.Revision, e.Meta, e.Hint, e.HTMLSize.Bytes, e.HTMLSize.Received)
		e.pending = false
	}
	ended := w.ended
	w.entries, w.ended = nil, nil
	for ; len(ended) > 0; ended = ended[2:] {
		if err := w.Exec("UPDATE entry SET until = ? WHERE id = ?", ended[1], ended[0]); err != nil {
			return err
		}
	}
	return w.Insert("entry (id, log, kind, prev, until, modified, rank, body, section, url, revision, meta, hint, html_bytes, html_received)", "", 15, args)
}

// configure appends an entry without a page, which records a change of the configuration.
func (w *work) configure() error {
	w.seq++
	return w.Exec(`INSERT INTO entry (id, log, kind, prev, until, modified, rank, body, section, url)
		VALUES (?, ?, ?, 0, 17179869183, 0, 0, 0, '', '')`, w.entryID(w.seq), w.id, configured)
}

// dropBody deletes a body of a page if no entry uses it.
func (w *work) dropBody(url string, body int64) error {
	if body == 0 {
		return nil
	}
	return w.Exec(`DELETE FROM body WHERE id = ?1 AND NOT EXISTS
		(SELECT 1 FROM log CROSS JOIN entry WHERE entry.log = log.id AND log.site = ?2 AND entry.url = ?3 AND entry.body = ?1)`, body, w.site, url)
}
