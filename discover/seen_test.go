package discover

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/fetch"
)

// A probe records the generator and the server of the root, and the URLs in the root and the
// sitemap.
func TestSeen(t *testing.T) {
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "any/1")
		switch r.URL.Path {
		case "/", "/a":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<head><meta name="Generator" content="by hand"><meta name=generator content=second></head><a href="/b#c"><a href="http://elsewhere.example/">`)
		case "/sitemap.xml":
			_, _ = io.WriteString(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>`+s.URL+`/a</loc></url></urlset>`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	site, err := Probe(t.Context(), fetch.New(&fetch.Options{AllowPrivate: true}).HTTP(), s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Observed{Server: "any/1", Generator: "by hand", Links: []string{s.URL + "/b"}, Listed: []string{s.URL + "/a"}}
	if d := cmp.Diff(want, site.Observed); d != "" {
		t.Error(d)
	}
}
