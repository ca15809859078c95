package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A 304 that is prepared allocates its header's Etag and nothing that grows with what
// the gateway has.
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
		t.Errorf("%d takes %v allocations", w.status, n)
	}
}
