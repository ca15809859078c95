package arc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/millrace/millrace"
)

// spool keeps a document that is read twice, once to verify it and once to use
// it: in memory while it is small, in a temporary file otherwise.
type spool struct {
	head []byte
	file *os.File // nil: head is all
	size int64
}

const spoolMemory = 1 << 20

// Write adds to the end. Nothing is written once the spool is read.
func (s *spool) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	if s.file == nil && len(s.head)+len(p) <= spoolMemory {
		s.head = append(s.head, p...)
		return len(p), nil
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "millrace-arc-*.json")
		if err != nil {
			return 0, fmt.Errorf("a place to keep it: %w", err)
		}
		s.file = file
	}
	return s.file.Write(p)
}

// reader gives the document from its start. Only one may be in use.
func (s *spool) reader() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.head), nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(s.head), s.file), nil
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}

// bounded fails at the first byte beyond a limit, whoever's client it is that
// brings them, and remembers why it failed.
type bounded struct {
	r    io.Reader
	left int64
	err  error // never io.EOF
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		n, err = 0, fmt.Errorf("it is longer than it may be: %w", millrace.ErrTooLarge)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// recent remembers the versions that the list gave the pages which it named
// last, until they are asked for: whoever asks does so soon after. It is
// bounded; what it has forgotten costs a conditional request.
type recent struct {
	mu   sync.Mutex
	of   map[string]string // page to version
	ring []string
	next int
}

const recentPages = 4096

func (r *recent) add(page, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]string)
	}
	if len(r.ring) < recentPages {
		r.ring = append(r.ring, page)
	} else {
		delete(r.of, r.ring[r.next])
		r.ring[r.next] = page
		r.next = (r.next + 1) % recentPages
	}
	r.of[page] = version
}

// take gives the version and forgets it: who asks a second time wants to know
// what the page itself says.
func (r *recent) take(page string) (version string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	version, ok = r.of[page]
	delete(r.of, page)
	return version, ok
}
