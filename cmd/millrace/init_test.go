package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/setup"
	"github.com/millrace/millrace/protocol/all"
)

// initSite serves a site for init to probe.
func initSite(t *testing.T, robots string, sitemap ...string) *httptest.Server {
	t.Helper()
	files := http.FileServer(http.Dir(filepath.Join("..", "..", "testdata", "sites", "handbook")))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "nginx/1.22.1")
		switch r.URL.Path {
		case "/robots.txt":
			if robots == "" {
				http.Redirect(w, r, "/loop/robots.txt", http.StatusFound)
				return
			}
			_, _ = w.Write([]byte(robots))
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<html><head><meta name="generator" content="Hand &amp; Pen"></head><body>
				<a href="/about/">About</a> <a href="/Cart?add=1">Cart</a> <a href="/private/x">X</a> <a href="https://elsewhere.example/login">L</a>`))
		case "/sitemap.xml", "/sitemap_index.xml":
			if len(sitemap) == 0 {
				http.NotFound(w, r)
				return
			}
			if strings.HasPrefix(sitemap[0], "<urlset") {
				w.Header().Set("Content-Type", "text/xml")
			} // otherwise the default
			_, _ = w.Write([]byte(sitemap[0]))
		case "/loop/robots.txt":
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// init reports what it finds, and writes a valid file whose examples are valid too.
func TestInit(t *testing.T) {
	t.Parallel()
	site := initSite(t, "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\nContent-Signal: search=yes, ai-input=no\n")
	file := filepath.Join(t.TempDir(), "millrace.yaml")
	code, out, errs := command(t, nil, "init", site.URL, file, "--allow-private", "--json")
	var r setup.Report
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	if d := cmp.Diff([]setup.Hidden{{URL: site.URL + "/Cart?add=1", Reason: "exclude"}, {URL: site.URL + "/private/x", Reason: "robots.txt line 5: Disallow: /private/"}}, r.Hides); d != "" || r.Seen != 3 {
		t.Errorf("of %d (-want +got):\n%s", r.Seen, d)
	}
	if d := cmp.Diff(map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: false, millrace.Search: true}, r.Purposes); d != "" {
		t.Error(d)
	}
	if r.Site != site.URL+"/" || r.As != "crawl" || r.Generator != "Hand & Pen" || r.Server != "nginx/1.22.1" || len(r.Serves) != len(all.Published(nil)) ||
		!slices.ContainsFunc(r.Next, func(n string) bool { return slices.Contains(strings.Fields(n), "nginx") }) {
		t.Errorf("%+v", r)
	}

	for _, r := range []config.Report{configOf(t, file), configOf(t, uncommented(t, file))} {
		got := map[string]any{}
		for _, v := range slices.Concat(r.Values, r.Policy) {
			got[v.Key] = v.Value
		}
		if got["base-url"] != site.URL+"/" || got["allow-private"] != true || got["policy.purposes.ai-train"] != false || got["policy.purposes.search"] != true || len(r.Other) != 0 {
			t.Errorf("%v", got)
		}
	}

	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("other users than the owner can read the file: %v, %v", info, err)
	}

	// init keeps an existing file.
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	exit, refused, out := failure(t, nil, "init", site.URL, file, "--allow-private")
	after, err := os.ReadFile(file)
	if err != nil || exit != exitFailure || refused != "file-exists" || string(before) != string(after) {
		t.Errorf("exit %d %s, %v: %s", exit, refused, err, out)
	}

	// The next command works.
	s := serve(t, site.URL, "--config", file, "--store", filepath.Join(t.TempDir(), "s.db"), "--base-url", "http://127.0.0.1/", "--delay", "0s")
	if code, _, body := get(t, address(s)+"robots.txt"); code != http.StatusOK || !strings.Contains(body, "ai-input=no") {
		t.Errorf("%d\n%s", code, body)
	}
	if code, _, body := get(t, address(s)+"millrace/login"); code != http.StatusOK || !strings.Contains(body, "current-password") {
		t.Errorf("the dashboard: %d\n%s", code, body)
	}
	if text, err := os.ReadFile(file); err != nil || len(r.Password) < 24 || strings.Contains(string(text), r.Password) {
		t.Errorf("%v: the password %q is invalid, or is in the file", err, r.Password)
	}
}

// init rejects a name with a private address. It logs why it waits.
func TestInitWait(t *testing.T) {
	t.Parallel()
	site := initSite(t, "User-agent: *\nCrawl-delay: 60\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"init", site.URL, filepath.Join(t.TempDir(), "m.yaml"), "--allow-private"}, environment(nil), strings.NewReader(""), io.Discard, &errs)
	}()
	eventually(t, "the gap is logged", func() bool { return strings.Contains(errs.String(), "gap=1m0s") })
	cancel()
	if code := <-done; code != exitFailure {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// configOf returns the report of `millrace config` about a valid file.
func configOf(t *testing.T, file string) (r config.Report) {
	t.Helper()
	code, out, errs := command(t, nil, "config", "--config", file, "--json")
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	return r
}

// uncommented returns a copy of a file with its examples uncommented, except those
// whose key is set already.
func uncommented(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	example := regexp.MustCompile(`^( *)# ( *[a-z-]+:(?: ["\[a-z0-9/].*)?)$`)
	var lines []string
	n := 0
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		m := example.FindStringSubmatch(line)
		key := ""
		if m != nil {
			key, _, _ = strings.Cut(strings.TrimSpace(m[2]), ":")
		}
		switch {
		case strings.HasPrefix(line, "place:"):
			line = "place: front" // that of the example origin
		case m == nil, key == "listen", key == "ai-input", key == "search": // explanations, and keys that are set
		case strings.HasPrefix(key, "tls-"):
			name := filepath.Join(dir, key) // a server needs an existing file
			write(t, name, "")
			line, n = key+": "+name, n+1
		default:
			line, n = m[1]+m[2], n+1
		}
		lines = append(lines, line)
	}
	if n < 12 {
		t.Errorf("%d examples:\n%s", n, b)
	}
	name := filepath.Join(dir, "examples.yaml")
	write(t, name, strings.Join(lines, "\n")+"\n")
	return name
}

// init writes nothing for an unreadable site.
func TestInitNothing(t *testing.T) {
	t.Parallel()
	closed := initSite(t, "User-agent: *\nDisallow: /\n")
	var moved *httptest.Server
	moved = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, strings.Replace(moved.URL, "127.0.0.1", "localhost", 1)+"/home", http.StatusFound)
	}))
	defer moved.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tt := range []struct{ url, code string }{
		{closed.URL, "robots-disallow"},
		{moved.URL, "site-moved"},
		{gone.URL, "connection-refused"},
		{"example", "bad-url"},
		{t.TempDir(), "no-page"},
	} {
		file := filepath.Join(t.TempDir(), "millrace.yaml")
		exit, code, out := failure(t, nil, "init", tt.url, file, "--allow-private")
		if _, err := os.Stat(file); exit == 0 || code != tt.code || err == nil {
			t.Errorf("%s: exit %d %s, want %s:\n%s", tt.url, exit, code, tt.code, out)
		}
	}
}

// The entry points that init announces are served.
func TestInitEntries(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	for _, proto := range all.Published(nil) {
		at := strings.TrimPrefix(proto.Home, "/")
		if code, _, _ := get(t, s.url+at); at == "" || code != http.StatusOK {
			t.Errorf("%s: /%s: %d", proto.Name, at, code)
		}
	}
}

// init accepts a folder, and writes what serve needs.
func TestInitFolder(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "millrace.yaml")
	code, out, errs := command(t, nil, "init", dir, file, "--json")
	var r setup.Report
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || r.Source != dir || r.Place != "standalone" || r.As != "folder" || r.Pages < 10 || r.Site != "" {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	s := serve(t, "--config", file)
	if code, _, body := get(t, s.url+"llm-pages.json"); code != http.StatusOK || !strings.Contains(body, s.url+"about/") {
		t.Errorf("%d %.300s", code, body)
	}
}
