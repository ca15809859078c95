package sqlite

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// tagRow is the newest tag of a page in a room.
type tagRow struct {
	seq, until, modified int64
	n                    int
	named                bool // an edition has shown it, or an earlier one of the page
	value                string
}

func (w *work) tagOf(room, url string) (t tagRow, ok bool, err error) {
	err = w.row("SELECT seq, until, n, modified, named, value FROM tag WHERE site = ? AND room = ? AND url = ? ORDER BY seq DESC LIMIT 1",
		[]any{w.id, room, url}, &t.seq, &t.until, &t.n, &t.modified, &t.named, &t.value)
	if absent(err) {
		return t, false, nil
	}
	return t, err == nil && t.until == forever, err
}

// setTag makes t the tag of a page from t.seq on; an empty value takes it
// away. It writes nothing if that is so already. What a Derive that is under
// way wrote since t.seq is overwritten: no view can have seen it.
func (w *work) setTag(room, url string, t tagRow) error {
	old, ok, err := w.tagOf(room, url)
	switch {
	case err != nil:
		return err
	case !ok && t.value == "":
		return nil
	case ok && old.value == t.value && old.n == t.n && old.modified == t.modified:
		return nil
	case old.seq >= t.seq && t.value == "":
		return w.exec("DELETE FROM tag WHERE site = ? AND room = ? AND url = ? AND seq = ?", w.id, room, url, old.seq)
	case old.seq >= t.seq:
		return w.exec("UPDATE tag SET until = 1099511627775, n = ?, modified = ?, value = ? WHERE site = ? AND room = ? AND url = ? AND seq = ?",
			t.n, t.modified, t.value, w.id, room, url, old.seq)
	case ok:
		if err := w.endTag(room, url, t.seq); err != nil || t.value == "" {
			return err
		}
		if old, _, err = w.tagOf(room, url); err != nil {
			return err
		}
	}
	if !strings.Contains(" "+w.state.rooms+" ", " "+room+" ") {
		w.state.rooms = strings.TrimSpace(w.state.rooms + " " + room)
	}
	return w.exec("INSERT INTO tag (site, room, url, seq, until, n, modified, named, value) VALUES (?, ?, ?, ?, 1099511627775, ?, ?, ?, ?)",
		w.id, room, url, t.seq, t.n, t.modified, old.named, t.value)
}

// endTag ends the tag of a page, which the published view has shown if it had
// begun by then. Publish notes it for views that are published later.
func (w *work) endTag(room, url string, seq int64) error {
	return w.exec(`UPDATE tag SET until = ?1, named = named OR seq <= coalesce((SELECT seq FROM published WHERE site = ?2 ORDER BY number DESC LIMIT 1), 0)
		WHERE site = ?2 AND room = ?3 AND url = ?4 AND until = 1099511627775`, seq, w.id, room, url)
}

// tag computes the tags of a page, given without its effective date, from the
// entry e on.
func (w *work) tag(v *millrace.Page, e entry, revision []byte) error {
	if len(w.config.Taggers) == 0 {
		return nil
	}
	p := *v
	p.URL = w.absolute(v.URL)
	p.Modified, p.Known = instant(e.modified), v.Known|millrace.FieldModified
	p.Version = hex.EncodeToString(revision)
	info := millrace.Site{Base: w.config.Base, Docs: w.config.Docs, Epoch: w.store.epoch}
	for _, t := range w.config.Taggers {
		value, err := t.Tag(info, &p)
		if err != nil {
			// The page is right, only this room has nothing to say of it.
			w.store.log.Warn("no tag for a page", "site", w.name, "room", t.Room, "url", p.URL, "err", err)
			value = ""
		}
		row := tagRow{seq: e.seq, modified: e.modified, value: value}
		if value != "" {
			if row.n, err = w.ordinal(t, v.URL); err != nil {
				return err
			}
		}
		if err := w.setTag(t.Room, v.URL, row); err != nil {
			return err
		}
	}
	return nil
}

// retag computes the tags of a page that is otherwise as it was. Only Derive
// has a reason to: then its entry stands for the change.
func (w *work) retag(v *millrace.Page, old entry) error {
	if !w.deriving {
		return nil
	}
	var revision []byte
	if err := w.row("SELECT revision FROM entry WHERE id = ?", []any{w.entryID(old.seq)}, &revision); err != nil {
		return err
	}
	old.seq = max(old.seq, w.start)
	return w.tag(v, old, revision)
}

// ordinal gives the N of a page's tag.
func (w *work) ordinal(t millrace.Tagger, url string) (int, error) {
	if t.Rivals == nil {
		return 1, nil
	}
	n := 1
	before, _ := t.Rivals(url)
	for _, b := range before {
		ok, err := w.isPresent(b)
		if err != nil {
			return 0, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

// ripple brings the N of the pages up to date whose names depend on the
// presence of one that has come or gone.
func (w *work) ripple(url string, seq int64) error {
	for _, t := range w.config.Taggers {
		if t.Rivals == nil {
			continue
		}
		_, after := t.Rivals(url)
		for _, a := range after {
			row, ok, err := w.tagOf(t.Room, a)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if row.n, err = w.ordinal(t, a); err != nil {
				return err
			}
			row.seq = seq
			if err := w.setTag(t.Room, a, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpublished gives the rooms that have tags but no tagger any more.
func (w *work) unpublished() []string {
	return slices.DeleteFunc(strings.Fields(w.state.rooms), func(room string) bool { return w.Site.rooms[room] })
}

// forgetRoom says that a room has no tags any more.
func (w *work) forgetRoom(room string) {
	rooms := slices.DeleteFunc(strings.Fields(w.state.rooms), func(r string) bool { return r == room })
	w.state.rooms = strings.Join(rooms, " ")
}
