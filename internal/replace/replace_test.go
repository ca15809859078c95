package replace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If writing fails, the old file is unchanged.
func TestFile(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("broken")
	dir := t.TempDir()
	name := filepath.Join(dir, "pages.jsonl")
	put := func(s string, end error) error {
		return File(name, func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return errors.Join(err, end)
		})
	}
	if err := put("first\n", nil); err != nil {
		t.Fatal(err)
	}
	if err := put("half", errBroken); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if left, _ := os.ReadDir(dir); err != nil || string(b) != "first\n" || len(left) != 1 {
		t.Errorf("%q, %v, %v", b, err, left)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	if err := File(link, func(w io.Writer) error { _, err := io.WriteString(w, "second\n"); return err }); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); string(b) != "second\n" {
		t.Errorf("%q %v", b, err)
	}
	if err := New(name, nil, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := File(dir, nil); err == nil {
		t.Error("a folder")
	}
	if err := File(os.DevNull, func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }); err != nil {
		t.Error(err)
	}
}

// An error names the file, not the temporary one.
func TestFileName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "missing", "a.yaml")
	err := New(name, nil, 0o600)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
}
