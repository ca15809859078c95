package subrequest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestFile(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header) > 0 || r.URL.RawQuery != "" {
			t.Errorf("the request for %s has %v", r.URL, r.Header)
		}
		switch r.URL.Path {
		case "/plain":
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "plain")
		case "/zip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "zip")
			_ = z.Close()
		case "/panic":
			w.WriteHeader(http.StatusOK)
			panic(http.ErrAbortHandler)
		default:
			http.NotFound(w, r)
		}
	})
	r := httptest.NewRequest(http.MethodPost, "/other?q=1", http.NoBody)
	r.Header.Set("Authorization", "secret")
	for path, want := range map[string]struct {
		status int
		body   string
		cut    bool
	}{
		"/plain": {200, "plai", true}, "/zip": {200, "zip", false},
		"/panic": {502, "", false}, "/none": {404, "404 ", true},
	} {
		most := 4
		if path == "/zip" {
			most = 100
		}
		got := File(h, r, http.MethodGet, path, most)
		if got.Status != want.status || got.Body.String() != want.body || got.Cut != want.cut || got.Missing() != (want.status == 404) {
			t.Errorf("%s: %d %q, truncated: %t", path, got.Status, got.Body.String(), got.Cut)
		}
	}
	if got := File(nil, r, http.MethodGet, "/", 1); !got.Missing() {
		t.Error(got.Status)
	}
}
