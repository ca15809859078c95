package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
)

// kept is a passage that a page had before.
type kept struct {
	id, sheet, hash, ord, length int64
}

// passageText is what a hit shows of a passage.
type passageText struct {
	Type     string   `json:"type"`
	Headings []string `json:"headings,omitempty"`
	Inside   []string `json:"inside,omitempty"`
	Text     string   `json:"text"`
}

// read gives the stored page of an entry.
func (x *indexing) read(r indexRow) (*sheaf, error) {
	s := &sheaf{meta: r.meta}
	if r.body != 0 {
		if err := x.row("SELECT data FROM body WHERE id = ?", []any{r.body}, &s.blocks); err != nil {
			return nil, err
		}
	}
	s.bytes = len(s.meta) + len(s.blocks)
	return s, nil
}

// take brings the passages of a page in line with an entry of it: what is the
// same keeps its row, so that the work grows with what has changed.
func (x *indexing) take(g *generation, seq int64, s *sheaf) error {
	if s.err != nil {
		return s.err
	}
	sheet, before, err := x.sheet(g, s.page, len(s.list) > 0)
	if err != nil {
		return err
	}
	for i := range s.list {
		l := &s.list[i]
		if old, ok := before[l.ID]; ok && old.sheet == sheet && old.hash == l.hash {
			delete(before, l.ID)
			if old.ord != int64(i) {
				if err := x.exec("UPDATE passage SET ord = ? WHERE id = ?", i, old.id); err != nil {
					return err
				}
			}
			continue
		}
		if err := x.add(g, sheet, seq, i, l, s.text(l)); err != nil {
			return err
		}
	}
	return x.supersede(g, seq, before)
}

// takeOut ends the passages of a page that is gone.
func (x *indexing) takeOut(g *generation, r indexRow) error {
	_, before, err := x.sheet(g, &millrace.Page{URL: r.url}, false)
	if err != nil {
		return err
	}
	return x.supersede(g, r.seq, before)
}

// sheet gives the sheet of a page, and the current passages of it by their
// ids in the page. A new title or language is a new sheet: each passage is
// found by them.
func (x *indexing) sheet(g *generation, p *millrace.Page, need bool) (id int64, before map[string]kept, err error) {
	var sheets []int64
	err = x.rows("SELECT id, title, language FROM sheet WHERE generation = ? AND url = ?", []any{g.id, p.URL}, func(scan scanner) error {
		var n int64
		var title, language string
		err := scan(&n, &title, &language)
		sheets = append(sheets, n)
		if title == p.Title && language == p.Language {
			id = n
		}
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	before = make(map[string]kept)
	for _, n := range sheets {
		err := x.rows("SELECT id, hash, ord, length, chunk FROM passage WHERE sheet = ? AND until = 1099511627775", []any{n}, func(scan scanner) error {
			k := kept{sheet: n}
			var name string
			err := scan(&k.id, &k.hash, &k.ord, &k.length, &name)
			before[name] = k
			return err
		})
		if err != nil {
			return 0, nil, err
		}
	}
	if id == 0 && need {
		// Not RETURNING: that would make FTS5 write what it has gathered.
		id = g.first() | g.next
		g.next++
		err = x.exec("INSERT INTO sheet (id, generation, url, title, language) VALUES (?, ?, ?, ?, ?)", id, g.id, p.URL, p.Title, p.Language)
	}
	return id, before, err
}

// hashOf moves with everything that is kept of a passage.
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

// add writes a passage. Past the filling it is never ready, since the terms of
// the last entry are counted here.
func (x *indexing) add(g *generation, sheet, seq int64, ord int, l *leaf, t search.Text) error {
	if !l.ready {
		if err := l.analyse(x.entries, t); err != nil {
			return err
		}
	}
	e := &l.entry
	id := g.first() | g.next
	err := x.exec(`INSERT INTO passage (id, sheet, seq, until, ord, length, print, hash, chunk, profile)
		VALUES (?, ?, ?, 1099511627775, ?, ?, ?, ?, ?, ?)`,
		id, sheet, seq, ord, e.Length, l.print, l.hash, l.ID, []byte(e.Profile))
	if err != nil {
		return err
	}
	if err := x.exec("INSERT INTO passage_text (id, data) VALUES (?, ?)", id, l.data); err != nil {
		return err
	}
	err = x.exec("INSERT INTO "+g.words()+" (rowid, title, headings, body) VALUES (?, ?, ?, ?)", id, e.Title, e.Headings, e.Text)
	if err != nil {
		return err
	}
	if g.stage > counting {
		for term := range x.entries.Terms() {
			x.counts[term]++
		}
		if err := x.fold(g, id, t); err != nil {
			return err
		}
	}
	g.next++
	g.passages++
	g.length += int64(e.Length)
	g.moved++
	return nil
}

// supersede ends passages that the page does not have any more. They stay
// until no view needs them.
func (x *indexing) supersede(g *generation, seq int64, passages map[string]kept) error {
	for _, name := range slices.Sorted(maps.Keys(passages)) {
		k := passages[name]
		if g.stage > counting {
			t, err := x.text(k.id, k.sheet)
			if err != nil {
				return err
			}
			x.entries.Entry(t)
			for term := range x.entries.Terms() {
				x.counts[term]--
			}
		}
		if err := x.exec("UPDATE passage SET until = ? WHERE id = ?", seq, k.id); err != nil {
			return err
		}
		g.passages--
		g.length -= k.length
		g.moved++
	}
	return nil
}

// text reads back what is searched of a passage.
func (x *indexing) text(id, sheet int64) (search.Text, error) {
	var data []byte
	var t search.Text
	err := x.row("SELECT data, title, language FROM passage_text, sheet WHERE passage_text.id = ? AND sheet.id = ?",
		[]any{id, sheet}, &data, &t.Title, &t.Language)
	if err != nil {
		return t, err
	}
	var p passageText
	err = json.Unmarshal(data, &p)
	t.Headings, t.Text = slices.Concat(p.Headings, p.Inside), p.Text
	return t, err
}

// recount writes down by how much the terms have grown.
func (x *indexing) recount(g *generation) error {
	for _, term := range slices.Sorted(maps.Keys(x.counts)) {
		n := x.counts[term]
		if n == 0 {
			continue
		}
		err := x.exec("INSERT INTO term (generation, term, n) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n", g.id, term, n)
		if err != nil {
			return err
		}
		if n < 0 {
			if err := x.exec("DELETE FROM term WHERE generation = ? AND term = ? AND n <= 0", g.id, term); err != nil {
				return err
			}
		}
	}
	return nil
}
