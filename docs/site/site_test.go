package main

import (
	"context"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/publish"
	stores "github.com/millrace/millrace/store/all"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var (
	linked   = regexp.MustCompile(`\b(?:href|src)="([^"]*)"`)
	anchored = regexp.MustCompile(`\bid="([^"]*)"`)
)

// built builds the site of the module and returns its folder.
func built(t *testing.T) string {
	t.Helper()
	out := t.TempDir()
	if err := build(os.DirFS("../.."), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Every link leads to a file of the site and to an anchor in it. No page has an anchor twice,
// and every page is linked from the home page, directly or not.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages, anchors := map[string]string{}, map[string]bool{}
	site := os.DirFS(built(t))
	err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(site, name)
		pages[name] = string(b)
		for _, m := range anchored.FindAllStringSubmatch(pages[name], -1) {
			if anchors[name+"#"+m[1]] {
				t.Errorf("%s: two elements have the id %s", name, m[1])
			}
			anchors[name+"#"+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	reached, next := map[string]bool{}, []string{"index.html"}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		for _, m := range linked.FindAllStringSubmatch(pages[name], -1) {
			u, err := url.Parse(html.UnescapeString(m[1]))
			if err != nil {
				t.Errorf("%s: link %s: %v", name, m[1], err)
				continue
			}
			if u.Scheme != "" || path.Base(u.Path) == "llms.txt" { // millrace serves it
				continue
			}
			to := name
			if u.Path != "" {
				to = path.Join(path.Dir(name), u.Path)
			}
			if _, ok := pages[to]; !ok || u.Fragment != "" && !anchors[to+"#"+u.Fragment] {
				t.Errorf("%s: link %s leads nowhere", name, m[1])
			}
			next = append(next, to)
		}
	}
	for name := range pages {
		if !reached[name] {
			t.Errorf("no link leads to %s: add it to docs/index.md", name)
		}
	}
}

// The site, published by millrace, violates no rule of any protocol.
func TestPublished(t *testing.T) {
	t.Parallel()
	dir := built(t)
	var site *publish.Server
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { site.ServeHTTP(w, r) }))
	defer server.Close()
	source, err := folder.New(dir, &folder.Options{Base: server.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := stores.Open(t.Context(), filepath.Join(t.TempDir(), "pages.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	site, err = publish.New(t.Context(), source, &publish.Options{
		BaseURL: server.URL + "/", Next: http.FileServer(http.Dir(dir)), Store: pages, Contact: "docs@example.com",
		Policy: &millrace.Policy{
			Purposes: map[millrace.Purpose]bool{millrace.Search: true}, Rate: millrace.RateHints{PerSecond: 10},
			Retention: time.Hour, Access: "everybody", Consumers: []string{"ExampleBot"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	if err := site.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	target, err := check.NewTarget(server.URL+"/", server.Client(), &check.TargetOptions{Decode: fetch.Decode})
	if err != nil {
		t.Fatal(err)
	}
	var suites []check.Suite
	for _, p := range all.Protocols() {
		suites = append(suites, p.Suite())
	}
	report, err := check.Run(context.Background(), target, suites, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("%s %s: %s: got %s, want %s", f.Level, f.Rule, f.URL, f.Got, f.Want)
	}
	if found := report.Protocols["openfeeder"].Found; !found {
		t.Error("no OpenFeeder, so no search box")
	}
}

// A link to a page that does not exist fails the build, and a link to another file of the module is text.
func TestBuild(t *testing.T) {
	t.Parallel()
	module := fstest.MapFS{
		"ARCHITECTURE.md": {Data: []byte("# Architecture")}, "CONTRIBUTING.md": {Data: []byte("# Contributing")}, "SECURITY.md": {Data: []byte("# Security")}, "LICENSE": {},
		"docs/index.md": {Data: []byte("# Home\n\n## Pages\n\n- [One](guides/one.md)\n")}, "docs/guides/one.md": {Data: []byte("# One\n\nThe *first* paragraph, [the license](../../LICENSE), [a part](../index.md#pages).\n")},
	}
	out := t.TempDir()
	if err := build(module, out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out + "/guides/one.html")
	for _, want := range []string{
		`<title>One - millrace</title>`, `content="The first paragraph, the license, a part."`, `the license, <a href="../index.html#pages">a part</a>`,
		`<li><a href="../guides/one.html" aria-current="page">One</a></li>`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%v: no %s in %s", err, want, b)
		}
	}
	module["docs/guides/one.md"].Data = []byte("[gone](two.md)")
	if err := build(module, out); err == nil {
		t.Error("a link to a page that does not exist is built")
	}
}
