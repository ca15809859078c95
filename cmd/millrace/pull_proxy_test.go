package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// behind is a served folder behind a proxy that counts requests and can alter
// responses.
type behind struct {
	url    string
	dir    string
	file   string // path of the store
	served *served

	mu    sync.Mutex
	asked []string
	// alter may answer the request. It then returns true.
	alter func(w http.ResponseWriter, r *http.Request, site http.Handler) bool
}

// serveBehind serves a folder behind a proxy.
func serveBehind(t *testing.T, dir string, args ...string) *behind {
	t.Helper()
	b := &behind{dir: dir, file: filepath.Join(t.TempDir(), "served.db")}
	var site http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.asked = append(b.asked, r.URL.Path)
		alter := b.alter
		b.mu.Unlock()
		if alter == nil || !alter(w, r, site) {
			site.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	b.url = srv.URL + "/"
	b.served = serve(t, append([]string{dir, "--store", b.file, "--base-url", b.url}, args...)...)
	to, err := url.Parse(address(b.served))
	if err != nil {
		t.Fatal(err)
	}
	site = &httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0), // pulls may end early
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
	}
	return b
}

// set sets alter; nil = pass every request on.
func (b *behind) set(alter func(w http.ResponseWriter, r *http.Request, site http.Handler) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alter = alter
}

// paths returns the paths requested since the last call.
func (b *behind) paths() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.asked
	b.asked = nil
	return out
}

// published waits until the list's ETag changes. The wait scales with the duration of
// the previous edition.
func (b *behind) published(t *testing.T, etag *string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		code, header, _ := get(t, address(b.served)+"llm-pages.json", "If-None-Match", *etag)
		if code != http.StatusNotModified {
			*etag = header.Get("Etag")
			return
		}
	}
	t.Fatal("the change is not published")
}

// manyPages returns a folder of n pages.
func manyPages(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pages")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		write(t, filepath.Join(dir, fmt.Sprintf("p%03d.html", i)), pageText(i, ""))
	}
	return dir
}

// densePages returns a site of n pages that compress poorly. The site is large enough that a
// request for deletions costs less than the list.
func densePages(t *testing.T, n int) string {
	t.Helper()
	dir := manyPages(t, n)
	for i := range n {
		var words []string
		for j := range 20 {
			words = append(words, fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(j)})))
		}
		write(t, filepath.Join(dir, fmt.Sprintf("p%03d.html", i)), pageText(i, strings.Join(words, " ")))
	}
	return dir
}

// pageText returns the HTML of page i with a different text for each i. more is added to the
// text.
func pageText(i int, more string) string {
	words := make([]string, 150)
	for j := range words {
		words[j] = fmt.Sprintf("word%d", (i*7919+j*104729)%9973)
	}
	return fmt.Sprintf("<!DOCTYPE html><title>Page %d</title><main><h1>Page %d</h1><p>%s %s.</p></main>", i, i, strings.Join(words, " "), more)
}

// wantSame fails unless two mirrors have the same pages with the same titles.
func wantSame(t *testing.T, got, want, site string) {
	t.Helper()
	a, b := storedPages(t, got, site, site), storedPages(t, want, site, site)
	if !slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) {
		t.Errorf("%d pages, want %d:\n%v\n%v", len(a), len(b), slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
		return
	}
	for u := range b {
		if a[u].Title != b[u].Title || a[u].Text() != b[u].Text() {
			t.Errorf("%s differs", u)
		}
	}
}
