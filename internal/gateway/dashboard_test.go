package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/gateway"
)

// The dashboard hides the site's pages at its path and serves no other path.
func TestDashboard(t *testing.T) {
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	board := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		_, _ = io.WriteString(w, r.URL.EscapedPath()+" "+string(body))
	})
	g, err := gateway.New(nil, &gateway.Options{
		Base: "https://example.com/", Origin: site, Dashboard: board, DashboardPath: "/our/board/",
		Policy: &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, path, send, want string
		status                   int
	}{
		{"GET", "/our/board/", "", "/ ", 200},
		{"GET", "/our/board/pages/a%2Fb?q=1", "", "/pages/a%2Fb ", 200},
		{"POST", "/our/board/login", "password=x", "/login password=x", 200},
		{"GET", "/our/board", "", "", 302},
		{"GET", "/our/board/../x", "", "", 404},
		{"GET", "/our/board//x", "", "", 404},
		{"GET", "/our/board/a/%2e%2e/b", "", "", 404},
		{"POST", "/our/board/login", strings.Repeat("x", 65<<10), "", 413},
		{"GET", "/our/boarding", "", "", 404},
		{"GET", "/our", "", "", 404},
		{"GET", "/board/", "", "", 404},
	} {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.send)))
		if w.Code != tt.status || tt.want != "" && w.Body.String() != tt.want {
			t.Errorf("%s %s: %d %q", tt.method, tt.path, w.Code, w.Body)
		}
		its := strings.HasPrefix(tt.path, "/our/board/") || tt.path == "/our/board"
		h := w.Header()
		if its && (h.Get("Cache-Control") != "no-store" || h.Get("X-Robots-Tag") != "noindex, nofollow" || h["Content-Signal"] != nil) {
			t.Errorf("%s %s: %v", tt.method, tt.path, h)
		}
		if !its && h.Get("X-Robots-Tag") != "" {
			t.Errorf("%s %s was served by the dashboard", tt.method, tt.path)
		}
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/our/board/x", io.MultiReader(strings.NewReader(strings.Repeat("x", 65<<10)))))
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body of unknown length: %d", w.Code)
	}
}

func TestDashboardPath(t *testing.T) {
	for _, path := range []string{"", "/", "dashboard", "//x", "/a/../b", "/healthz", "/metrics", "/robots.txt", "/.well-known/x", "/a?b", "https://example.com/x", "/é", "/a b", "/a%20b", "/a;b", `/a\b`, "/<b>"} {
		if _, err := gateway.New(nil, &gateway.Options{Dashboard: http.NotFoundHandler(), DashboardPath: path}); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// service handles one path.
type service string

func (s service) Scope(r *http.Request) (millrace.Scope, bool) {
	return millrace.ScopeRead, r.URL.Path == string(s) && r.Method == http.MethodPost
}

func (s service) Serve(http.ResponseWriter, *http.Request, millrace.Live) error { return nil }

// New refuses a dashboard path that covers the whole site or the path of a handler.
func TestDashboardCovers(t *testing.T) {
	for at, want := range map[string]bool{
		"/docs": false, "/docs/machines/": false, "/docs/machines/mcp": false, "/sites": false, "/sites/docs": false,
		"/mcp": true, "/docs/machines/mcp2": true, "/docs/board": true, "/doc": true, "/sites/docs/board": true,
	} {
		_, err := gateway.New(nil, &gateway.Options{
			Base: "https://example.com/sites/docs/", EndpointBase: "https://example.com/docs/machines/",
			Service: service("/mcp"), ServiceName: "mcp", Dashboard: http.NotFoundHandler(), DashboardPath: at,
		})
		if err == nil != want || err != nil && !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v", at, err)
		}
	}
}
