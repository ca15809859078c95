package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A store is for its owner alone to read, with what SQLite keeps beside it; one
// that is there stays as its owner wants it.
func TestModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes")
	}
	path := filepath.Join(t.TempDir(), "x.db")
	for _, want := range []os.FileMode{0o600, 0o640} {
		s, err := Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Open(t.Context(), path, nil) // of another process
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			if info, err := os.Stat(name); err != nil {
				t.Error(err)
			} else if got := info.Mode().Perm(); got != want {
				t.Errorf("%s: %v, want %v", filepath.Base(name), got, want)
			}
		}
		for _, s := range []*Store{s, second} {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
	}
}
