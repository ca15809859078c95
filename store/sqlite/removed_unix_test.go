//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
)

// TestRemoved checks that no connection creates the files of a store again that were removed while
// it was open.
func TestRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range s.Sites(t.Context()) { // with a new connection
		if err == nil {
			t.Error("a site was found")
		}
	}
	if _, err := s.Site(t.Context(), "site", "https://a.example/"); err == nil {
		t.Error("a site was created")
	}
	if err := s.Present(); !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "store-removed" {
		t.Error(err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("created again: %q", left)
	}
}
