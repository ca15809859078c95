package scp

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// full is a file on a disk with space for that number of bytes.
type full struct {
	*os.File
	space int
}

func (f *full) WriteAt(b []byte, at int64) (int, error) {
	if f.space -= len(b); f.space < 0 {
		return 0, errDisk
	}
	return f.File.WriteAt(b, at)
}

// closing is a reader that fails once closed is set.
type closing struct {
	*bytes.Reader
	closed bool
}

func (c *closing) ReadAt(b []byte, at int64) (int, error) {
	if c.closed {
		return 0, errDisk
	}
	return c.Reader.ReadAt(b, at)
}

// With a scratch file, a collection is decoded only once, and the result is the same. If the
// scratch file has no space, the collection is decoded again.
func TestScratch(t *testing.T) {
	file := snapshot(prose(500))
	titles := func(c *Collection) (out []string, err error) {
		for p, err := range c.Pages(t.Context()) {
			if err != nil {
				return nil, err
			}
			out = append(out, p.Title+" "+millrace.Text(p.Blocks))
		}
		return out, nil
	}
	for name, coded := range map[string][]byte{"": file, "zstd": packed(file), "gzip": zipped(file)} {
		for _, space := range []int{1 << 30, len(file) - 1, 0} {
			f, err := os.Create(filepath.Join(t.TempDir(), "plain"))
			if err != nil {
				t.Fatal(err)
			}
			r := &closing{Reader: bytes.NewReader(coded)}
			c, err := Open(r, int64(len(coded)), &OpenOptions{Scratch: &full{f, space}})
			if err != nil {
				t.Fatal(err)
			}
			want, err := titles(c)
			if err != nil || len(want) != 500 {
				t.Fatal(err)
			}
			if v, err := c.Verify(t.Context()); err != nil || v.Checksum != "cut" || v.Bytes != int64(len(file)) {
				t.Fatalf("%+v, %v", v, err)
			}
			got, err := titles(c)
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%q, space for %d: %v %s", name, space, err, d)
			}
			r.closed = true
			if _, err := titles(c); errors.Is(err, errDisk) != (name == "" || space < len(file)) {
				t.Errorf("%q, space for %d: decoded again: %v", name, space, err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &lines{copy: f, bytes: maxScratch + 1}
	if l.keep([]byte("x")); l.copy != nil {
		t.Error("the scratch file is unlimited")
	}
}
