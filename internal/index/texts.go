package index

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/search"
	"github.com/millrace/millrace/internal/sqlitefile"
)

// texts is the encoded texts of a page's passages for hits, in order. Each passage has its
// type, its headings, the headings inside it, and its text. Lists and strings start with their
// length.
type texts struct {
	page int64
	data []byte
}

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
func (w *work) setTexts(page int64, data []byte) error {
	_, err := w.exec("INSERT OR REPLACE INTO texts (id, data) VALUES (?, ?)", page, w.x.coder.Encode(nil, data))
	if err != nil {
		return err
	}
	return w.x.coder.Grow(w.row, page)
}

// textsOf reads the texts of a page.
func (x *Index) textsOf(c *conn, page int64) (texts, error) {
	var frame []byte
	err := c.row("SELECT data FROM texts WHERE id = ?", []any{page}, &frame)
	if err != nil {
		return texts{}, err
	}
	data, err := x.coder.Decode(c.row, frame)
	if err != nil && sqlitefile.Code(err) == 0 {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return texts{page, data}, err
}

// at returns the passage at a position of the page.
func (t texts) at(ord int) (p chunk.Passage, err error) {
	b := t.data
	number := func() int {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			n, size, err = 0, len(b), errDamaged
		}
		b = b[size:]
		return int(n)
	}
	list := func(n int) (list []string) {
		for range n {
			size := number()
			if ord == 0 {
				list = append(list, string(b[:size]))
			}
			b = b[size:]
		}
		return list
	}
	for ; ord >= 0 && err == nil; ord-- {
		kind := list(1)
		p.Headings, p.Inside = list(number()), list(number())
		if text := list(1); ord == 0 {
			p.Type, p.Text = kind[0], text[0]
		}
	}
	return p, err
}

// fill sets the searchable text of the passage at a position.
func (t texts) fill(s *search.Text, ord int) error {
	p, err := t.at(ord)
	s.Headings, s.Text = slices.Concat(p.Headings, p.Inside), p.Text
	return err
}
