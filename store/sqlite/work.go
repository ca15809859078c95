package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

// derivation moves when what is kept of an unchanged page does: a store that
// was written with another one is derived again.
const derivation = "1"

// fingerprint moves with everything that decides what the sources' pages look
// like in a view.
func fingerprint(c store.Config) string {
	type room struct {
		Room   string
		Format int
	}
	var rooms []room
	for _, t := range c.Taggers {
		rooms = append(rooms, room{t.Room, t.Format})
	}
	slices.SortFunc(rooms, func(a, b room) int { return strings.Compare(a.Room, b.Room) })
	b, err := json.Marshal([]any{derivation, c.Base, c.Docs, c.Visibility.Fingerprint(), rooms})
	if err != nil {
		panic("sqlite: strings do not encode: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// identity gives the identity of a URL, absolute or an identity already.
func (s *Site) identity(url string) string { return canon.Relative(s.config.Base, url) }

// absolute gives the URL of an identity.
func (s *Site) absolute(identity string) string { return canon.Absolute(s.config.Base, identity) }

// id gives the entry.id of a sequence number.
func (s *Site) entryID(seq int64) int64 { return s.id<<siteBits | seq }

// state is a site's row.
type state struct {
	seq, time           int64
	fingerprint, target string
	start               int64
	after               string
	done                int
	floor, horizon      int64
	rooms               string
}

const selectState = `SELECT seq, time, fingerprint, target, start, after, done, floor, horizon, rooms FROM site WHERE id = ?`

func (s *Site) state(q querier) (st state, err error) {
	err = q.row(selectState, []any{s.id}, &st.seq, &st.time, &st.fingerprint, &st.target, &st.start, &st.after, &st.done,
		&st.floor, &st.horizon, &st.rooms)
	return st, err
}

// work is a write transaction on one site.
type work struct {
	*tx
	*Site
	state
	now      time.Time      // UTC
	stamped  bool           // state.time is the time of this commit
	sections map[string]int // by how much the sections have grown
	deriving bool           // by Derive
}

// change runs f in a transaction and writes the site's row back if it moved.
func (s *Site) change(ctx context.Context, f func(w *work) error) error {
	return s.store.writer.do(ctx, func(t *tx) error {
		old, err := s.state(t)
		if err != nil {
			return err
		}
		w := &work{tx: t, Site: s, state: old, now: s.store.now().UTC(), sections: make(map[string]int)}
		if err := f(w); err != nil {
			return err
		}
		for name, n := range w.sections {
			if n == 0 {
				continue
			}
			err := w.exec(`INSERT INTO section (site, name, pages) VALUES (?, ?, ?)
				ON CONFLICT DO UPDATE SET pages = pages + excluded.pages`, s.id, name, n)
			if err != nil {
				return err
			}
		}
		if w.state == old {
			return nil
		}
		return w.exec(`UPDATE site SET seq = ?, time = ?, fingerprint = ?, target = ?, start = ?, after = ?, done = ?,
			floor = ?, horizon = ?, rooms = ? WHERE id = ?`,
			w.seq, w.time, w.state.fingerprint, w.target, w.start, w.after, w.done, w.floor, w.horizon, w.state.rooms, s.id)
	})
}

// stamp gives the time of this commit: strictly later than the last one's,
// whatever the clock does. All entries of a transaction share it.
func (w *work) stamp() int64 {
	if !w.stamped {
		w.time, w.stamped = max(w.now.UnixMilli(), w.time+1), true
	}
	return w.time
}

// The kinds of entries.
const (
	added = iota + 1
	updated
	deleted
	configured
)

// entry is one row of the log.
type entry struct {
	seq      int64
	kind     int
	modified int64
	body     int64
	section  string
	meta     []byte
}

// present reports whether the page is visible since this entry.
func (e *entry) present() bool { return e.kind == added || e.kind == updated }

// current gives the newest entry of a page, the zero one if there is none.
func (w *work) current(url string) (entry, error) {
	var e entry
	err := w.row(`SELECT id, kind, modified, body, section, meta FROM entry WHERE site = ? AND url = ? AND until = 1099511627775`,
		[]any{w.id, url}, &e.seq, &e.kind, &e.modified, &e.body, &e.section, &e.meta)
	if absent(err) {
		return entry{}, nil
	}
	e.seq &= forever
	return e, err
}

// isPresent reports whether a page is visible.
func (w *work) isPresent(url string) (bool, error) {
	var one int
	err := w.row(`SELECT 1 FROM entry WHERE site = ? AND url = ? AND until = 1099511627775 AND kind < 3`, []any{w.id, url}, &one)
	if absent(err) {
		return false, nil
	}
	return err == nil, err
}

// enter appends an entry of a page to the log, after old.
func (w *work) enter(url string, old entry, e entry, published time.Time, revision []byte) (seq int64, err error) {
	w.seq++
	if old.seq != 0 {
		if err := w.exec("UPDATE entry SET until = ? WHERE id = ?", w.seq, w.entryID(old.seq)); err != nil {
			return 0, err
		}
	}
	rank := int64(1) << 60 // undated: after everything
	if !published.IsZero() {
		rank = -published.Unix()
	}
	err = w.exec(`INSERT INTO entry (id, site, kind, time, prev, until, modified, rank, body, section, url, revision, meta)
		VALUES (?, ?, ?, ?, ?, 1099511627775, ?, ?, ?, ?, ?, ?, ?)`,
		w.entryID(w.seq), w.id, e.kind, w.stamp(), old.seq, e.modified, rank, e.body, e.section, url, revision, e.meta)
	if err != nil {
		return 0, err
	}
	if old.present() {
		w.sections[old.section]--
	}
	if e.present() {
		w.sections[e.section]++
	}
	return w.seq, nil
}

// configure appends the entry that says that the configuration is another one.
func (w *work) configure() error {
	w.seq++
	return w.exec(`INSERT INTO entry (id, site, kind, time, prev, until, modified, rank, body, section, url)
		VALUES (?, ?, ?, ?, 0, 1099511627775, 0, 0, 0, '', '')`, w.entryID(w.seq), w.id, configured, w.stamp())
}

// modifiedAt gives the date of a page that changes now: the source's if there
// is one, never in the future of the store's clock, always later than before.
func (w *work) modifiedAt(source time.Time, before int64) int64 {
	m := w.now.Unix()
	if !source.IsZero() {
		m = min(m, source.Unix())
	}
	if before != 0 {
		m = max(m, before+1)
	}
	return m
}

// show brings what is visible of a page in line with what the sources say of
// it. blocks and body are the stored forms of p.Blocks; moved says that a
// source has moved the page's date. It gives the kind of the entry that it
// wrote, 0 for none.
func (w *work) show(p *millrace.Page, blocks []byte, body int64, moved bool) (kind int, err error) {
	old, err := w.current(p.URL)
	if err != nil {
		return 0, err
	}
	v, ok := w.config.Visibility.Apply(p)
	if !ok {
		return w.hide(p.URL, old)
	}
	bare := *v // the date is beside the page, so that it does not make it differ
	bare.Modified, bare.Known = time.Time{}, v.Known&^millrace.FieldModified
	e := entry{kind: updated, body: body, section: v.Section, meta: encodeMeta(&bare)}
	e.modified = w.modifiedAt(p.Modified, old.modified)
	switch {
	case !old.present():
		e.kind = added
	case old.body == body && string(old.meta) == string(e.meta):
		// The content stands; a source may still have a later date.
		if !moved || !p.Known.Has(millrace.FieldModified) || min(p.Modified.Unix(), w.now.Unix()) <= old.modified {
			return 0, w.retag(v, old)
		}
		e.modified = min(p.Modified.Unix(), w.now.Unix())
	}
	revision := revisionOf(e.meta, blocks, e.modified)
	if e.seq, err = w.enter(p.URL, old, e, v.Published, revision); err != nil {
		return 0, err
	}
	if err := w.tag(v, e, revision); err != nil {
		return 0, err
	}
	if e.kind == added {
		err = w.ripple(p.URL, e.seq)
	}
	return e.kind, err
}

// hide makes a page invisible, if it is not already.
func (w *work) hide(url string, old entry) (kind int, err error) {
	if !old.present() {
		return 0, nil
	}
	e := entry{kind: deleted, modified: w.modifiedAt(time.Time{}, old.modified)}
	if e.seq, err = w.enter(url, old, e, time.Time{}, nil); err != nil {
		return 0, err
	}
	for room := range strings.FieldsSeq(w.state.rooms) {
		if err := w.endTag(room, url, e.seq); err != nil {
			return 0, err
		}
	}
	return deleted, w.ripple(url, e.seq)
}

// dropBody removes a body that neither layer refers to any more.
func (w *work) dropBody(url string, body int64) error {
	if body == 0 {
		return nil
	}
	return w.exec(`DELETE FROM body WHERE id = ?1
		AND NOT EXISTS (SELECT 1 FROM raw WHERE site = ?2 AND url = ?3 AND body = ?1)
		AND NOT EXISTS (SELECT 1 FROM entry WHERE site = ?2 AND url = ?3 AND body = ?1)`, body, w.id, url)
}
