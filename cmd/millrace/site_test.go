package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// pull runs `millrace pull --json` over TCT and returns its report.
func pull(t *testing.T, url, file string, args ...string) agent.Report {
	t.Helper()
	return pullBest(t, url, file, append([]string{"--via", "tct-01"}, args...)...)
}

// pullBest is pull without --via.
func pullBest(t *testing.T, url, file string, args ...string) agent.Report {
	t.Helper()
	code, out, errs := command(t, nil, append([]string{"pull", url, "--store", file, "--allow-private", "--json"}, args...)...)
	var r agent.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	if code != 0 || r.Error != "" {
		t.Fatalf("exit %d: %s\n%s", code, r.Error, errs)
	}
	return r
}

// openStore opens a store until the test ends.
func openStore(t *testing.T, file string, readOnly bool) store.Store {
	t.Helper()
	st, err := stores.Open(t.Context(), file, &store.Options{ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// storedPages returns the pages of a site that a mirror shows, by URL.
func storedPages(t *testing.T, file, name, base string) map[string]*millrace.Page {
	t.Helper()
	ctx := t.Context()
	st := openStore(t, file, false)
	site, err := st.Site(ctx, name, base)
	if err != nil {
		t.Fatal(err)
	}
	v, err := site.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]*millrace.Page{}
	for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if p, visible := (millrace.Visibility{Exclude: []string{}}).Apply(p); visible {
			pages[p.URL] = p
		}
	}
	return pages
}

// copyStore copies the committed pages of a store that a process has open.
func copyStore(t *testing.T, file string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(file + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue // no process has it open
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// wantMirror fails unless a mirror equals the served pages, reduced to the fields that the
// protocol carries.
func wantMirror(t *testing.T, via, mirror, served, dir, base string) {
	t.Helper()
	proto, err := protocols(via)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*millrace.Page{}
	pages := storedPages(t, copyStore(t, served), "folder "+dir, base)
	site := millrace.Site{Base: base}
	if home := pages[base]; home != nil {
		site.Language = home.Language
	}
	for url, p := range pages {
		if c := proto[0].Carry(site, p); c != nil {
			c.Version = ""
			want[url] = c
		}
	}
	got := storedPages(t, mirror, base, base)
	for _, p := range got {
		p.Version = ""
	}
	if len(want) == 0 {
		t.Fatal("no page is served")
	}
	if d := cmp.Diff(want, got); d != "" {
		if len(d) > 4000 {
			d = d[:4000]
		}
		t.Fatalf("the mirror differs from the served pages (-Carry of the store +mirror):\n%s", d)
	}
}

// carried tests changes of a folder, and the cost of mirroring them.
func carried(t *testing.T, dir, page, phrase, gone string) {
	file := filepath.Join(t.TempDir(), "served.db")
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, dir, "--store", file)

	first := pull(t, s.url, mirror)
	if first.Added == 0 || len(first.Skipped) != 0 || len(first.Notes) != 0 {
		t.Fatalf("first pull: %+v", first)
	}
	wantMirror(t, "tct-01", mirror, file, dir, s.url)

	nothing := pull(t, s.url, mirror)
	if nothing.Requests != 1 || nothing.Added+nothing.Updated+nothing.Deleted != 0 {
		t.Errorf("nothing changed, and a pull cost %d requests: %+v", nothing.Requests, nothing)
	}

	name := filepath.Join(dir, filepath.FromSlash(page))
	html, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, header, _ := get(t, s.url+"llm-pages.json")
	list := header.Get("Etag")
	if !strings.Contains(string(html), phrase) {
		t.Fatalf("%s does not contain %q", page, phrase)
	}
	write(t, name, strings.Replace(string(html), phrase, "Once upon a time, "+phrase, 1))
	eventually(t, "the edit is published", func() bool { return published(t, s, &list) })
	edited := pull(t, s.url, mirror)
	if edited.Requests != 2 || edited.Updated != 1 || edited.Added+edited.Deleted != 0 {
		t.Errorf("one page edited: %+v", edited)
	}
	wantMirror(t, "tct-01", mirror, file, dir, s.url)

	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(gone))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the removal is published", func() bool { return published(t, s, &list) })
	removed := pull(t, s.url, mirror)
	if removed.Requests != 1 || removed.Deleted != 1 || removed.Added+removed.Updated != 0 {
		t.Errorf("one page removed: %+v", removed)
	}
	wantMirror(t, "tct-01", mirror, file, dir, s.url)
	if code := s.stop(); code != 0 {
		t.Errorf("serve ended with %d:\n%s", code, s.out)
	}
}

// published reports whether the list's ETag changed.
func published(t *testing.T, s *served, etag *string) bool {
	code, header, _ := get(t, s.url+"llm-pages.json", "If-None-Match", *etag)
	if code == 304 {
		return false
	}
	*etag = header.Get("Etag")
	return true
}

func TestHandbookCarried(t *testing.T) {
	t.Parallel()
	carried(t, copySite(t, "handbook"), "articles/reading-a-river/index.html", "Two numbers say", "about/index.html")
}

// A new template does not change the content (TCT draft-01, section 1.4.3). All files are
// rewritten, but only the item of the edited page changes.
func TestTemplateInvariance(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	s := serve(t, dir)
	_, header, before := get(t, s.url+"llm-pages.json")
	list := header.Get("Etag")
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".html" {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		html := strings.Replace(string(b), "Written by the people", "Put down by the folk", 1)
		html = strings.Replace(html, "</head>", "<style>main { color: teal }</style><script>let x</script></head>", 1)
		html = strings.Replace(html, "Two numbers say", "These two numbers say", 1)
		write(t, name, html)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the edit is published", func() bool { return published(t, s, &list) })
	_, _, after := get(t, s.url+"llm-pages.json")
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	if len(was) != len(is) {
		t.Fatalf("%d lines, then %d", len(was), len(is))
	}
	for i := range is {
		if moved := was[i] != is[i]; moved != strings.Contains(is[i], "/reading-a-river/") {
			t.Errorf("changed: %t: %s", moved, is[i])
		}
	}
	_, _, page := get(t, s.url+"articles/reading-a-river/")
	if !strings.Contains(page, "Put down by the folk") {
		t.Error("the template did not change")
	}
}

// pgdoc returns a copy of the PostgreSQL manual, a real site of 1,100 pages; in short
// mode a part of it.
func pgdoc(t *testing.T) string {
	t.Helper()
	if !testkit.Soaking() {
		return pgdocOf(t, "index.", "tutorial", "queries")
	}
	return pgdocOf(t, "")
}

// pgdocOf returns a copy of the manual with all files except pages whose names have none of the
// prefixes.
func pgdocOf(t *testing.T, starts ...string) string {
	t.Helper()
	from, err := filepath.EvalSymlinks(testkit.Data(t, "MILLRACE_TEST_PGDOC"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "manual")
	err = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if filepath.Ext(name) == ".html" && !slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(d.Name(), start) }) {
			return nil
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestManualCarried(t *testing.T) {
	t.Parallel()
	carried(t, pgdocOf(t, "index.", "tutorial", "queries", "ddl", "functions"), "tutorial-join.html", "Thus far, our queries", "tutorial-agg.html")
}

// A restart serves the previous edition at once, and then finds the changes.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "served.db")
	args := []string{dir, "--store", file, "--base-url", "http://handbook.example/"}
	s := serve(t, args...)
	addr := address(s)
	_, before, _ := get(t, addr+"llm-pages.json")
	s.stop()

	if err := os.Rename(filepath.Join(dir, "index.html"), filepath.Join(dir, "hidden")); err != nil {
		t.Fatal(err)
	}
	s = serve(t, args...)
	addr = address(s)
	if strings.Contains(s.out.String(), " deleted=") {
		t.Log("the change was published before the first request, so the previous edition cannot be tested")
	} else if _, after, _ := get(t, addr+"llm-pages.json"); after.Get("Etag") != before.Get("Etag") {
		t.Errorf("list %s before, %s after the restart", before.Get("Etag"), after.Get("Etag"))
	}
	etag := before.Get("Etag")
	eventually(t, "the change is published", func() bool {
		code, h, _ := get(t, addr+"llm-pages.json")
		return code == 200 && h.Get("Etag") != etag
	})
}

// address returns the listen address from the log of a server with a base URL.
func address(s *served) string {
	_, rest, _ := strings.Cut(s.out.String(), " address=")
	addr, _, _ := strings.Cut(rest, "\n")
	return "http://" + addr + "/"
}

// Hiding a path removes its pages from every mirror.
func TestHide(t *testing.T) {
	t.Parallel()
	dir, file, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "served.db"), filepath.Join(t.TempDir(), "mirror.db")
	ln := "127.0.0.1:" + testkit.FreePort(t)
	start := func(args ...string) *served {
		return serve(t, append([]string{dir, "--store", file, "--listen", ln}, args...)...)
	}
	s := start()
	all := pull(t, s.url, mirror)
	s.stop()
	s = start("--exclude", "/about", "--authors", "hidden")
	code, _, _ := get(t, s.url+"about/llm.json")
	if code != 404 {
		t.Errorf("a hidden page has status %d", code)
	}
	r := pull(t, s.url, mirror)
	if r.Deleted != 1 || r.Updated == 0 {
		t.Errorf("after hiding /about and authors, of %d pages: %+v", all.Added, r)
	}
	for url, p := range storedPages(t, mirror, s.url, s.url) {
		if p.Author != "" {
			t.Errorf("%s still has its author %q", url, p.Author)
		}
	}
	s.stop()
	s = start()
	if r := pull(t, s.url, mirror); r.Added != 1 {
		t.Errorf("after showing it again: %+v", r)
	}
}

// A served mirror keeps the canonical URLs of its pages.
func TestServeMirror(t *testing.T) {
	t.Parallel()
	mirror, again := filepath.Join(t.TempDir(), "mirror.db"), filepath.Join(t.TempDir(), "again.db")
	s := serve(t, copySite(t, "handbook"))
	pull(t, s.url, mirror)
	s.stop()
	s2 := serve(t, mirror)
	_, _, list := get(t, s2.url+"llm-pages.json")
	if !strings.Contains(list, `"cUrl":"`+s.url+`about/","mUrl":"`+s2.url+`about/llm.json"`) {
		t.Errorf("list:\n%.600s", list)
	}
	_, _, home := get(t, s2.url)
	for _, start := range []string{"/llm-pages.json", "/.well-known/openfeeder.json"} {
		if strings.Count(home, `<a href="`+start+`">`) != 1 {
			t.Errorf("the home page does not name %s once:\n%s", start, home)
		}
	}
	r := pull(t, s2.url, again)
	if r.Added == 0 || len(r.Skipped) > 0 {
		t.Errorf("pull of a mirror: %+v", r)
	}
}

func TestCheckServed(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	for _, name := range []string{"scp", "tct-01", "tct-00"} {
		code, out, errs := command(t, nil, "check", s.url, "--protocol", name, "--allow-private", "--json")
		var r struct {
			Protocols map[string]struct {
				Found bool
				Must  struct{ Pass, Fail int }
			}
			Findings []struct{ Rule, URL, Got, Want, Level string }
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		p := r.Protocols[name]
		if code != 0 || !p.Found || p.Must.Pass < 10 || p.Must.Fail != 0 {
			t.Errorf("exit %d: %s", code, out)
		}
		for _, f := range r.Findings {
			t.Errorf("finding: %+v", f)
		}
	}
}

// A pull that is killed at any moment loses nothing and repeats little.
func TestKillPull(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("testing.Short: kills child processes")
	}
	s := serve(t, copySite(t, "handbook"), "--log-level", "error")
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	killed := 0
	kills := testkit.Size(0, 8, 60)
	for i := range kills {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+i*450/kills)*time.Millisecond)
		c := asProcess(ctx, t, "pull", s.url, "--store", mirror, "--allow-private", "--quiet", "--delay", "3ms")
		if out, err := c.CombinedOutput(); err != nil && ctx.Err() == nil {
			t.Fatalf("pull %d: %v\n%s", i, err, out)
		}
		if ctx.Err() != nil {
			killed++
		}
		cancel()
	}
	if killed == 0 {
		t.Error("no process was killed")
	}
	r := pull(t, s.url, mirror)
	fresh := filepath.Join(t.TempDir(), "fresh.db")
	pull(t, s.url, fresh)
	a, b := storedPages(t, mirror, s.url, s.url), storedPages(t, fresh, s.url, s.url)
	if !slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) {
		t.Errorf("%d pages after the kills, %d in a new mirror; last pull %+v", len(a), len(b), r)
	}
}

func TestServeJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"), "--json", "--quiet")
	var r serveReport
	eventually(t, "the report", func() bool { return json.Unmarshal([]byte(s.stdout.String()), &r) == nil })
	if r.URL != s.url || r.Pages < 10 {
		t.Errorf("%+v", r)
	}
	if got := strings.TrimSpace(s.out.String()); got != "ready "+s.url {
		t.Errorf("--quiet printed: %s", got)
	}
}

// serve reports every unreadable file of the troubles site and publishes all others.
func TestTroublesFolder(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "odd"))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	r := pull(t, s.url, mirror)
	if r.Added < 5 {
		t.Errorf("%+v\n%s", r, s.out)
	}
	if !strings.Contains(s.out.String(), " code=binary") {
		t.Errorf("nothing was reported:\n%s", s.out)
	}
	for url := range storedPages(t, mirror, s.url, s.url) {
		if strings.Contains(url, "noindex") {
			t.Errorf("%s is public", url)
		}
	}
	fmt.Fprintln(t.Output(), s.out)
}

// If a page's document fails, pull reads the HTML, reports it and sends no validator.
// An item whose page is absent too is skipped.
func TestPullFallsBack(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	conditions := map[string]string{}
	mux := http.NewServeMux()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		conditions[r.URL.Path] += r.Header.Get("If-None-Match")
		mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	defer srv.Close()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `</list>; rel="index"; type="application/json"`)
	})
	mux.HandleFunc("/list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, `{"version":1,"items":[`+
			`{"cUrl":"%[1]s/page/","mUrl":"%[1]s/page/llm.json","etag":"sha256-1"},`+
			`{"cUrl":"%[1]s/none/","mUrl":"%[1]s/none/llm.json","etag":"sha256-2"}]}`, srv.URL)
	})
	mux.HandleFunc("/page/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><title>A page</title><main><h1>A page</h1><p>The words of a page without a document.</p></main>")
	})
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	for _, added := range []int{1, 0} {
		r := pull(t, srv.URL, mirror)
		if r.Added != added || len(r.Skipped) != 1 || r.Skipped[0].URL != srv.URL+"/none/" || len(r.Ways) != 2 ||
			r.Ways[1].Protocol != "crawl" || r.Ways[1].Pages != 1 || r.Ways[1].Code != "http-404" {
			t.Errorf("%+v", r)
		}
	}
	if p := storedPages(t, mirror, srv.URL+"/", srv.URL+"/")[srv.URL+"/page/"]; p == nil || !strings.Contains(p.Text(), "The words") {
		t.Errorf("held: %+v", p)
	}
	for path, tags := range conditions {
		if tags != "" {
			t.Errorf("%s was requested with If-None-Match: %s", path, tags)
		}
	}
}

// check of a page URL keeps the path, even if the site has no list there.
func TestCheckPage(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	defer srv.Close()
	mux.HandleFunc("/page/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `<llm.json>; rel="alternate"; type="application/json"`)
	})
	mux.HandleFunc("/page/llm.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"canonical_url":%q,"hash":"sha256-1"}`, srv.URL+"/page/")
	})
	code, out, errs := command(t, nil, "check", srv.URL+"/page/", "--protocol", "tct-01", "--allow-private", "--json")
	if code != 1 || !strings.Contains(out, `"found": true`) || !strings.Contains(out, "1.5.2/hash-form") {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
}
