package index

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
)

// storedPassage is an indexed passage of a page.
type storedPassage struct{ id, hash, ord, length int64 }

// take updates the index with a page. Unchanged passages keep their rows, so the cost
// depends on what has changed.
func (u *update) take(ctx context.Context, w *work, it *item) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("page %s: %w", it.url, err)
		}
	}()
	u.taken++
	if w.stage != following {
		if err := u.removeBetween(w, w.after, it.url); err != nil {
			return err
		}
		w.after, w.done = it.url, w.done+1
	}
	var page int64
	var title, language, version string
	err = w.row("SELECT id, title, language, version FROM page WHERE url = ?", []any{it.url}, &page, &title, &language, &version)
	switch {
	case err != nil && !absent(err):
		return err
	case err == nil && it.version != "" && it.version == version:
		return nil
	case it.page == nil && !it.gone:
		if it.page, err = u.view.Page(ctx, millrace.Ref{URL: it.url}); errors.Is(err, millrace.ErrNotFound) {
			it.gone = true
		} else if err != nil {
			return err
		}
	}
	if it.gone {
		return u.remove(w, page)
	}
	if it.list == nil {
		it.cut()
	}
	before, err := w.passagesOf(page)
	if err != nil {
		return err
	}
	keep, same := make([]bool, len(it.list)), len(it.list) == len(before)
	for i := range it.list {
		l := &it.list[i]
		old, ok := before[l.ID]
		if keep[i] = ok && old.hash == l.hash; !keep[i] {
			same = false
			continue
		}
		delete(before, l.ID)
		if old.ord != int64(i) {
			same = false
			if _, err := w.exec("UPDATE passage SET ord = ? WHERE id = ?", i, old.id); err != nil {
				return err
			}
		}
	}
	if err := u.drop(w, page, before); err != nil { // drop needs the old title
		return err
	}
	switch {
	case len(it.list) == 0:
		return w.run([]any{page}, "DELETE FROM page WHERE id = ?", "DELETE FROM texts WHERE id = ?")
	case page != 0:
		_, err = w.exec("UPDATE page SET title = ?, language = ?, version = ? WHERE id = ?", it.page.Title, it.page.Language, it.page.Version, page)
	default:
		page = w.next // not from RETURNING, with which FTS5 would flush its words
		w.next++
		_, err = w.exec("INSERT INTO page (id, url, title, language, version) VALUES (?, ?, ?, ?, ?)",
			page, it.url, it.page.Title, it.page.Language, it.page.Version)
	}
	if err == nil && !same {
		err = w.setTexts(page, it.texts)
	}
	for i := range it.list {
		if err == nil && !keep[i] {
			err = u.add(w, page, i, &it.list[i], it)
		}
	}
	return err
}

// passagesOf returns the passages of a page, keyed by their ids in the page.
func (w *work) passagesOf(page int64) (map[string]storedPassage, error) {
	all := make(map[string]storedPassage)
	if page == 0 {
		return all, nil
	}
	return all, w.rows("SELECT id, hash, ord, length, chunk FROM passage WHERE page = ?", []any{page}, func(scan scanner) error {
		var k storedPassage
		var name string
		err := scan(&k.id, &k.hash, &k.ord, &k.length, &name)
		all[name] = k
		return err
	})
}

// remove removes a page from the index.
func (u *update) remove(w *work, page int64) error {
	all, err := w.passagesOf(page)
	if err != nil {
		return err
	}
	if err := u.drop(w, page, all); err != nil {
		return err
	}
	return w.run([]any{page}, "DELETE FROM page WHERE id = ?", "DELETE FROM texts WHERE id = ?")
}

// removeBetween removes the pages whose URLs are between two URLs.
func (u *update) removeBetween(w *work, after, before string) error {
	var pages []int64
	err := w.rows("SELECT id FROM page WHERE url > ? AND url < ?", []any{after, before}, func(scan scanner) error {
		var id int64
		err := scan(&id)
		pages = append(pages, id)
		return err
	})
	for _, page := range pages {
		if err == nil {
			err = u.remove(w, page)
		}
	}
	return err
}

// hashOf returns a hash of the searchable text, the language and the type of a passage.
func hashOf(t search.Text, kind string) int64 {
	h := sha256.New()
	var size [4]byte
	for _, s := range append([]string{t.Title, t.Language, kind, t.Text}, t.Headings...) {
		binary.BigEndian.PutUint32(size[:], uint32(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// add writes a passage. After the first fill, add itself must analyze the passage, because it
// counts the terms of the last analysis.
func (u *update) add(w *work, page int64, ord int, l *leaf, it *item) error {
	if !l.ready {
		l.analyze(u.entries, it.text(l))
	}
	e, id := &l.entry, w.next
	_, err := w.exec("INSERT INTO passage (id, page, ord, length, print, hash, chunk, profile) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		id, page, ord, e.Length, l.print, l.hash, l.ID, []byte(e.Profile))
	if err == nil {
		_, err = w.exec("INSERT INTO words (rowid, body, headings, title) VALUES (?, ?, ?, ?)", id, e.Text, e.Headings, e.Title)
	}
	if err != nil {
		return err
	}
	w.next++
	w.adjust(1, int64(e.Length))
	if w.stage < comparing {
		return nil
	}
	for term := range u.entries.Terms() {
		u.counts[term]++
	}
	return w.fold(u.entries, id, it.text(l))
}

// drop removes passages of a page.
func (u *update) drop(w *work, page int64, passages map[string]storedPassage) error {
	if len(passages) == 0 {
		return nil
	}
	var t search.Text
	if err := w.row("SELECT title, language FROM page WHERE id = ?", []any{page}, &t.Title, &t.Language); err != nil {
		return err
	}
	all, err := u.textsOf(w.conn, page)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(passages)) {
		k := passages[name]
		if err := u.searchText(w.conn, all, &t, int(k.ord)); err != nil {
			return err
		}
		u.entries.Entry(t)
		for term := range u.entries.Terms() {
			u.counts[term]--
		}
		err = w.run([]any{k.id}, "DELETE FROM passage WHERE id = ?",
			"DELETE FROM words WHERE rowid = ?", "DELETE FROM vector WHERE id IN (SELECT id << 32 | ? FROM model)")
		if err != nil {
			return err
		}
		w.adjust(-1, -k.length)
	}
	return nil
}

// adjust adds n to the number of passages and length to their total length. It counts one change
// in w.moved.
func (w *work) adjust(n, length int64) {
	w.passages += n
	w.length += length
	w.moved++
}

// recount updates the number of passages of each term.
func (w *work) recount(counts map[string]int) error {
	for _, term := range slices.Sorted(maps.Keys(counts)) {
		n := counts[term]
		if n == 0 {
			continue
		}
		if _, err := w.exec("INSERT INTO term (term, n) VALUES (?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n", term, n); err != nil {
			return err
		}
		if n < 0 {
			if _, err := w.exec("DELETE FROM term WHERE term = ? AND n <= 0", term); err != nil {
				return err
			}
		}
	}
	return nil
}
