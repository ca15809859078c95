package gateway

import (
	"testing"
	"time"
)

// A file with a future time has no Last-Modified. Its ETag works.
func TestLastModifiedIsNeverAhead(t *testing.T) {
	files := site()
	files.MapFS["style.css"].ModTime = time.Now().Add(time.Hour)
	g := setup{files: files}.gateway(t)
	w := ask(g, "GET", "/style.css")
	if at := w.Header().Get("Last-Modified"); w.Code != 200 || at != "" {
		t.Errorf("%d, Last-Modified %q", w.Code, at)
	}
	if again := ask(g, "GET", "/style.css", "If-None-Match", w.Header().Get("Etag")); again.Code != 304 {
		t.Errorf("%d with its validator", again.Code)
	}
	if at := ask(g, "GET", "/b.html").Header().Get("Last-Modified"); at == "" {
		t.Error("a file with a past time has no date")
	}
}
