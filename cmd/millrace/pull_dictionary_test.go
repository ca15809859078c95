package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A pull that has the previous list receives only the changes of the list. Each pull is a separate
// process. Without the folder of dictionaries, it receives the whole list.
func TestPullDictionary(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, manyPages(t, 300))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	_, header, _ := get(t, address(b.served)+"llm-pages.json")
	list := header.Get("Etag")
	edit := func(i int) int64 {
		write(t, filepath.Join(b.dir, "p007.html"), pageText(i, "edited"))
		b.published(t, &list)
		r := pullBest(t, b.url, mirror, "--via", "tct-01")
		if r.Updated == 0 || r.Added+r.Deleted != 0 {
			t.Errorf("%+v", r)
		}
		return r.BytesReceived
	}
	pullBest(t, b.url, mirror, "--via", "tct-01")
	first, second := edit(1000), edit(1001)
	if err := os.RemoveAll(mirror + "-dictionaries"); err != nil {
		t.Fatal(err)
	}
	without := edit(1002)
	edit(1003) // its list is the next dictionary
	if again := edit(1004); first > 4000 || second > 4000 || without < 12000 || again > 4000 {
		t.Errorf("%d, %d; without a dictionary %d, then %d bytes", first, second, without, again)
	}
}

// A pull that has the previous snapshot of SCP receives only the changes of the next one. It finds
// deletions in the snapshot, so it uses no other protocol.
func TestPullDictionarySCP(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, densePages(t, 40))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	_, header, _ := get(t, address(b.served)+"llm-pages.json")
	list := header.Get("Etag")
	if r := pullBest(t, b.url, mirror); !slices.Equal(wayNames(r), []string{"scp: all"}) {
		t.Fatalf("%+v", r)
	}
	deleted := 0
	for page := range 3 {
		write(t, filepath.Join(b.dir, "p009.html"), pageText(1000+page, "edited"))
		b.published(t, &list)
		remove(t, b, page)
		b.published(t, &list) // and the snapshot, which must not contain the deleted page
		b.paths()
		r := pullBest(t, b.url, mirror)
		asked := b.paths()
		if deleted += r.Deleted; r.Deleted == 0 || r.BytesReceived > 5000 || !slices.Equal(wayNames(r), []string{"scp: all"}) ||
			len(asked) != 2 || !strings.HasSuffix(asked[1], ".scp") {
			t.Errorf("%s: %+v", asked, r)
		}
	}
	if deleted != 3 {
		t.Errorf("%d deletions", deleted)
	}
	wantMirror(t, "scp", mirror, b.file, b.dir, b.url)
}
