package main

import (
	"archive/tar"
	"compress/gzip"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// packed writes an archive as `npm pack` does.
func packed(t *testing.T, files map[string]string) (archive string) {
	t.Helper()
	archive = filepath.Join(t.TempDir(), "npm.tgz")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{w, z, f} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return archive
}

func TestMonthReleases(t *testing.T) {
	s := &releaseSite{}
	const dir = "package/docs/content/"
	for _, files := range []map[string]string{
		{
			dir + "commands/npm-ls.md":  "---\ntitle: npm-ls\ndescription: List\n---\n\nSee [`bin`](/commands/npm-bin#x).\n",
			dir + "commands/npm-bin.md": "---\ntitle: npm-bin\ndescription: Print\n---\n\nIt prints.\n",
			dir + "commands/npm.md":     "---\ntitle: npm\ndescription: Manage\n---\n\nIt manages.\n",
			"package/README.md":         "not documentation",
		},
		{
			dir + "commands/npm-ls.md": "---\ntitle: npm-ls\ndescription: List\n---\n\nIt lists.\n",
			dir + "commands/npm.md":    "---\ntitle: npm\ndescription: Manage\n---\n\nIt manages.\n",
			dir + "using-npm/scope.md": "---\ntitle: scope\ndescription: Scopes\n---\n\nA prefix.\n",
		},
	} {
		docs, err := documentation(packed(t, files))
		if err != nil {
			t.Fatal(err)
		}
		docs["index.md"] = contents(docs)
		s.releases = append(s.releases, docs)
	}
	site := new(pageServer)
	srv := httptest.NewServer(site)
	defer srv.Close()
	site.base = srv.URL + "/"
	c := &pageCrawler{base: site.base, conditional: true}
	crawl := func(want ...string) siteState {
		t.Helper()
		now, err := s.state()
		if err != nil {
			t.Fatal(err)
		}
		if err := site.take(now.html, now.words, time.Date(2026, 1, 1+s.day, 0, 0, 0, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		if err := c.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(c.pages)); !slices.Equal(got, want) {
			t.Errorf("day %d: the crawler found %q, want %q", s.day, got, want)
		}
		if wrong, left := c.compare(site); wrong != 0 || len(left) != 0 {
			t.Errorf("day %d: %d pages are stale, %q are left", s.day, wrong, left)
		}
		return now
	}
	was := crawl("/", "/commands/npm-bin/", "/commands/npm-ls/", "/commands/npm/")
	if html := was.html["commands/npm-ls/index.html"]; !strings.Contains(html, `href="/commands/npm-bin/#x"`) {
		t.Errorf("no link to the page: %s", html)
	}
	d, err := s.next(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ got, want []string }{
		{d.edited, []string{"commands/npm-ls/index.html", "index.html"}},
		{d.added, []string{"using-npm/scope/index.html"}},
		{d.removed, []string{"commands/npm-bin/index.html"}},
	} {
		if !slices.Equal(f.got, f.want) {
			t.Errorf("changes of the day: %q, want %q", f.got, f.want)
		}
	}
	now := crawl("/", "/commands/npm-ls/", "/commands/npm/", "/using-npm/scope/")
	if len(now.files) != 4 || len(now.html) != 4 {
		t.Errorf("%d files, %d pages", len(now.files), len(now.html))
	}
}
