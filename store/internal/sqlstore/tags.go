package sqlstore

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/zdict"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// longTag is the length in bytes above which a tag is compressed.
const longTag = 128

// isCoded reports whether the stored value of a tag is a compressed frame. No plain value starts
// like a frame.
func isCoded(value []byte) bool { return bytes.HasPrefix(value, frameMagic) }

var frameMagic = []byte("\x28\xb5\x2f\xfd")

// tagWork is the part of a transaction that changes the tags of a publication.
type tagWork struct {
	tagged  map[string]int                // change in the number of tagged pages, by protocol
	tags    map[[2]string][]*tagRow       // loaded tags by protocol and path, oldest first
	newTags []*tagRow                     // tags to write
	encoder *zdict.Encoder                // compresses tags
	shown   func() (seq int64, err error) // sequence number of the newest edition
}

// tagRow is a tag of a page in a protocol.
type tagRow struct {
	protocol, url        string
	seq, until, modified int64
	n                    int
	named                bool // an edition has shown this or an earlier tag of the page
	value                string
	stored               []byte // value in its stored form. If nil, value is set.
	pending              bool   // not written yet
}

// beginTags prepares to write the tags of items, and reads the rows that this needs. The first
// transaction with many long tags creates the dictionary of tags.
func (w *work) beginTags(c *store.Config, items []item) (err error) {
	w.tagged, w.tags = make(map[string]int), make(map[[2]string][]*tagRow)
	w.shown = sync.OnceValues(func() (seq int64, err error) {
		return seq, w.Row("SELECT coalesce(max(seq), 0) FROM published WHERE log = ? AND number = (SELECT max(number) FROM published WHERE log = ?)", []any{w.id, w.id}, &seq)
	})
	if w.encoder, err = w.store.tags.Begin(w.Row); err != nil {
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
	if err := w.encoder.Learn(w.Row, long); err != nil {
		return err
	}
	var conflicts []string
	for _, t := range c.Taggers {
		var urls []string
		for i := range items {
			it := &items[i]
			if it.old.seq != 0 {
				urls = append(urls, it.new.url)
			}
			if t.Conflicts == nil {
				continue
			}
			before, after := t.Conflicts(it.new.url)
			conflicts = append(conflicts, before...)
			if it.out == record.Changed && it.new.Present != it.old.Present {
				urls = append(urls, after...)
			}
		}
		if err := w.loadTags(t.Protocol, urls); err != nil {
			return err
		}
	}
	return w.loadPresent(conflicts)
}

// loadTags reads the tags of pages in a protocol.
func (w *work) loadTags(proto string, urls []string) error {
	for _, url := range urls {
		w.tags[[2]string{proto, url}] = nil
	}
	slices.Sort(urls)
	err := w.Rows("SELECT url, seq, until, n, modified, named, value FROM tag WHERE log = ? AND protocol = ? AND url = ANY(?) ORDER BY seq",
		[]any{w.id, proto, slices.Compact(urls)}, func(scan Scanner) error {
			t := &tagRow{protocol: proto}
			err := scan(&t.url, &t.seq, &t.until, &t.n, &t.modified, &t.named, &t.stored)
			key := [2]string{proto, t.url}
			w.tags[key] = append(w.tags[key], t)
			return err
		})
	return err
}

// encodeTag returns the stored form of a tag.
func (w *work) encodeTag(value string) []byte {
	if len(value) > longTag || isCoded([]byte(value)) {
		return w.encoder.Encode(nil, []byte(value))
	}
	return []byte(value)
}

// decodeTag is the inverse of encodeTag. No rows may be open.
func (s *Store) decodeTag(q Querier, stored []byte) (string, error) {
	if !isCoded(stored) {
		return string(stored), nil
	}
	value, err := s.decode(q, stored)
	return string(value), err
}

// tagOf returns the newest tag of a page, or nil. ok reports whether the page has it now.
func (w *work) tagOf(proto, url string) (t *tagRow, ok bool, err error) {
	key := [2]string{proto, url}
	if _, loaded := w.tags[key]; !loaded {
		if err := w.loadTags(proto, []string{url}); err != nil {
			return nil, false, err
		}
	}
	all := w.tags[key]
	if len(all) == 0 {
		return nil, false, nil
	}
	t = all[len(all)-1]
	if t.stored != nil {
		t.value, err = w.store.decodeTag(w, t.stored)
		t.stored = nil
	}
	return t, err == nil && t.until == forever, err
}

// setTag sets the tag of a page from t.seq on; an empty value removes it. If the tag is
// unchanged, setTag writes nothing. It overwrites the tags that the running Refresh has
// written since t.seq, because no view has read them.
func (w *work) setTag(t *tagRow) error {
	old, ok, err := w.tagOf(t.protocol, t.url)
	switch {
	case err != nil:
		return err
	case !ok && t.value == "":
		return nil
	case ok && old.value == t.value && old.n == t.n && old.modified == t.modified:
		return nil
	case old != nil && old.seq >= t.seq && t.value == "":
		w.tagged[t.protocol]--
		key := [2]string{t.protocol, t.url}
		w.tags[key] = w.tags[key][:len(w.tags[key])-1]
		if old.pending {
			w.newTags = slices.DeleteFunc(w.newTags, func(n *tagRow) bool { return n == old })
			return nil
		}
		return w.Exec("DELETE FROM tag WHERE log = ? AND protocol = ? AND url = ? AND seq = ?", w.id, t.protocol, t.url, old.seq)
	case old != nil && old.seq >= t.seq:
		if !ok {
			w.tagged[t.protocol]++
		}
		if old.until, old.n, old.modified, old.value = forever, t.n, t.modified, t.value; old.pending {
			return nil
		}
		return w.Exec("UPDATE tag SET until = 17179869183, n = ?, modified = ?, value = ? WHERE log = ? AND protocol = ? AND url = ? AND seq = ?",
			t.n, t.modified, w.encodeTag(t.value), w.id, t.protocol, t.url, old.seq)
	case ok:
		if err := w.endTag(t.protocol, t.url, t.seq); err != nil || t.value == "" {
			return err
		}
	}
	t.named = old != nil && old.named
	w.addTag(t)
	return nil
}

// addTag adds a tag to a page without a tag, unless the value is empty.
func (w *work) addTag(t *tagRow) {
	if t.value == "" {
		return
	}
	w.tagged[t.protocol]++
	t.until, t.pending = forever, true
	key := [2]string{t.protocol, t.url}
	w.tags[key], w.newTags = append(w.tags[key], t), append(w.newTags, t)
}

// endTag ends the tag of a page. If the published view has shown the tag, endTag records this.
// Publish records it for later views.
func (w *work) endTag(proto, url string, seq int64) error {
	t, ok, err := w.tagOf(proto, url)
	if err != nil || !ok {
		return err
	}
	shown, err := w.shown()
	if err != nil {
		return err
	}
	w.tagged[proto]--
	if t.until, t.named = seq, t.named || t.seq <= shown; t.pending {
		return nil
	}
	return w.Exec("UPDATE tag SET until = ?, named = ? WHERE log = ? AND protocol = ? AND url = ? AND seq = ?", seq, t.named, w.id, proto, url, t.seq)
}

// flushTags writes the new tags.
func (w *work) flushTags() error {
	args := make([]any, 0, 9*len(w.newTags))
	for _, t := range w.newTags {
		args = append(args, w.id, t.protocol, t.url, t.seq, t.until, t.n, t.modified, t.named, w.encodeTag(t.value))
		t.pending = false
	}
	w.newTags = nil
	return w.Insert("tag (log, protocol, url, seq, until, n, modified, named, value)", "", 9, args)
}

// countTags adds the changes to the stored numbers of tagged pages. If complete is set, it also
// stores the resulting numbers with the newest moment.
func (w *work) countTags(complete bool) error {
	for proto, n := range w.tagged {
		if n == 0 {
			continue
		}
		err := w.Exec("INSERT INTO tagged (log, protocol, pages) VALUES (?, ?, ?) ON CONFLICT (log, protocol) DO UPDATE SET pages = tagged.pages + excluded.pages", w.id, proto, n)
		if err != nil {
			return err
		}
	}
	if !complete {
		return nil
	}
	tagged := make(map[string]int)
	err := w.Rows("SELECT protocol, pages FROM tagged WHERE log = ?", []any{w.id}, func(scan Scanner) error {
		var proto string
		var n int
		err := scan(&proto, &n)
		tagged[proto] = n
		return err
	})
	if err != nil {
		return err
	}
	b, err := json.Marshal(tagged)
	if err != nil {
		return err
	}
	return w.Exec("UPDATE moment SET tags = ? WHERE log = ? AND seq = (SELECT max(seq) FROM moment WHERE log = ?)", string(b), w.id, w.id)
}

// ordinal returns the number N of a page's tag.
func (w *work) ordinal(t millrace.Tagger, url string) (int, error) {
	if t.Conflicts == nil {
		return 1, nil
	}
	n := 1
	before, _ := t.Conflicts(url)
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

// updateRivals updates the tags whose ordinals depend on the presence of an added or deleted page.
func (r *refresh) updateRivals(w *work, url string, seq int64) error {
	for _, t := range r.config.Taggers {
		if t.Conflicts == nil {
			continue
		}
		_, after := t.Conflicts(url)
		for _, a := range after {
			old, ok, err := w.tagOf(t.Protocol, a)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			row := &tagRow{protocol: t.Protocol, url: a, seq: seq, modified: old.modified, value: old.value}
			if row.n, err = w.ordinal(t, a); err != nil {
				return err
			}
			if err := w.setTag(row); err != nil {
				return err
			}
		}
	}
	return nil
}
