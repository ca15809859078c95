package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Without dictionaries, a mirror that SCP filled finds a deletion in the next snapshot.
func TestPullDeletions(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, densePages(t, 40))
	b.set(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		r.Header.Set("Accept-Encoding", "gzip")
		return false
	})
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	_, header, _ := get(t, address(b.served)+"llm-pages.json")
	list := header.Get("Etag")
	pullBest(t, b.url, mirror, "--via", "scp")
	remove(t, b, 12)
	b.published(t, &list)
	if r := pullBest(t, b.url, mirror, "--via", "scp"); r.Deleted != 1 || r.Updated+r.Added != 0 || r.Unchanged != 39 {
		t.Errorf("one page removed: %+v", r)
	}
	wantMirror(t, "scp", mirror, b.file, b.dir, b.url)
}

func remove(t *testing.T, b *behind, page int) {
	t.Helper()
	if err := os.Remove(filepath.Join(b.dir, fmt.Sprintf("p%03d.html", page))); err != nil {
		t.Fatal(err)
	}
}

// A pull without --via that is killed at any moment loses no page and no deletion.
func TestKillPullDeletions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("testing.Short: kills child processes")
	}
	b := serveBehind(t, densePages(t, 40))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	_, header, _ := get(t, address(b.served)+"llm-pages.json")
	list := header.Get("Etag")
	killed := 0
	for i := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(30+(i*37)%120)*time.Millisecond)
		c := asProcess(ctx, t, "pull", b.url, "--store", mirror, "--allow-private", "--quiet", "--delay", "2ms")
		if out, err := c.CombinedOutput(); err != nil && ctx.Err() == nil {
			t.Fatalf("pull %d: %v\n%s", i, err, out)
		}
		if ctx.Err() != nil {
			killed++
		}
		cancel()
		if i == 6 {
			remove(t, b, i)
			write(t, filepath.Join(b.dir, fmt.Sprintf("p%03d.html", i+20)), pageText(i, "again"))
			b.published(t, &list)
		}
		if i == 4 {
			pullBest(t, b.url, mirror) // from now on, a kill could lose data
		}
	}
	if killed == 0 {
		t.Error("no process was killed")
	}
	pullBest(t, b.url, mirror)
	wantMirror(t, "scp", mirror, b.file, b.dir, b.url)
}
