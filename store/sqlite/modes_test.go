package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

// Only the owner can read a new store and SQLite's files next to it. An existing store keeps its
// permissions.
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
		second, err := Open(t.Context(), path, nil) // like another process
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

// A store of an earlier version gets the missing tables, and keeps its pages.
func TestAdditions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range append(slices.Clone(tables), fmt.Sprintf("PRAGMA application_id = %d", applicationID), fmt.Sprintf("PRAGMA user_version = %d", sqlstore.SchemaVersion)) {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), path, &store.Options{ReadOnly: true}); millrace.ErrorCode(err) != "store-older" {
		t.Error(err)
	}
	for range 2 {
		s, err := Open(t.Context(), path, nil)
		if err == nil {
			_, err = s.Fleet().Stats(t.Context(), "")
			err = errors.Join(err, s.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
}
