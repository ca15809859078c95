package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without --via, a pull uses collections, the cheapest way. First it fetches
// robots.txt, the policy documents and the sitemap that lists the collections. For a
// small site it probes nothing else.
func TestPullBest(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	file, mirror := filepath.Join(t.TempDir(), "served.db"), filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, dir, "--store", file)
	first := pullBest(t, s.url, mirror)
	if first.Via != "scp" || first.Added == 0 || first.Requests > 6 || first.BytesReceived > 16_000 || len(first.Skipped) != 0 || len(first.Notes) != 0 || len(first.Ways) > 2 {
		t.Fatalf("first pull: %+v", first)
	}
	wantMirror(t, "scp", mirror, file, dir, s.url)
	if nothing := pullBest(t, s.url, mirror); nothing.Requests != 1 || nothing.Added+nothing.Updated+nothing.Deleted != 0 {
		t.Errorf("nothing changed: %+v", nothing)
	}

	_, header, _ := get(t, s.url+"llm-pages.json")
	list := header.Get("Etag")
	name := filepath.Join(dir, "articles", "reading-a-river", "index.html")
	html, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, strings.Replace(string(html), "Two numbers say", "Three numbers say", 1))
	eventually(t, "the edit is published", func() bool { return published(t, s, &list) })
	if edited := pullBest(t, s.url, mirror); edited.Requests > 3 || edited.Updated != 1 || edited.Added+edited.Deleted != 0 {
		t.Errorf("one page edited: %+v", edited)
	}
	wantMirror(t, "scp", mirror, file, dir, s.url)

	if err := os.Remove(filepath.Join(dir, "about", "index.html")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the removal is published", func() bool { return published(t, s, &list) })
	if removed := pullBest(t, s.url, mirror); removed.Requests > 3 || removed.Deleted != 1 || removed.Added+removed.Updated != 0 {
		t.Errorf("one page removed: %+v", removed)
	}
	wantMirror(t, "scp", mirror, file, dir, s.url)
}
