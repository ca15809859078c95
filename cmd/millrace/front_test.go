package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// behindFront is a site's own server. It records the Host of each request.
type behindFront struct {
	*httptest.Server
	mu    sync.Mutex
	hosts []string
}

func newBehind(t *testing.T, dir string) *behindFront {
	t.Helper()
	b := new(behindFront)
	files := http.FileServer(http.Dir(dir))
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		if !slices.Contains(b.hosts, r.Host+" "+r.Header.Get("X-Forwarded-Proto")) {
			b.hosts = append(b.hosts, r.Host+" "+r.Header.Get("X-Forwarded-Proto"))
		}
		b.mu.Unlock()
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, "posted to ", r.URL.RequestURI())
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

// With --origin, the site's own address has both its pages, which the origin still serves, and the
// documents. millrace reads the pages from the origin only, with the site's host name.
func TestFront(t *testing.T) {
	t.Parallel()
	b := newBehind(t, copySite(t, "handbook"))
	s := serve(t, "http://handbook.test/", "--origin", b.URL)
	if s.url != "http://handbook.test/" {
		t.Fatalf("the base is %s", s.url)
	}
	addr := address(s)
	ask := func(method, path, host string) (int, http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(addr, "/")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(body)
	}
	code, _, list := ask("GET", "/llm-pages.json", "handbook.test")
	if code != 200 || !strings.Contains(list, `"cUrl":"http://handbook.test/about/"`) || !strings.Contains(list, `"mUrl":"http://handbook.test/about/llm.json"`) {
		t.Fatalf("%d %s", code, list)
	}
	code, h, page := ask("GET", "/about/", "handbook.test")
	if code != 200 || !strings.Contains(strings.Join(h["Link"], ","), "http://handbook.test/about/llm.json") || !strings.Contains(page, "</html>") {
		t.Errorf("%d %v\n%s", code, h, page)
	}
	if code, _, body := ask("POST", "/wp-admin/x?y", "www.handbook.test"); code != 202 || body != "posted to /wp-admin/x?y" {
		t.Errorf("%d %s", code, body)
	}
	if code, _, _ := ask("GET", "/about/", "evil.test"); code != 421 {
		t.Errorf("another site: %d", code)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.hosts)
	for _, asked := range b.hosts {
		if host, proto, _ := strings.Cut(asked, " "); host != "handbook.test" && host != "www.handbook.test" || proto != "http" {
			t.Errorf("the site's server received the Host %q", asked)
		}
	}
}

// To try --origin, only the address of the origin is needed: the URL of the site is then that of
// millrace. The source can also be a folder.
func TestFrontOfItself(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	b := newBehind(t, dir)
	for _, source := range []string{b.URL, dir} {
		s := serve(t, source, "--origin", b.URL, "--store", filepath.Join(t.TempDir(), "s.db"))
		_, _, list := get(t, s.url+"llm-pages.json")
		if !strings.Contains(list, `"cUrl":"`+s.url+`about/"`) {
			t.Fatalf("%s", list)
		}
		code, h, _ := get(t, s.url+"about/")
		if code != 200 || !strings.Contains(strings.Join(h["Link"], ","), s.url+"about/llm.json") {
			t.Errorf("%s: %d %v", source, code, h)
		}
		s.stop()
	}
}

func TestFrontUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code string
	}{
		{[]string{dir, "--hosts", "x.test"}, "usage/hosts"},
		{[]string{dir, "--origin", "127.0.0.1:8000"}, "usage/origin"},
		{[]string{dir, "--origin", "ftp://127.0.0.1"}, "usage/origin"},
		{[]string{dir, "--origin", "http://127.0.0.1:8000/blog/"}, "usage/origin"},
		{[]string{dir, "--origin", "http://u:p@127.0.0.1:8000/"}, "usage/origin"},
		{[]string{dir, "--origin", "http://127.0.0.1:8000", "--origin-timeout", "0s"}, "usage/origin-timeout"},
		{[]string{dir, "--origin", "http://127.0.0.1:8000", "--hosts", "http://x.test/"}, "usage/hosts"},
		{[]string{"https://x.test/", "--origin", "http://127.0.0.1:8000", "--base-url", "https://y.test/", "--listen", "127.0.0.1:0"}, "usage/base-url"},
		{[]string{"https://x.test/", "--origin", "http://127.0.0.1:38911", "--listen", "127.0.0.1:38911"}, "usage/origin"},
	} {
		exit, code, out := failure(t, nil, append([]string{"serve"}, c.args...)...)
		if exit != exitUsage || code != c.code {
			t.Errorf("%v: %d %s, want %s: %s", c.args, exit, code, c.code, out)
		}
	}
}
