package dir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// TestRemoved checks that Put works after the folder or its content was removed or replaced, and
// writes to no other folder.
func TestRemoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows: a folder in use cannot be removed")
	}
	for name, remove := range map[string]func(folder string) error{
		"folder": os.RemoveAll,
		"files": func(folder string) error {
			entries, err := os.ReadDir(folder)
			for _, e := range entries {
				err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
			}
			return err
		},
		"moved": func(folder string) error { return os.Rename(folder, folder+"-old") },
		"replaced": func(folder string) error {
			return errors.Join(os.Rename(folder, folder+"-old"), os.Mkdir(folder, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, folder := newStore(t)
			put := func(name string) {
				t.Helper()
				if err := s.Put(t.Context(), name, strings.NewReader("x")); err != nil {
					t.Fatal(err)
				}
			}
			put("a/b")
			if err := remove(folder); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Stat(t.Context(), "a/b"); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("open the removed artifact: %v", err)
			}
			put("a/c")
			if left, err := filepath.Glob(folder + "-old/a_/c"); err != nil || len(left) > 0 {
				t.Errorf("files in the old folder: %q, %v", left, err)
			}
			r, err := s.Open(t.Context(), "a/c", 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if text, err := io.ReadAll(r); string(text) != "x" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
