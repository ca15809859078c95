// Package spool buffers bytes that are read later, such as a list that must be verified before use.
// It uses memory up to a limit, and a temporary file above the limit.
package spool

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/millrace/millrace"
)

const memory = 1 << 20

// Spool is an [io.Writer] that stores its input. The zero value is empty.
type Spool struct {
	head bytes.Buffer
	file *os.File // bytes after those in head; nil if head contains all bytes
	size int64
}

// New buffers a body of at most limit bytes. Errors are those of r, ErrTooLarge, or those of the
// temporary file.
func New(r io.Reader, limit int64) (*Spool, error) {
	s := new(Spool)
	if _, err := io.Copy(s, &bounded{r, limit}); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Write implements [io.Writer]. Errors are those of the temporary file.
func (s *Spool) Write(b []byte) (int, error) {
	if s.file == nil && s.head.Len()+len(b) <= memory {
		s.size += int64(len(b))
		return s.head.Write(b)
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "millrace-*")
		if err != nil {
			return 0, fmt.Errorf("create temporary file: %w", err)
		}
		// Unlink the file, so that the system deletes it when the process ends, even by a kill.
		_ = os.Remove(file.Name())
		s.file = file
	}
	n, err := s.file.Write(b)
	s.size += int64(n)
	return n, err
}

// Size returns the number of bytes.
func (s *Spool) Size() int64 { return s.size }

// Reader returns a reader of all bytes. Only one reader may be in use at a time, and Write must
// not be called while it is.
func (s *Spool) Reader() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.head.Bytes()), nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(s.head.Bytes()), s.file), nil
}

// Close frees the bytes. It may be called more than once.
func (s *Spool) Close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}

// bounded is a reader that fails at the first byte above a limit.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("exceeds the size limit: %w", millrace.ErrTooLarge)
	}
	return n, err
}
