package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A pull that holds the last list gets what has changed in it, in a process of its own each
// time. Without the folder of dictionaries, it gets the list.
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
