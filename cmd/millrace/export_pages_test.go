package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/export"
)

// exported runs `millrace export` and returns its standard output.
func exported(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := command(t, nil, append([]string{"export"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	return out
}

// export writes a mirror in every format, with the site's terms, and does not change
// the mirror.
func TestExport(t *testing.T) {
	t.Parallel()
	dir, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, "policy:\n  terms: https://mill.example/terms\n  purposes: {ai-input: true, ai-train: false}\n  requirements: {attribution: true}\n")
	s := serve(t, dir, "--config", conf)
	pullBest(t, s.url, mirror)
	before := folderState(t, filepath.Dir(mirror))
	pages := storedPages(t, copyStore(t, mirror), s.url, s.url)

	lines := exported(t, "--store", mirror, "--format", "jsonl", "--quiet")
	n := 0
	for l := range strings.Lines(lines) {
		var got struct {
			millrace.Page
			Text, Site, Revision string
			Terms                []struct {
				Document, Terms string
				Purposes        map[string]bool
				Requirements    []string
			}
		}
		if err := json.Unmarshal([]byte(l), &got); err != nil {
			t.Fatal(err)
		}
		n++
		want := *pages[got.URL]
		if got.Site != s.url || got.Revision != want.Version || got.Text != want.Text() {
			t.Errorf("%.500s", l)
		}
		want.Version = ""
		if d := cmp.Diff(want, got.Page); d != "" {
			t.Error(d)
		}
		if len(got.Terms) == 0 || got.Terms[0].Terms != "https://mill.example/terms" || !slices.Contains(got.Terms[0].Requirements, "attribution") ||
			got.Terms[0].Purposes["ai-train"] || !got.Terms[0].Purposes["ai-input"] {
			t.Fatalf("%+v", got.Terms)
		}
	}
	if n != len(pages) || n < 10 {
		t.Errorf("%d of %d pages", n, len(pages))
	}
	if again := exported(t, "--store", mirror, "--format", "jsonl", "--out", "-", "--quiet"); again != lines {
		t.Error("a second export has different bytes")
	}
	rows, err := csv.NewReader(strings.NewReader(exported(t, "--store", mirror, "--format", "csv"))).ReadAll()
	if err != nil || len(rows) != n+1 || rows[1][slices.Index(rows[0], "attribution")] != "true" || rows[1][slices.Index(rows[0], "ai_train")] != "false" {
		t.Errorf("%d rows: %v", len(rows), err)
	}

	out := filepath.Join(t.TempDir(), "out")
	var r export.Report
	report := func(text string) export.Report {
		t.Helper()
		r = export.Report{}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := report(exported(t, "--store", mirror, "--format", "parquet", "--out", out, "--json")); r.Pages != n || r.Chunks < n || r.Sites[0].Cursor == "" {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"pages.parquet", "chunks.parquet"} {
		if b, err := os.ReadFile(filepath.Join(out, name)); err != nil || !bytes.HasPrefix(b, []byte("PAR1")) || !bytes.HasSuffix(b, []byte("PAR1")) {
			t.Error(name, err)
		}
	}
	if d := cmp.Diff(before, folderState(t, filepath.Dir(mirror))); d != "" {
		t.Errorf("the store has changed:\n%.500s", d)
	}

	file := filepath.Join(t.TempDir(), "pages.jsonl")
	since := report(exported(t, "--store", mirror, "--format", "jsonl", "--out", file, "--json")).Sites[0].Cursor
	if b, err := os.ReadFile(file); err != nil || string(b) != lines {
		t.Error("the file differs from the piped output", err)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	markdown := []string{"--store", mirror, "--format", "markdown", "--out", tree, "--json"}
	if r := report(exported(t, markdown...)); r.Files != n || r.Unchanged+r.Removed != 0 {
		t.Errorf("%+v", r)
	}
	if err := os.Remove(filepath.Join(dir, "about", "index.html")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "glossary", "index.html")
	html, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, strings.Replace(string(html), "</main>", "<p>One sentence more.</p></main>", 1))
	eventually(t, "the site has changed", func() bool {
		r := pullBest(t, s.url, mirror)
		return r.Deleted+r.Updated > 0 && len(storedPages(t, copyStore(t, mirror), s.url, s.url)) == n-1
	})
	r = report(exported(t, markdown...))
	if r.Files != n-1 || r.Removed != 1 || r.Unchanged < n-4 || r.Unchanged == r.Files {
		t.Errorf("%+v", r)
	}
	changes := exported(t, "--store", mirror, "--format", "jsonl", "--since", since, "--quiet")
	if !strings.Contains(changes, `{"url":"`+s.url+`about/","site":"`+s.url+`","deleted":true}`+"\n") || !strings.Contains(changes, "One sentence more.") ||
		strings.Count(changes, "\n") > 4 || exported(t, "--store", mirror, "--format", "jsonl", "--since", time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "--quiet") != "" {
		t.Errorf("%.2000s", changes)
	}
	site, err := os.ReadDir(tree)
	if err != nil || len(site) != 2 {
		t.Fatal(site, err)
	}
	text, err := os.ReadFile(filepath.Join(tree, site[1].Name(), "glossary", "index.md"))
	if err != nil || !strings.Contains(string(text), "One sentence more.") || !strings.Contains(string(text), "\nattribution: true\n") {
		t.Errorf("%v:\n%.600s", err, text)
	}
	if _, err := os.Stat(filepath.Join(tree, site[1].Name(), "about", "index.md")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestExportRefused(t *testing.T) {
	t.Parallel()
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, copySite(t, "handbook"))
	pullBest(t, s.url, mirror)
	s.stop()
	for _, c := range []struct {
		args string
		exit int
		code string
	}{
		{"--store MIRROR --format parquet", 2, "usage/format"},
		{"--store MIRROR --format markdown --out -", 2, "usage/format"},
		{"--store MIRROR --format jsonl", 2, "usage/json"},
		{"--store MIRROR --format jsonl --out MIRROR", 2, "usage/out"},
		{"--store MIRROR --format csv --out MIRROR-wal", 2, "usage/out"},
		{"--store MIRROR --format xml", 2, "usage/format"},
		{"--store MIRROR --format csv --out FOLDER/x.csv --since 2026-11-20T12:00:00Z", 2, "usage/since"},
		{"--store MIRROR --format jsonl --out FOLDER/x --since yesterday", 2, "usage/since"},
		{"--store MIRROR --format jsonl --out FOLDER/x --since 2026-11-20", 2, "usage/since"},
		{"--store MIRROR --format jsonl --out FOLDER/x --since " + export.CursorOf(s.url, "feed:1"), 1, "conflict"},
		{"--store MIRROR --format jsonl --out FOLDER/x --since " + export.CursorOf("https://other.example/", "feed:1"), 1, "conflict"},
		{"--store MIRROR-none --format jsonl --out FOLDER/x", 1, "not-found"},
		{"--store MIRROR --format jsonl --out FOLDER/x --site https://other.example/", 2, "usage/site"},
		{"--store MIRROR --format jsonl --out FOLDER", 1, "is-folder"},
		{"--store MIRROR --format csv --out FOLDER/none/x.csv", 1, "file-not-found"},
		{"--store MIRROR --format jsonl --out /dev/full", 1, "disk-full"},
	} {
		if strings.HasSuffix(c.args, "/dev/full") && runtime.GOOS != "linux" {
			continue
		}
		args := strings.NewReplacer("MIRROR", mirror, "FOLDER", filepath.Dir(mirror)).Replace(c.args)
		exit, code, out := failure(t, nil, append([]string{"export"}, strings.Fields(args)...)...)
		if exit != c.exit || code != c.code || strings.Count(out, "\n") > 3 {
			t.Errorf("%s: exit %d %s, want %s: %s", c.args, exit, code, c.code, out)
		}
	}
	// A reader can close the pipe early.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	var errs buffer
	if code := run(t.Context(), []string{"export", "--store", mirror, "--format", "jsonl"}, environment(nil), strings.NewReader(""), w, &errs); code != 1 || errs.String() != "" {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
