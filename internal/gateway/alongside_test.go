package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/internal/sites"
)

// A web server alongside millrace learns which requests millrace answers, and what is added to
// pages.
func TestAlongside(t *testing.T) {
	rule, err := access.ParseRule("ClaudeBot=403")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Place: sites.Alongside, Service: endpoint{}, ServiceName: "mcp", Access: access.Options{Bots: known(t), Rules: []access.Rule{rule}}, Texts: map[string]string{"/proof.txt": "x"}}
	var writes, finds atomic.Int64
	f := forms{&writes, &finds}
	g := setup{files: site(), protocols: []edition.Protocol{{Name: "forms", Publisher: f}}, o: o}.gateway(t)
	ask := func(from, method, uri string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, PagePath, nil)
		r.RemoteAddr = from + ":1"
		r.Header.Set("X-Forwarded-Method", method)
		r.Header.Set("X-Forwarded-Uri", uri)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w
	}
	for _, tt := range []struct {
		method, uri string
		header      []string
		answers     bool
	}{
		{"GET", "/a/", nil, false},
		{"GET", "/a/", []string{"Accept", "text/html"}, false},
		{"GET", "/a/", []string{"Accept", formType}, true},
		{"HEAD", "/a/", []string{"Accept", formType}, true},
		{"POST", "/a/", []string{"Accept", formType}, false},
		{"GET", "/a/form", nil, true},
		{"GET", "/a/?key=x&b", nil, false},
		{"GET", "/robots.txt", nil, true},
		{"GET", "/proof.txt", nil, true},
		{"GET", "/.well-known/ai-catalog.json", nil, true},
		{"GET", "/.well-known/mcp/server-card.json", nil, true},
		{"GET", "/mcp/server-card", nil, true},
		{"GET", "/nothing", nil, false},
		{"GET", "/a/", []string{"User-Agent", "ClaudeBot/1.0"}, true},
		{"POST", "/a/", []string{"User-Agent", "ClaudeBot/1.0"}, true},
		{"GET", "//", nil, false},
		{"GET", "*", nil, false},
		{"GET", "", nil, false},
	} {
		w := ask("127.0.0.1", tt.method, tt.uri, tt.header...)
		want := http.StatusNoContent
		if tt.answers {
			want = http.StatusForbidden
		}
		if w.Code != want || (w.Header().Get("Millrace-Answer") != "") != tt.answers {
			t.Errorf("%s %s %q: %d %v", tt.method, tt.uri, tt.header, w.Code, w.Header())
		}
	}
	if writes.Load() != 0 {
		t.Errorf("%d documents rendered", writes.Load())
	}
	w := ask("127.0.0.1", "GET", "/a/")
	if h := w.Header(); !strings.Contains(h.Get("Link"), "/a/form") || h.Get("Vary") != "Accept" {
		t.Errorf("fields of a page: %v", h)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	proxy.MarkRead(r)
	secret := r.Header.Get("Millrace-Read")
	if w := ask("127.0.0.1", "GET", "/robots.txt", "Millrace-Read", secret); w.Code != http.StatusNoContent || w.Header().Get("Link") != "" {
		t.Errorf("a request of millrace itself: %d %v", w.Code, w.Header())
	}
	if w := ask("127.0.0.1", "GET", "/a/", "Millrace-Read", "site", "User-Agent", "ClaudeBot/1.0"); w.Code != http.StatusForbidden {
		t.Errorf("a forged mark: %d", w.Code)
	}
	if w := ask("203.0.113.9", "GET", "/a/"); w.Code != http.StatusNotFound || w.Header().Get("Vary") == "Accept" {
		t.Errorf("another client: %d %v", w.Code, w.Header())
	}
	o.Place = sites.Standalone
	g = setup{files: site(), protocols: []edition.Protocol{{Name: "forms", Publisher: f}}, o: o}.gateway(t)
	if w := ask("127.0.0.1", "GET", "/a/"); w.Code != http.StatusNotFound {
		t.Errorf("standalone: %d", w.Code)
	}
}
