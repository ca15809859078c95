// Package spool keeps what has to be read twice, such as a list that is verified
// before anything of it is believed: in memory while it is small, in a
// temporary file otherwise.
package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace/millrace"
)

const memory = 1 << 20

// Spool is a body that was kept.
type Spool struct {
	head []byte
	file *os.File // nil: head is all
}

// New keeps a body of at most limit bytes, whoever's client it is that brings
// them. Errors are the body's own, ErrTooLarge, or those of the temporary file.
func New(r io.Reader, limit int64) (*Spool, error) {
	r = &bounded{r, limit}
	var buf bytes.Buffer
	if _, err := io.CopyN(&buf, r, memory); err != nil {
		if errors.Is(err, io.EOF) {
			return &Spool{head: buf.Bytes()}, nil
		}
		return nil, err
	}
	file, err := os.CreateTemp("", "millrace-*")
	if err != nil {
		return nil, fmt.Errorf("a place to keep it: %w", err)
	}
	// Where a file without a name can be, it goes with the process, however
	// that ends.
	_ = os.Remove(file.Name())
	s := &Spool{head: buf.Bytes(), file: file}
	if _, err := io.Copy(file, r); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Reader gives the body from its start. Only one may be in use.
func (s *Spool) Reader() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.head), nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(s.head), s.file), nil
}

// Close forgets the body. It may be called more than once.
func (s *Spool) Close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}

// bounded fails at the first byte beyond a limit.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it is longer than it may be: %w", millrace.ErrTooLarge)
	}
	return n, err
}
