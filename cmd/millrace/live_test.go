package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/agent"
)

// liveSite serves a folder like a static web server and counts requests.
func liveSite(t *testing.T, dir string, delay time.Duration) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	files := http.FileServer(http.Dir(dir))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/", requests
}

// crawlInto runs `millrace pull --json` on a site without a protocol.
func crawlInto(t *testing.T, url, file string, args ...string) agent.Report {
	t.Helper()
	code, out, errs := command(t, nil, append([]string{"pull", url, "--store", file, "--allow-private", "--json"}, args...)...)
	var r agent.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	if code != 0 || r.Error != "" || r.Via != "crawl" {
		t.Fatalf("exit %d by %q: %s\n%s", code, r.Via, r.Error, errs)
	}
	return r
}

// A pull crawls a site if there is no other way.
func TestPullCrawls(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	url, _ := liveSite(t, dir, 0)
	first := crawlInto(t, url, file)
	want := storedPages(t, ingested(t, dir, url), "folder "+dir, url)
	if first.Added < 10 || len(first.Ways) != 1 || first.Ways[0].Protocol != "crawl" || first.Ways[0].Pages != first.Added {
		t.Errorf("first pull: %+v", first)
	}
	got := storedPages(t, file, url, url)
	for u, p := range want {
		if !strings.HasPrefix(u, url) {
			continue // the page has a canonical URL elsewhere
		}
		if got[u] == nil || got[u].Text() != p.Text() {
			t.Errorf("%s differs between mirror and folder", u)
		}
	}
	second := crawlInto(t, url, file, "--via", "crawl")
	if second.Added+second.Updated+second.Deleted != 0 || second.Requests > int64(first.Added)+6 {
		t.Errorf("nothing changed: %+v", second)
	}
	name := filepath.Join(dir, "about", "index.html")
	html, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, strings.Replace(string(html), "Alderford is a mill", "Alderford was a mill", 1))
	later := time.Now().Add(2 * time.Second) // a server's dates have whole seconds
	if err := os.Chtimes(name, later, later); err != nil {
		t.Fatal(err)
	}
	if third := crawlInto(t, url, file); third.Updated != 1 || third.Added+third.Deleted != 0 {
		t.Errorf("one page was edited: %+v", third)
	}
}

// ingested returns a store with the pages of a folder.
func ingested(t *testing.T, dir, base string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ingested.db")
	serve(t, dir, "--store", file, "--base-url", base).stop()
	return file
}

// serve publishes a live site like a folder; the pages keep their URLs.
func TestServeLive(t *testing.T) {
	t.Parallel()
	url, requests := liveSite(t, copySite(t, "handbook"), 0)
	file := filepath.Join(t.TempDir(), "live.db")
	s := serve(t, url, "--allow-private", "--store", file)
	_, _, list := get(t, s.url+"llm-pages.json")
	if !strings.Contains(list, `"`+url+`about/"`) || !strings.Contains(list, `"`+s.url+`about/llm.json"`) {
		t.Errorf("the list does not map the site's pages to the documents:\n%.600s", list)
	}
	if code, _, body := get(t, s.url+"about/llm.json"); code != 200 || !strings.Contains(body, "Alderford") {
		t.Errorf("%d %s", code, body)
	}
	s.stop()
	first := requests.Load()
	s = serve(t, url, "--allow-private", "--store", file, "--base-url", s.url)
	if _, _, again := get(t, address(s)+"llm-pages.json"); again != list {
		t.Error("the list changed after a restart")
	}
	if n := requests.Load() - first; n > first {
		t.Errorf("a restart cost %d requests, the first start %d", n, first)
	}
}

// A killed crawl resumes where it stopped.
func TestKillCrawl(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("testing.Short: kills child processes")
	}
	dir := t.TempDir()
	const pages = 200
	for i := range pages {
		links := ""
		for k := 2*i + 1; k <= 2*i+2 && k < pages; k++ {
			links += fmt.Sprintf(`<li><a href="/p%d.html">Page %d</a>`, k, k)
		}
		name := fmt.Sprintf("p%d.html", i)
		if i == 0 {
			name = "index.html"
		}
		write(t, filepath.Join(dir, name), fmt.Sprintf("<html lang=en><title>Page %d</title><nav><ul>%s</ul></nav>"+
			"<main><h1>Page %d</h1><p>This is the page with the number %d, and it says nothing else of any interest.</p></main>", i, links, i, i))
	}
	url, requests := liveSite(t, dir, 10*time.Millisecond)
	file := filepath.Join(t.TempDir(), "mirror.db")
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		c := asProcess(ctx, t, "pull", url, "--via", "crawl", "--store", file, "--allow-private", "--quiet")
		before := requests.Load()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "some pages were requested", func() bool { return requests.Load() >= before+60 })
		time.Sleep(1200 * time.Millisecond) // a batch is stored at least every second
		cancel()
		_ = c.Wait()
	}
	r := crawlInto(t, url, file, "--via", "crawl")
	fresh := filepath.Join(t.TempDir(), "fresh.db")
	crawlInto(t, url, fresh, "--via", "crawl")
	a, b := storedPages(t, file, url, url), storedPages(t, fresh, url, url)
	if len(b) != pages || !slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) {
		t.Errorf("%d pages after the kills, %d in a new mirror; last pull %+v", len(a), len(b), r)
	}
	if r.Added == pages {
		t.Error("the last pull started over")
	}
}

// A site that looks like a WordPress without API is crawled, and the log says so.
func TestWordPressWithoutAPI(t *testing.T) {
	t.Parallel()
	files := http.FileServer(http.Dir(copySite(t, "handbook")))
	var site *httptest.Server
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/wp-json/") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"code":"rest_disabled","message":"no","data":{"status":401}}`)
			return
		}
		w.Header().Set("Link", `<`+site.URL+`/wp-json/>; rel="https://api.w.org/"`)
		files.ServeHTTP(w, r)
	}))
	defer site.Close()
	for _, as := range [][]string{nil, {"--as", "wordpress"}} {
		s := serve(t, append([]string{site.URL + "/", "--allow-private"}, as...)...)
		if _, _, list := get(t, s.url+"llm-pages.json"); strings.Count(list, `"mUrl"`) < 10 {
			t.Errorf("the list:\n%.300s", list)
		}
		if out := s.out.String(); !strings.Contains(out, " code=rest-disabled") {
			t.Errorf("%v: the log does not say that the site is crawled:\n%s", as, out)
		}
		s.stop()
	}
}

// serve distinguishes a Markdown tree from an HTML folder.
func TestServeMarkdown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "index.md"), "# The mill\n\nA mill by the *river*. See [the wheel](wheel.md).\n")
	write(t, filepath.Join(dir, "wheel.md"), "---\ntitle: The wheel\n---\n\nTwelve buckets, each of oak.\n")
	s := serve(t, dir)
	_, _, list := get(t, s.url+"llm-pages.json")
	if strings.Count(list, `"mUrl"`) != 2 {
		t.Fatalf("the list:\n%s", list)
	}
	if code, _, body := get(t, s.url+"wheel/llm.json"); code != 200 || !strings.Contains(body, "Twelve buckets") {
		t.Errorf("%d %s", code, body)
	}
	etag := ""
	_, header, _ := get(t, s.url+"llm-pages.json")
	etag = header.Get("Etag")
	write(t, filepath.Join(dir, "wheel.md"), "---\ntitle: The wheel\n---\n\nThirteen buckets, each of oak.\n")
	eventually(t, "the edit is published", func() bool { return published(t, s, &etag) })
	if _, _, body := get(t, s.url+"wheel/llm.json"); !strings.Contains(body, "Thirteen") {
		t.Error(body)
	}
}

// A pull of a site that disallows everything fails with a clear error.
func TestPullDisallowed(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	write(t, filepath.Join(dir, "robots.txt"), "User-agent: *\nDisallow: /\n")
	url, _ := liveSite(t, dir, 0)
	file := filepath.Join(t.TempDir(), "mirror.db")
	if exit, code, out := failure(t, nil, "pull", url, "--store", file, "--allow-private"); exit != 1 || code != "robots-disallow" || !strings.Contains(out, "Disallow: /") {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	if r := crawlInto(t, url, file, "--via", "crawl", "--ignore-policy"); r.Added < 10 {
		t.Errorf("with --ignore-policy: %+v", r)
	}
	write(t, filepath.Join(dir, "robots.txt"), "User-agent: *\nDisallow: /tags/\n")
	later := time.Now().Add(2 * time.Second)
	if err := os.Chtimes(filepath.Join(dir, "robots.txt"), later, later); err != nil {
		t.Fatal(err)
	}
	if r := crawlInto(t, url, filepath.Join(t.TempDir(), "other.db"), "--via", "crawl"); r.Added < 10 {
		t.Errorf("after robots.txt is fixed: %+v", r)
	}
	if r := crawlInto(t, url, file, "--via", "crawl"); r.Deleted+r.UnconfirmedDeletions == 0 {
		t.Errorf("pages that robots.txt now disallows are kept: %+v", r)
	}
}

// Reading a site another way for a while loses nothing: pages that only a crawl finds
// return with the next crawl.
func TestWaysTakeTurns(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	file := filepath.Join(t.TempDir(), "mirror.db")
	first := crawlInto(t, s.url, file, "--via", "crawl")
	// The list names fewer pages than the crawl found: a third would be deleted.
	if listed := pull(t, s.url, file); listed.UnconfirmedDeletions == 0 || listed.Deleted != 0 {
		t.Fatalf("deleted by the first pull: %+v", listed)
	}
	if listed := pull(t, s.url, file); listed.Deleted == 0 || listed.Unchanged >= first.Added {
		t.Fatalf("not deleted by the second pull: %+v", listed)
	}
	again := crawlInto(t, s.url, file, "--via", "crawl")
	if n := len(storedPages(t, file, s.url, s.url)); n != first.Added {
		t.Errorf("the first crawl found %d pages, the last %d: %+v", first.Added, n, again)
	}
}

// If a site is down, serve publishes the last complete scan, under any base URL.
func TestServeLiveDown(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.FileServer(http.Dir(copySite(t, "handbook"))))
	file := filepath.Join(t.TempDir(), "live.db")
	s := serve(t, site.URL, "--allow-private", "--store", file, "--base-url", "http://one.example/")
	_, _, before := get(t, address(s)+"llm-pages.json")
	s.stop()
	site.Close()
	s = serve(t, site.URL, "--allow-private", "--store", file, "--base-url", "http://two.example/")
	_, _, list := get(t, address(s)+"llm-pages.json")
	if strings.ReplaceAll(before, "one.example", "two.example") != list {
		t.Errorf("the list is\n%.300s\nand was\n%.300s", list, before)
	}
	if out := s.out.String(); !strings.Contains(out, " code=connection-refused") {
		t.Errorf("the log does not say that the site is down:\n%s", out)
	}
	if exit, code, out := failure(t, nil, "serve", site.URL, "--allow-private", "--listen", "127.0.0.1:0"); exit != 1 || code != "connection-refused" {
		t.Errorf("a site that was never read: exit %d %s: %s", exit, code, out)
	}
}
