package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/library"
)

// searched runs `millrace search --json`.
func searched(t *testing.T, args ...string) library.Report {
	t.Helper()
	code, out, errs := command(t, nil, append([]string{"search", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("search %q: exit %d:\n%s", args, code, errs)
	}
	var r library.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

// mirrorOf pulls a test site into a store.
func mirrorOf(t *testing.T, name string) string {
	t.Helper()
	s := serve(t, copySite(t, name), "--store", filepath.Join(t.TempDir(), "store.db"))
	file := filepath.Join(t.TempDir(), "mirror.db")
	pull(t, s.url, file)
	return file
}

func TestSearch(t *testing.T) {
	t.Parallel()
	file := mirrorOf(t, "handbook")
	r := searched(t, "water wheel", "--store", file)
	if len(r.Hits) == 0 || r.Total < len(r.Hits) {
		t.Fatalf("%d of %d hits for water wheel", len(r.Hits), r.Total)
	}
	for i, h := range r.Hits {
		switch {
		case h.URL == "" || h.Title == "" || h.Chunk == "" || h.Snippet == "" || h.Type == "" || i == 0 && len(h.Marks) == 0:
			t.Errorf("hit %d lacks a field: %+v", i, h)
		case h.Relevance < 0 || h.Relevance > 1 || i > 0 && h.Relevance > r.Hits[i-1].Relevance:
			t.Errorf("hit %d has relevance %v after %v", i, h.Relevance, r.Hits[max(0, i-1)].Relevance)
		}
	}
	again := searched(t, "water wheel", "--store", file)
	if a, b := r.Hits, again.Hits; len(a) != len(b) || a[0].URL != b[0].URL || a[0].Relevance != b[0].Relevance {
		t.Error("the same query has different results")
	}
	if r := searched(t, "watre wheeel", "--store", file); len(r.Hits) == 0 || r.Corrected == "" {
		t.Errorf("a misspelled query finds %d hits, corrected to %q", len(r.Hits), r.Corrected)
	}
	least := r.Hits[0].Relevance
	for _, h := range searched(t, "water wheel", "--store", file, "--min-score", "0.5", "--limit", "50").Hits {
		if h.Relevance < 0.5 {
			t.Errorf("--min-score 0.5 returns %v (the best is %v)", h.Relevance, least)
		}
	}
	// No query is an error.
	for _, q := range []string{`"`, "-", "AND OR NOT", "*", "a' OR 1=1; --", "title:", "\x01\x02", "🙂", strings.Repeat("word ", 10_000), `NEAR(a b)`, "x"} {
		code, _, errs := command(t, nil, "search", "--store", file, "--", q)
		if code != 0 {
			t.Errorf("searching for %.20q exits %d: %s", q, code, errs)
		}
	}
	code, out, _ := command(t, nil, "search", "water wheel", "--store", file)
	if code != 0 || !strings.Contains(out, "passages, ") || !strings.Contains(out, r.Hits[0].URL) || strings.Contains(out, "\x1b") {
		t.Errorf("for people: exit %d\n%s", code, out)
	}
}

// search works on the store of a running server, and shows what it publishes.
func TestSearchServed(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "store.db")
	s := serve(t, dir, "--store", file)
	if r := searched(t, "wheel", "--store", file, "--site", s.url); len(r.Hits) == 0 || !strings.HasPrefix(r.Hits[0].URL, s.url) {
		t.Errorf("by the URL of its pages: %+v", r)
	}
	if exit, code, out := failure(t, nil, "search", "wheel", "--store", file, "--site", "https://none.example/"); exit != 2 || code != "usage/site" || !strings.Contains(out, "folder "+dir) {
		t.Errorf("an unknown site: exit %d %s: %s", exit, code, out)
	}
	if r := searched(t, "zymurgy", "--store", file); len(r.Hits) != 0 {
		t.Fatalf("results for an absent word: %+v", r.Hits)
	}
	write(t, filepath.Join(dir, "about", "beer.html"), "<title>Beer</title><main><h1>Beer</h1><p>Zymurgy is how beer is made in old mills, by people who have the time.</p></main>")
	eventually(t, "the new page is found", func() bool {
		r := searched(t, "zymurgy", "--store", file)
		return len(r.Hits) == 1 && strings.HasSuffix(r.Hits[0].URL, "/about/beer.html")
	})
	if err := os.Remove(filepath.Join(dir, "about", "beer.html")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the page is deleted", func() bool { return len(searched(t, "zymurgy", "--store", file).Hits) == 0 })
	if code := s.stop(); code != 0 {
		t.Errorf("serve ended with %d", code)
	}
}

// search works while a site changes, even before its first index.
func TestSearchWhileServing(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "store.db")
	serve(t, dir, "--store", file)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			name := filepath.Join(dir, "about", fmt.Sprintf("beer%d.html", i%20))
			if err := os.WriteFile(name, fmt.Appendf(nil, "<title>Beer</title><main><h1>Beer</h1><p>Brewed %d times in old mills, by people.</p></main>", i), 0o600); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for range 8 {
				if code, _, errs := command(t, nil, "search", "water wheel", "--store", file, "--quiet"); code != 0 {
					t.Errorf("exit %d: %s", code, errs)
				}
			}
		})
	}
	time.AfterFunc(time.Second, func() { close(done) })
	wg.Wait()
}

// If the embedder fails, search reports it and searches only words.
func TestSearchWithoutEmbedder(t *testing.T) {
	t.Parallel()
	file := mirrorOf(t, "handbook")
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "gone fishing", http.StatusTeapot)
	}))
	defer down.Close()
	code, out, errs := command(t, map[string]string{"HOME": t.TempDir(), "MILLRACE_EMBED_KEY": "s3cret-s3cret"},
		"search", "water wheel", "--store", file, "--embed-url", down.URL+"/v1", "--embed-model", "m", "--json")
	var r library.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r.Hits) == 0 || r.Code != "http-418" {
		t.Errorf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if strings.Contains(out+errs, "s3cret") {
		t.Errorf("the key is printed:\n%s%s", out, errs)
	}
}

// In a store of several sites, an exact match takes precedence over a corrected one.
func TestSearchSites(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mirror.db")
	for _, text := range []string{"The whell of the potter.", "The wheel of the mill."} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "index.html"), "<title>Home</title><main><h1>Home</h1><p>"+text+" It turns from morning to evening.</p></main>")
		pull(t, serve(t, dir).url, file)
	}
	for _, word := range []string{"whell", "wheel"} {
		r := searched(t, word, "--store", file)
		if len(r.Hits) != 1 || r.Total != 1 || r.Corrected != "" || !strings.Contains(r.Hits[0].Snippet, word) {
			t.Errorf("%s: %+v", word, r)
		}
	}
	if r := searched(t, "wheal", "--store", file); len(r.Hits) != 2 || r.Corrected == "" {
		t.Errorf("a hit for the corrected query: %+v", r)
	}
}

func TestSearchUsage(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "none.db")
	for _, tt := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"x"}, 2, "usage/store"},
		{[]string{"x", "--store", empty}, 1, "not-found"},
		{[]string{" ", "--store", empty}, 2, "usage"},
		{[]string{"wheel", "-paddles", "--store", empty}, 2, "usage"},
		{[]string{"x", "--store", empty, "--limit", "0"}, 2, "usage/limit"},
		{[]string{"x", "--store", empty, "--min-score", "NaN"}, 2, "usage/min-score"},
		{[]string{"x", "--store", empty, "--embed-model", "m"}, 2, "usage/embed-model"},
		{[]string{"x", "--store", empty, "--embed-url", "http://localhost/v1"}, 2, "usage/embed-url"},
		{[]string{"x", "--store", empty, "--embed-url", "localhost", "--embed-model", "m"}, 2, "usage/embed-url"},
	} {
		exit, code, out := failure(t, nil, append([]string{"search"}, tt.args...)...)
		if exit != tt.exit || code != tt.code {
			t.Errorf("search %q: exit %d %s, want %d %s:\n%s", tt.args, exit, code, tt.exit, tt.code, out)
		}
	}
	if _, err := os.Stat(empty); err == nil {
		t.Error("search created the store")
	}
}
