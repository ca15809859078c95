package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace/internal/gateway"
)

// A fixed text is served only under the base, and takes precedence over everything else.
func TestFixed(t *testing.T) {
	origin := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	g, err := gateway.New(nil, &gateway.Options{Base: "https://example.com/blog/", Origin: origin, Texts: map[string]string{"/key.txt": "key"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodGet, "/blog/key.txt", "key", http.StatusOK},
		{http.MethodHead, "/blog/key.txt", "", http.StatusOK},
		{http.MethodGet, "/key.txt", "", http.StatusNotFound},
		{http.MethodGet, "/blog/key.txt/", "", http.StatusNotFound},
		{http.MethodPost, "/blog/key.txt", "", http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		if w.Code != tt.status || tt.body != "" && w.Body.String() != tt.body {
			t.Errorf("%s %s: %d %q", tt.method, tt.path, w.Code, w.Body)
		}
	}
}
