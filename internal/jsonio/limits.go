package jsonio

import (
	"bytes"
	"cmp"
	"io"
	"math"
)

// Limits limit the input. Nil and the zero value mean the defaults.
type Limits struct {
	Size  int64 // maximum bytes of the whole input. If zero, 16 MiB for Decode, 1 GiB for Reader.
	Value int   // maximum bytes of one value that Reader decodes. If zero, 1 MiB.
	Depth int   // maximum depth of nested arrays and objects. If zero, 64.
	Count int   // maximum elements of one array that Reader walks. If zero, 10,000,000.
}

// Fixed limits of a Reader. Together they limit the memory for the names of members, which are
// stored to detect duplicates.
const (
	maxMembers = 1000 // maximum members of one object that the Reader walks or skips
	maxName    = 4096 // maximum bytes of a member's name in such an object
)

// slack is the allowed white space between values, in bytes.
const slack = 64 << 10

func (l *Limits) resolve(size int64) Limits {
	var got Limits
	if l != nil {
		got = *l
	}
	return Limits{
		Size:  cmp.Or(got.Size, size),
		Value: cmp.Or(got.Value, 1<<20),
		Depth: cmp.Or(got.Depth, 64),
		Count: cmp.Or(got.Count, 10_000_000),
	}
}

// source is a reader with two limits, which records positions for error messages.
type source struct {
	r     io.Reader
	size  int64 // maximum number of bytes
	stop  int64 // offset by which the current value must have ended
	n     int64 // number of bytes read
	lines int64 // number of line feeds read
	head  []byte
	err   error // error of the reader, or of a limit; never io.EOF
}

func newSource(r io.Reader, size int64) *source {
	return &source{r: r, size: size, stop: math.MaxInt64}
}

// Read reads from the underlying reader. It fails at a limit only if more bytes follow.
func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	var probe [1]byte
	switch {
	case s.n >= s.stop:
		s.err = errValue
		return 0, s.err
	case s.n >= s.size:
		p = probe[:]
	default:
		p = p[:min(int64(len(p)), s.size-s.n, s.stop-s.n)]
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	if n > 0 && s.n >= s.size {
		s.err = errSize
		return 0, s.err
	}
	s.lines += int64(bytes.Count(p[:n], []byte("\n")))
	s.head = append(s.head, p[:min(n, 3-len(s.head))]...)
	s.n += int64(n)
	return n, err
}

// tooDeep returns the offset of the first bracket that opens more than depth levels, or
// -1. data need not be valid JSON.
func tooDeep(data []byte, depth int) int {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= depth {
		return -1
	}
	quoted := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth--; depth < 0 {
				return i
			}
		case c == '}' || c == ']':
			depth++
		}
	}
	return -1
}
