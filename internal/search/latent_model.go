package search

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace"
)

// Model stores the latent vector of each term; [Fit] creates it. It is immutable and safe
// for concurrent use.
type Model struct {
	width  int
	terms  []uint64  // hashes of the terms, ascending
	scale  []float32 // scale of each term's vector
	matrix []int8    // terms x width
	local  [math.MaxUint8 + 1]float32
}

func newModel(a *matrix, basis *block, sigma []float64) *Model {
	m := &Model{width: len(sigma), terms: a.terms, local: a.local}
	m.scale = make([]float32, len(a.terms))
	m.matrix = make([]int8, len(a.terms)*m.width)
	for t := range a.terms {
		row, top := basis.row(t)[:m.width], float32(0)
		for _, f := range row {
			top = max(top, float32(math.Abs(float64(f))))
		}
		if top == 0 {
			continue
		}
		m.scale[t] = a.global[t] * top / math.MaxInt8
		for j, f := range row {
			m.matrix[t*m.width+j] = int8(math.RoundToEven(float64(f / top * math.MaxInt8)))
		}
	}
	return m
}

// Dimensions returns the size of the vectors of m.
func (m *Model) Dimensions() int { return m.width }

// Known reports whether the term has a vector in m.
func (m *Model) Known(term string) bool {
	_, ok := slices.BinarySearch(m.terms, termHash(term))
	return ok
}

// Vector returns the direction of a passage or a question. terms are its terms in any order,
// with repeats and without stop words. known is the number of different terms that have a
// vector in m. If known is 0, v is nil.
func (m *Model) Vector(terms []string) (v Vector, known int) {
	sum := make([]float32, m.width)
	for _, o := range countTerms(terms, nil) {
		t, ok := slices.BinarySearch(m.terms, o.term)
		if !ok {
			continue
		}
		known++
		w := m.scale[t] * m.local[o.n]
		for j, q := range m.matrix[t*m.width : (t+1)*m.width] {
			sum[j] += w * float32(q)
		}
	}
	return NewVector(sum), known
}

// modelFormat is the first byte of an encoded Model: the version of its format.
const modelFormat = 1

const (
	modelHead = 1 + 2 + 4 // format, width, number of terms
	termSize  = 8 + 4     // hash and scale
)

// MarshalBinary encodes m with about Dimensions bytes for each term.
func (m *Model) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, modelHead+len(m.terms)*(termSize+m.width))
	b = append(b, modelFormat)
	b = binary.LittleEndian.AppendUint16(b, uint16(m.width))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.terms)))
	for _, h := range m.terms {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	for _, f := range m.scale {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	for _, q := range m.matrix {
		b = append(b, byte(q))
	}
	return b, nil
}

// UnmarshalBinary decodes a Model. If data is not a Model, or has another version, it returns
// a *[millrace.FormatError]; call Fit again.
func (m *Model) UnmarshalBinary(data []byte) error {
	broken := func(format string, args ...any) error {
		return &millrace.FormatError{Reason: "latent model: " + fmt.Sprintf(format, args...)}
	}
	if len(data) < modelHead {
		return broken("%d bytes", len(data))
	}
	if data[0] != modelFormat {
		return broken("unknown format %d, want %d", data[0], modelFormat)
	}
	width, terms := int(binary.LittleEndian.Uint16(data[1:])), int64(binary.LittleEndian.Uint32(data[3:]))
	if width == 0 || terms == 0 || terms > math.MaxUint16 {
		return broken("invalid size: %d terms, %d dimensions", terms, width)
	}
	n := int(terms)
	if want := modelHead + n*(termSize+width); len(data) != want {
		return broken("size is %d bytes, want %d", len(data), want)
	}
	data = data[modelHead:]
	read := Model{width: width, local: localWeights()}
	read.terms, read.scale = make([]uint64, n), make([]float32, n)
	for i := range n {
		read.terms[i] = binary.LittleEndian.Uint64(data[8*i:])
		if i > 0 && read.terms[i] <= read.terms[i-1] {
			return broken("terms are not sorted")
		}
		f := v32(data[8*n+4*i:])
		if !(f >= 0 && f <= math.MaxFloat32/(1<<32)) {
			return broken("invalid weight %g of a term", f)
		}
		read.scale[i] = f
	}
	read.matrix = make([]int8, n*width)
	for i, q := range data[termSize*n:] {
		read.matrix[i] = int8(q)
	}
	*m = read
	return nil
}
