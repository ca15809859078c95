package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A prepared 304 makes one allocation, for its ETag, however large the site is.
func TestAllocs(t *testing.T) {
	g := setup{files: site()}.gateway(t)
	tag := ask(g, http.MethodGet, "/a/llm.json").Header().Get("Etag")
	r := httptest.NewRequest(http.MethodGet, "/a/llm.json", nil)
	r.Header.Set("If-None-Match", tag)
	w := &sink{h: make(http.Header)}
	n := testing.AllocsPerRun(100, func() {
		clear(w.h)
		g.ServeHTTP(w, r)
	})
	if w.status != http.StatusNotModified || n > 1 {
		t.Errorf("a response with status %d takes %v allocations", w.status, n)
	}
}
