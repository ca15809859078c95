package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/search"
	"github.com/millrace/millrace/internal/sqlitefile"
)

// partSize is the size in bytes at which a part of a page's texts ends. To show a hit, a search
// decodes one part.
const partSize = 8 << 10

// pageTexts contains the encoded texts of a page's passages, in order.
type pageTexts struct {
	parts  [][]byte
	counts []int // number of passages of each part
}

func (t *pageTexts) add(p *chunk.Passage) {
	last := len(t.parts) - 1
	if last < 0 || len(t.parts[last]) >= partSize {
		t.parts, t.counts = append(t.parts, nil), append(t.counts, 0)
		last++
	}
	t.parts[last] = appendText(t.parts[last], p)
	t.counts[last]++
}

// texts contains the stored texts of a page's passages, for hits.
type texts struct {
	page  int64
	data  []byte // frames of zdict, one after the other
	parts []byte // number of passages and size in bytes of each frame
	first int    // position of the first passage in the decoded frame
	end   int    // position of the first passage after the decoded frame
	open  []byte // the decoded frame
}

// appendText appends a passage: its type, its headings, the headings inside it, and its text.
// Lists and strings start with their length.
func appendText(b []byte, p *chunk.Passage) []byte {
	list := func(list ...string) {
		for _, s := range list {
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
	}
	list(p.Type)
	b = binary.AppendUvarint(b, uint64(len(p.Headings)))
	list(p.Headings...)
	b = binary.AppendUvarint(b, uint64(len(p.Inside)))
	list(p.Inside...)
	list(p.Text)
	return b
}

// setTexts stores the texts of a page.
func (w *work) setTexts(page int64, t *pageTexts) error {
	var data, parts []byte
	for i, part := range t.parts {
		before := len(data)
		data = w.encoder.Encode(data, part)
		parts = binary.AppendUvarint(parts, uint64(t.counts[i]))
		parts = binary.AppendUvarint(parts, uint64(len(data)-before))
	}
	if _, err := w.exec("INSERT OR REPLACE INTO texts (id, parts, data) VALUES (?, ?, ?)", page, parts, data); err != nil {
		return err
	}
	return w.encoder.Grow(w.row, page)
}

// textsOf reads the texts of a page.
func (x *Index) textsOf(c *conn, page int64) (*texts, error) {
	t := &texts{page: page}
	return t, c.row("SELECT parts, data FROM texts WHERE id = ?", []any{page}, &t.parts, &t.data)
}

// number reads a number from the start of b.
func number(b *[]byte) (int, error) {
	n, size := binary.Uvarint(*b)
	if size <= 0 || n > math.MaxInt32 {
		return 0, errDamaged
	}
	*b = (*b)[size:]
	return int(n), nil
}

// part decodes the part of t that contains passage ord, unless it is already decoded.
func (x *Index) part(c *conn, t *texts, ord int) error {
	if ord >= t.first && ord < t.end {
		return nil
	}
	t.first, t.end = 0, 0
	data, parts := t.data, t.parts
	for {
		count, err := number(&parts)
		if err != nil {
			return err
		}
		size, err := number(&parts)
		if err != nil || size > len(data) {
			return errDamaged
		}
		if t.end += count; ord < t.end {
			if t.open, err = x.coder.Decode(c.row, data[:size]); err != nil && sqlitefile.Code(err) == 0 {
				err = fmt.Errorf("%w: %w", errDamaged, err)
			}
			return err
		}
		t.first, data = t.end, data[size:]
	}
}

// passage returns the passage at a position of the page.
func (x *Index) passage(c *conn, t *texts, ord int) (chunk.Passage, error) {
	if err := x.part(c, t, ord); err != nil {
		return chunk.Passage{}, err
	}
	return passageOf(t.open, ord-t.first)
}

// passageOf returns the nth passage of a decoded part.
func passageOf(b []byte, n int) (p chunk.Passage, err error) {
	list := func(n int, keep bool) (list []string) {
		for range n {
			size, bad := number(&b)
			if bad != nil || size > len(b) {
				err, size = errDamaged, 0
			}
			if keep {
				list = append(list, string(b[:size]))
			}
			b = b[size:]
		}
		return list
	}
	lists := func(keep bool) []string {
		n, bad := number(&b)
		if bad != nil || n > len(b) {
			err, n = errDamaged, 0
		}
		return list(n, keep)
	}
	for ; n >= 0 && err == nil; n-- {
		keep := n == 0
		kind := list(1, keep)
		p.Headings, p.Inside = lists(keep), lists(keep)
		if text := list(1, keep); keep {
			p.Type, p.Text = kind[0], text[0]
		}
	}
	return p, err
}

// searchText sets the searchable text of the passage at a position of the page.
func (x *Index) searchText(c *conn, t *texts, s *search.Text, ord int) error {
	p, err := x.passage(c, t, ord)
	s.Headings, s.Text = slices.Concat(p.Headings, p.Inside), p.Text
	return err
}
