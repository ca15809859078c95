//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// While a server runs, its artifacts are removed, and then its store. The server builds the
// artifacts again. Without the store, it is not ready, and it does not write to removed files.
func TestServeRemoved(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.db")
	s := serve(t, copySite(t, "handbook"), "--store", file)
	count := func() int {
		found, _ := filepath.Glob(file + "-files/*")
		return len(slices.DeleteFunc(found, func(n string) bool { return strings.HasPrefix(filepath.Base(n), "_") }))
	}
	before := count()
	for how, remove := range map[string]func() error{
		"removed": func() error { return os.RemoveAll(file + "-files") },
		"renamed": func() error { return os.Rename(file+"-files", filepath.Join(t.TempDir(), "away")) },
	} {
		if err := remove(); err != nil || before == 0 {
			t.Fatalf("%d artifacts, %v", before, err)
		}
		start := time.Now()
		eventually(t, "the artifacts exist again", func() bool { return count() == before })
		t.Logf("%d artifacts, %s: after %s", before, how, time.Since(start))
	}
	if code, _, text := get(t, s.url+"readyz"); code != http.StatusOK {
		t.Errorf("readyz: %d %s", code, text)
	}
	old, err := os.Open(file + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	was, err := old.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if code, _, text := get(t, s.url+"readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "removed") {
		t.Errorf("readyz: %d %s", code, text)
	}
	eventually(t, "the removal is logged", func() bool { return strings.Contains(s.out.String(), "level=ERROR") })
	now, err := old.Stat()
	if err != nil || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
		t.Errorf("the server wrote to the removed log: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the store exists again")
	}
}
