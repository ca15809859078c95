package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// For a site with summaries in ARC, pull reads the list of pages and changes from ARC, and the
// contents from the HTML.
func TestPullFills(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, manyPages(t, 30))
	b.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		for _, other := range []string{"/llm", "/scp/", "/sitemap", "/openfeeder", "/.well-known/openfeeder"} {
			if strings.HasPrefix(r.URL.Path, other) || strings.HasSuffix(r.URL.Path, "/llm.json") {
				http.NotFound(w, r)
				return true
			}
		}
		return false
	})
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	r := pullBest(t, b.url, mirror)
	if r.Via != "arc" || len(r.Ways) != 2 || r.Ways[0].Protocol != "arc" || r.Ways[1].Protocol != "crawl" || r.Ways[1].Pages != 30 {
		t.Fatalf("%v: %+v", wayNames(r), r)
	}
	for u, p := range storedPages(t, mirror, b.url, b.url) {
		if p.Detail != millrace.DetailBlocks || !strings.Contains(p.Text(), "word") || p.Summary == "" || p.Extra["arc"] == nil {
			t.Errorf("%s: %+v", u, p)
		}
	}
	if r := pullBest(t, b.url, mirror); r.Requests != 1 || r.Unchanged != 30 {
		t.Errorf("nothing has changed: %+v", r)
	}
	_, header, _ := get(t, address(b.served)+"llm-pages.json")
	list := header.Get("Etag")
	write(t, filepath.Join(b.dir, "p011.html"), pageText(11, "and more"))
	b.published(t, &list)
	r = pullBest(t, b.url, mirror)
	if r.Updated != 1 || r.Added+r.Deleted != 0 || r.Requests > 6 || r.Ways[1].Pages != 1 {
		t.Errorf("one page edited: %+v", r)
	}
	if p := storedPages(t, mirror, b.url, b.url)[b.url+"p011.html"]; !strings.Contains(p.Text(), "and more") {
		t.Errorf("%+v", p)
	}
}
