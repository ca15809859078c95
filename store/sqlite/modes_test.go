package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Only the owner can read a new store and SQLite's files next to it. An existing store keeps
// its mode.
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
		second, err := Open(t.Context(), path, nil) // as in another process
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
