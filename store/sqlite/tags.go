package sqlite

import (
	"bytes"

	"github.com/millrace/millrace"
)

// longTag is the minimum size in bytes of a tag that is compressed.
const longTag = 128

// isCoded reports whether the stored value of a tag is a frame. No plain value
// begins like a frame.
func isCoded(value []byte) bool { return bytes.HasPrefix(value, []byte("\x28\xb5\x2f\xfd")) }

// learnTags prepares the compression of tags. The first transaction with many tags creates
// their dictionary.
func (w *work) learnTags(items []item) error {
	if err := w.store.tags.Begin(w.row); err != nil {
		return err
	}
	var long [][]byte
	for i := range items {
		for _, value := range items[i].tags {
			if len(value) > longTag {
				long = append(long, []byte(value))
			}
		}
	}
	return w.store.tags.Learn(w.row, long)
}

// encodeTag returns the stored form of a tag.
func (w *work) encodeTag(value string) []byte {
	if len(value) > longTag || isCoded([]byte(value)) {
		return w.store.tags.Encode(nil, []byte(value))
	}
	return []byte(value)
}

// decodeTag is the inverse of encodeTag. No rows may be open.
func (s *Store) decodeTag(q querier, stored []byte) (string, error) {
	if !isCoded(stored) {
		return string(stored), nil
	}
	value, err := s.decode(q, stored)
	return string(value), err
}

// tagRow is the newest tag of a page in a protocol.
type tagRow struct {
	seq, until, modified int64
	n                    int
	named                bool // an edition has shown this or an earlier tag of the page
	value                string
}

func (w *work) tagOf(proto, url string) (t tagRow, ok bool, err error) {
	var stored []byte
	err = w.row("SELECT seq, until, n, modified, named, value FROM tag WHERE log = ? AND protocol = ? AND url = ? ORDER BY seq DESC LIMIT 1",
		[]any{w.id, proto, url}, &t.seq, &t.until, &t.n, &t.modified, &t.named, &stored)
	if absent(err) {
		return t, false, nil
	}
	if err == nil {
		t.value, err = w.store.decodeTag(w, stored)
	}
	return t, err == nil && t.until == forever, err
}

// setTag sets the tag of a page from t.seq on; an empty value removes it. If the tag is
// unchanged, setTag writes nothing. It overwrites the tags that the running Refresh has
// written since t.seq, because no view has read them.
func (w *work) setTag(proto, url string, t tagRow) error {
	old, ok, err := w.tagOf(proto, url)
	switch {
	case err != nil:
		return err
	case !ok && t.value == "":
		return nil
	case ok && old.value == t.value && old.n == t.n && old.modified == t.modified:
		return nil
	case old.seq >= t.seq && t.value == "":
		w.tagged[proto]--
		return w.exec("DELETE FROM tag WHERE log = ? AND protocol = ? AND url = ? AND seq = ?", w.id, proto, url, old.seq)
	case old.seq >= t.seq:
		if !ok {
			w.tagged[proto]++
		}
		return w.exec("UPDATE tag SET until = 1099511627775, n = ?, modified = ?, value = ? WHERE log = ? AND protocol = ? AND url = ? AND seq = ?",
			t.n, t.modified, w.encodeTag(t.value), w.id, proto, url, old.seq)
	case ok:
		if err := w.endTag(proto, url, t.seq); err != nil || t.value == "" {
			return err
		}
		if old, _, err = w.tagOf(proto, url); err != nil {
			return err
		}
	}
	t.named = old.named
	return w.addTag(proto, url, t)
}

// addTag adds a tag to a page without a tag, unless the value is empty.
func (w *work) addTag(proto, url string, t tagRow) error {
	if t.value == "" {
		return nil
	}
	w.tagged[proto]++
	return w.exec("INSERT INTO tag (log, protocol, url, seq, until, n, modified, named, value) VALUES (?, ?, ?, ?, 1099511627775, ?, ?, ?, ?)",
		w.id, proto, url, t.seq, t.n, t.modified, t.named, w.encodeTag(t.value))
}

// endTag ends the tag of a page. The published view may have shown the tag. Publish marks it
// for later views.
func (w *work) endTag(proto, url string, seq int64) error {
	n, err := w.count(`UPDATE tag SET until = ?1, named = named OR seq <= coalesce((SELECT seq FROM published WHERE log = ?2 ORDER BY number DESC LIMIT 1), 0)
		WHERE log = ?2 AND protocol = ?3 AND url = ?4 AND until = 1099511627775`, seq, w.id, proto, url)
	w.tagged[proto] -= int(n)
	return err
}

// countTags adds to the numbers of pages with a tag. If complete is set, these become the
// numbers of the newest moment.
func (w *work) countTags(complete bool) error {
	for proto, n := range w.tagged {
		if n == 0 {
			continue
		}
		err := w.exec("INSERT INTO tagged (log, protocol, pages) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET pages = pages + excluded.pages", w.id, proto, n)
		if err != nil {
			return err
		}
	}
	if !complete {
		return nil
	}
	return w.exec(`UPDATE moment SET tags = (SELECT json_group_object(protocol, pages) FROM tagged WHERE log = ?1)
		WHERE log = ?1 AND seq = (SELECT max(seq) FROM moment WHERE log = ?1)`, w.id)
}

// ordinal returns the N of a page's tag.
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

// ripple updates the ordinals of tags that depend on the presence of an added or
// deleted page.
func (r *refresh) ripple(w *work, url string, seq int64) error {
	for _, t := range r.config.Taggers {
		if t.Rivals == nil {
			continue
		}
		_, after := t.Rivals(url)
		for _, a := range after {
			row, ok, err := w.tagOf(t.Protocol, a)
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
			if err := w.setTag(t.Protocol, a, row); err != nil {
				return err
			}
		}
	}
	return nil
}
