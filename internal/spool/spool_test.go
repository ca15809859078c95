package spool_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/spool"
)

func TestSpool(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20} {
		body := bytes.Repeat([]byte("millrace "), size/9+1)[:size]
		s, err := spool.New(iotest.HalfReader(bytes.NewReader(body)), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r, err := s.Reader()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, body) {
				t.Errorf("read %d of %d bytes: %v", len(got), size, err)
			}
		}
		s.Close()
		s.Close()
		if size > 0 {
			if _, err := spool.New(bytes.NewReader(body), int64(size)-1); !errors.Is(err, millrace.ErrTooLarge) {
				t.Errorf("%d bytes with a limit of %d: %v", size, size-1, err)
			}
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v %v", left, err)
	}
}

func TestSpoolError(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	broken := errors.New("broken")
	for _, size := range []int{0, 5, 2 << 20} {
		_, err := spool.New(io.MultiReader(strings.NewReader(strings.Repeat("x", size)), iotest.ErrReader(broken)), 1<<30)
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", size, err)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v %v", left, err)
	}
}
