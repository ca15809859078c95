package gateway

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
)

// lists has documents at names that sites often use themselves.
type lists struct{ lister }

func (lists) All(context.Context, millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		for _, at := range []string{"/llms.txt", "/llms-full.txt", "/docs/llms.txt", "/feed.atom", "/feed.json", "/a/index.md", "/list.txt"} {
			if !yield(&millrace.Document{
				Path: at, Large: true, Header: http.Header{"Content-Type": {"text/plain"}},
				Parts: millrace.SinglePart("", func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "ours"); return err }),
			}, nil) {
				return
			}
		}
	}
}

// A site's own file takes precedence over a document at the same common name. All other
// documents are served.
func TestOwnNames(t *testing.T) {
	protocols := []edition.Protocol{{Name: "lists", Publisher: lists{}}}
	own := inMemory("index.html", "<p>home", "llms.txt", "theirs", "docs/llms.txt", "theirs", "feed.json", "theirs", "a/index.md", "theirs", "list.txt", "theirs")
	g := setup{files: own, protocols: protocols}.gateway(t)
	noFiles := setup{files: site(), protocols: protocols}.gateway(t)
	for at, want := range map[string]string{
		"/llms.txt": "theirs", "/docs/llms.txt": "theirs", "/feed.json": "theirs", "/a/index.md": "theirs",
		"/llms-full.txt": "ours", "/feed.atom": "ours", // the site has no such file
		"/list.txt": "ours", // the site has no file of this name
	} {
		if w := ask(g, "GET", at); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", at, w.Code, w.Body, want)
		}
		if w := ask(noFiles, "GET", at); w.Code != 200 || w.Body.String() != "ours" {
			t.Errorf("%s of a site without such a file: %d %q", at, w.Code, w.Body)
		}
	}
	if w := ask(g, "HEAD", "/llms.txt"); w.Code != 200 || w.Header().Get("Content-Length") != "6" {
		t.Errorf("HEAD: %d %v", w.Code, w.Header())
	}
}

// A catch-all HTML page is not the site's own list, and a failing server hides no document.
// The server is probed once, not for every request.
func TestOwnNamesInFront(t *testing.T) {
	var status, asked atomic.Int32
	var kind atomic.Value
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/llms.txt" && r.Method == http.MethodHead {
			asked.Add(1)
		}
		w.Header().Set("Content-Type", kind.Load().(string))
		w.WriteHeader(int(status.Load()))
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, "theirs")
		}
	})
	for _, c := range []struct {
		name   string
		status int32
		kind   string
		want   string
	}{
		{"a file", 200, "text/plain", "theirs"},
		{"of an unknown type", 200, "application/octet-stream", "theirs"},
		{"a page for every path", 200, "text/html; charset=utf-8", "ours"},
		{"none", 404, "text/plain", "ours"},
		{"elsewhere", 302, "text/plain", "ours"},
		{"a failure", 500, "text/plain", "ours"},
		{"too many requests", 429, "text/plain", "ours"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status.Store(c.status)
			kind.Store(c.kind)
			asked.Store(0)
			g := setup{o: Options{Origin: origin}, protocols: []edition.Protocol{{Name: "lists", Publisher: lists{}}}}.gateway(t)
			for range 3 {
				if w := ask(g, "GET", "/llms.txt"); w.Body.String() != c.want {
					t.Fatalf("%d %q, want %q", w.Code, w.Body, c.want)
				}
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("the server got %d requests", n)
			}
		})
	}
}

// A canceled request does not decide whether the site has its own file.
func TestOwnNamesBrokenOff(t *testing.T) {
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "theirs")
	})
	g := setup{o: Options{Origin: origin}, protocols: []edition.Protocol{{Name: "lists", Publisher: lists{}}}}.gateway(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	func() {
		defer func() { _ = recover() }() // the server would recover this panic
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/llms.txt", http.NoBody))
	}()
	if w := ask(g, "GET", "/llms.txt"); w.Body.String() != "theirs" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
