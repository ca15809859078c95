package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// lying returns the contents of the files of a store by name, except SQLite's index of the
// write-ahead log.
func lying(t *testing.T, path string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(n) != ".db-shm" {
			out[n] = string(b)
		}
	}
	return out
}

func titlesOf(t *testing.T, s *Store) (n int) {
	t.Helper()
	var name string
	for n, err := range s.Sites(t.Context()) {
		if err != nil || name != "" {
			t.Fatal(n, name, err)
		}
		name = n
	}
	site, err := s.Site(t.Context(), name, "")
	if err != nil {
		t.Fatal(err)
	}
	v, err := site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if _, err := site.Cursor(t.Context(), "unknown"); err != nil {
		t.Error(err)
	}
	_, err = site.Apply(t.Context(), "me", []millrace.Change{{Ref: millrace.Ref{URL: "/x"}, Page: &millrace.Page{URL: "/x", Title: "x", Known: millrace.FieldTitle}}})
	if !errors.Is(err, millrace.ErrForbidden) {
		t.Errorf("the write succeeded: %v", err)
	}
	return n
}

// A read-only store does not change the files. It can be read while another process writes,
// and after a writer was killed.
func TestReadOnly(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "x.db")
	if _, err := Open(ctx, path, &store.Options{ReadOnly: true}); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("without a file: %v", err)
	}
	w, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	site, err := w.Site(ctx, "https://mill.example/", "https://mill.example/")
	if err != nil {
		t.Fatal(err)
	}
	put := func(u string) {
		t.Helper()
		page := &millrace.Page{URL: u, Title: u, Known: millrace.FieldTitle}
		if _, err := site.Apply(ctx, "me", []millrace.Change{{Ref: millrace.Ref{URL: u}, Page: page}}); err != nil {
			t.Fatal(err)
		}
	}
	put("/one")
	s, err := Open(ctx, path, &store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	first := titlesOf(t, s)
	put("/two") // a reader does not block the writer
	if n := titlesOf(t, s); n != first+1 {
		t.Errorf("%d pages, then %d", first, n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	// Copy only the file of the store, while all pages are in the write-ahead log next to it.
	alone := filepath.Join(t.TempDir(), "alone.db")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(alone, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, alone, &store.Options{ReadOnly: true}); !errors.Is(err, millrace.ErrNotFound) || millrace.ErrorCode(err) != "store-wal" {
		t.Error(err)
	}
	// Copy both files, which is what a killed writer leaves.
	killed := filepath.Join(t.TempDir(), "killed.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(killed+suffix, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, killed} {
		before := lying(t, name)
		s, err := Open(ctx, name, &store.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if n := titlesOf(t, s); n != first+1 {
			t.Errorf("%s: %d pages, want %d", name, n, first+1)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		after := lying(t, name)
		for n, b := range after {
			if before[n] != b {
				t.Errorf("%s was replaced", n)
			}
		}
		if len(before) != len(after) {
			t.Errorf("%d files, then %d", len(before), len(after))
		}
	}
	if err := os.WriteFile(path, []byte("not a store at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, path, &store.Options{ReadOnly: true}); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
}
