package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace"
)

// errDamaged is what is kept of the use of a site and cannot be read.
var errDamaged = fmt.Errorf("%w: what is kept of requests is damaged", millrace.ErrInvalid)

// columnWriter writes numbers and texts, each column after the other.
type columnWriter struct{ b []byte }

func (w *columnWriter) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

// int writes a number that may be below 0.
func (w *columnWriter) int(n int64) { w.b = binary.AppendVarint(w.b, n) }

func (w *columnWriter) text(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

// sorted writes texts in their order, each by what it does not share with the
// one before.
func (w *columnWriter) sorted(texts []string) {
	w.uint(uint64(len(texts)))
	before := ""
	for _, s := range texts {
		n := 0
		for n < len(s) && n < len(before) && s[n] == before[n] {
			n++
		}
		w.uint(uint64(n))
		w.text(s[n:])
		before = s
	}
}

// The forms of what is kept.
const (
	plainForm = iota
	zstdForm
)

// compress gives what is kept of the columns.
func (w *columnWriter) compress(c *coder) []byte {
	out := c.enc.EncodeAll(w.b, append(make([]byte, 0, len(w.b)/2+64), zstdForm))
	if len(out) > len(w.b) {
		out = append(append(out[:0], plainForm), w.b...)
	}
	return out
}

// columnReader is the inverse of columnWriter. It gives zeros once something is
// wrong.
type columnReader struct {
	b   []byte
	bad bool
}

// expand gives a reader of what compress has given; into is memory for it.
func (c *coder) expand(data, into []byte) (columnReader, error) {
	if err := c.open(); err != nil {
		return columnReader{}, err
	}
	switch {
	case len(data) > 0 && data[0] == plainForm:
		return columnReader{b: data[1:]}, nil
	case len(data) > 0 && data[0] == zstdForm:
		b, err := c.dec.DecodeAll(data[1:], into[:0])
		if err != nil {
			return columnReader{}, fmt.Errorf("%w: %w", errDamaged, err)
		}
		return columnReader{b: b}, nil
	}
	return columnReader{}, errDamaged
}

func (r *columnReader) uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		n := r.b[0]
		r.b = r.b[1:]
		return uint64(n)
	}
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *columnReader) int() int64 {
	n := r.uint()
	return int64(n>>1) ^ -int64(n&1)
}

// below reads a number that must be below a limit: an index.
func (r *columnReader) below(limit int) int {
	n := r.uint()
	if n >= uint64(limit) {
		r.bad = true
		return 0
	}
	return int(n)
}

// length reads how many things follow, each of a byte at least.
func (r *columnReader) length() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *columnReader) text() string {
	n := r.length()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// texts reads what text has written several times.
func (r *columnReader) texts() []string {
	n := r.length()
	out := make([]string, n)
	for i := range out {
		out[i] = r.text()
	}
	return out
}

// maxSorted bounds the texts of one list, together, so that damaged ones do not
// fill the memory.
const maxSorted = 4 << 20

// sorted reads what sorted has written, each text once and in their order. They
// share their memory.
func (r *columnReader) sorted() []string {
	n := r.length()
	ends := make([]int, 0, n)
	var all []byte
	for range n {
		start := 0
		if len(ends) > 1 {
			start = ends[len(ends)-2]
		}
		before := all[min(start, len(all)):]
		shared := r.below(len(before) + 1)
		size := r.length()
		if r.bad || len(all)+shared+size > maxSorted {
			r.bad = true
			return nil
		}
		all = append(append(all, before[:shared]...), r.b[:size]...)
		r.b = r.b[size:]
		ends = append(ends, len(all))
	}
	text := string(all)
	out := make([]string, n)
	start := 0
	for i, end := range ends {
		out[i] = text[start:end]
		start = end
		if i > 0 && out[i] <= out[i-1] {
			r.bad = true
			return nil
		}
	}
	return out
}

// done gives an error if anything was wrong, or is left.
func (r *columnReader) done() error {
	if r.bad || len(r.b) > 0 {
		return errDamaged
	}
	return nil
}

// damaged reports whether an error says that something kept cannot be read.
func damaged(err error) bool { return errors.Is(err, errDamaged) }

// index numbers texts in the order in which they come.
type index struct {
	at    map[string]int
	texts []string
}

func (x *index) of(s string) int {
	i, ok := x.at[s]
	if !ok {
		if x.at == nil {
			x.at = make(map[string]int)
		}
		i = len(x.texts)
		x.at[s], x.texts = i, append(x.texts, s)
	}
	return i
}

// reset empties an index, and leaves its memory.
func (x *index) reset() {
	clear(x.at)
	clear(x.texts)
	x.texts = x.texts[:0]
}

// sort brings the texts into their order, and gives the place of each that was
// numbered. No more can be added.
func (x *index) sort() (place []int32) {
	texts, place := make([]string, len(x.texts)), make([]int32, len(x.texts))
	for i, o := range inOrder(x.texts) {
		texts[i], place[o.at] = x.texts[o.at], int32(i)
	}
	x.texts = texts
	return place
}
