package publish_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/publish"
	"github.com/millrace/millrace/store/memory"
)

// wait waits until a condition is true.
func wait(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition did not become true")
		}
	}
}

// website is a site of linked pages, of which some need a password.
type website struct {
	pages   map[string]string // text by path
	private atomic.Pointer[string]
	upload  atomic.Int64
}

func (s *website) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := s.private.Load(); p != nil && strings.HasPrefix(r.URL.Path, *p) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
	}
	if r.Method == http.MethodPost {
		n, _ := io.Copy(io.Discard, r.Body)
		s.upload.Store(n)
		return
	}
	text, ok := s.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><html lang=en><head><title>About %s</title></head><body><main><h1>About %[1]s</h1><p>%s</p>", r.URL.Path, text)
	for path := range s.pages {
		fmt.Fprintf(w, "<a href=%q>%s</a> ", path, path)
	}
	fmt.Fprintf(w, "</main></body></html>")
}

// A handler is read as a visitor sees it. A page that becomes private disappears from all
// documents, and returns when it becomes public again.
func TestHandler(t *testing.T) {
	t.Parallel()
	own := &website{pages: map[string]string{}}
	for i := range 12 {
		own.pages[fmt.Sprintf("/mill/%d", i)] = "The wheel of the mill is of oak and turns in the race."
	}
	own.pages["/"], own.pages["/office/rent"] = "All mills of the river.", "The rent is due in May."
	private := "/none"
	own.private.Store(&private)
	s := start(t, publish.Handler(own), &publish.Options{BaseURL: "https://shop.example/", Next: own, Public: own})
	eventually(t, s, "/llms.txt", http.StatusOK, "/office/rent")
	if _, body := get(t, s, "/mill/3"); !strings.Contains(body, "<link rel") {
		t.Errorf("no elements in the head:\n%s", body)
	}

	office := "/office"
	own.private.Store(&office)
	s.Changed()
	gone := func() bool {
		for _, path := range []string{"/llms.txt", "/llms-full.txt", "/sitemap.xml", "/llm-sitemap.json"} {
			if _, body := get(t, s, path); strings.Contains(body, "office") || strings.Contains(body, "rent is due") {
				return false
			}
		}
		return true
	}
	wait(t, gone)
	public := "/none"
	own.private.Store(&public)
	s.Changed()
	eventually(t, s, "/llms.txt", http.StatusOK, "/office/rent")

	r := httptest.NewRequest(http.MethodPost, "https://shop.example/upload", strings.NewReader(strings.Repeat("x", 1<<20)))
	s.ServeHTTP(httptest.NewRecorder(), r)
	if n := own.upload.Load(); n != 1<<20 {
		t.Errorf("the site got %d bytes of a POST", n)
	}
}

// A site that is down and was never read cannot be published.
func TestHandlerDown(t *testing.T) {
	t.Parallel()
	down := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	if _, err := publish.New(t.Context(), publish.Handler(down), &publish.Options{BaseURL: "https://shop.example/"}); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// Metrics count requests for documents. The site's own metrics and health paths are not replaced.
func TestMetrics(t *testing.T) {
	t.Parallel()
	own := &website{pages: map[string]string{"/": "All mills.", "/metrics": "Metrics of the site.", "/healthz": "The site is well."}}
	s := start(t, publish.Handler(own), &publish.Options{BaseURL: "https://shop.example/", Next: own})
	get(t, s, "/llms.txt")
	var b strings.Builder
	if err := s.WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`outcome="sent",protocol="web"} 1`, "millrace_edition_pages 3", "millrace_source_scan_failed 0"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in:\n%s", want, b.String())
		}
	}
	for path, want := range map[string]string{"/metrics": "Metrics of the site.", "/healthz": "The site is well."} {
		if _, body := get(t, s, path); !strings.Contains(body, want) {
			t.Errorf("%s: %s", path, body)
		}
	}
}

// Without a reload, a page that becomes private disappears after some minutes, although the source
// has not changed.
func TestPublicLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		program := &shop{}
		program.set("open", "The wheel turns.")
		program.set("rent", "The rent is due in May.")
		var private atomic.Bool
		public := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if private.Load() && r.URL.Path == "/rent" {
				w.WriteHeader(http.StatusForbidden)
			}
		})
		s := start(t, publish.Pages(program.list), &publish.Options{BaseURL: "https://shop.example/", Public: public, Store: memory.New(nil)})
		eventually(t, s, "/llms.txt", http.StatusOK, "/rent")
		private.Store(true)
		time.Sleep(11 * time.Minute)
		if status, body := get(t, s, "/llms.txt"); status != http.StatusOK || strings.Contains(body, "/rent") {
			t.Errorf("%d: %s", status, body)
		}
	})
}

// The pages of a folder are published only if the site serves them to the public, even if they were
// public in an earlier run.
func TestPublicFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{"index.html", "open.html", "office/rent.html", "rewritten.html", "closed.html", "head.html"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		text := []byte("<!doctype html><html lang=en><title>About " + path + "</title><main><h1>" + path + "</h1><p>The wheel turns.</p></main></html>")
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, private := http.FileServer(http.Dir(dir)), atomic.Bool{}
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/rewritten.html":
			r.URL.Path = "/open.html"
		case "/closed.html":
			_, _ = io.WriteString(w, "members only")
			return
		case "/head.html":
			if r.Method != http.MethodHead {
				http.NotFound(w, r)
				return
			}
		}
		if private.Load() && strings.HasPrefix(r.URL.Path, "/office/") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		files.ServeHTTP(w, r)
	})
	st := memory.New(nil)
	run := func() *publish.Server {
		src, err := folder.New(dir, &folder.Options{Base: "https://shop.example/"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = src.Close() })
		s, err := publish.New(context.Background(), src, &publish.Options{BaseURL: "https://shop.example/", Public: site, Store: st, Next: site})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := run()
	eventually(t, s, "/llms.txt", http.StatusOK, "/office/rent")
	_, list := get(t, s, "/llms.txt")
	for _, name := range []string{"rewritten", "closed", "head"} {
		if strings.Contains(list, name) {
			t.Errorf("the site does not serve the file %s.html to the public:\n%s", name, list)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	private.Store(true)
	s = run()
	defer s.Close()
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if status, body := get(t, s, "/llms.txt"); strings.Contains(body, "office") {
			t.Fatalf("%d: %s", status, body)
		}
	}
	eventually(t, s, "/llms.txt", http.StatusOK, "/open.html")
}
