package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/internal/testkit"
)

// built runs `millrace build --json` and returns its report.
func built(t *testing.T, src, out, base string, args ...string) serving.BuildReport {
	t.Helper()
	code, text, errs := command(t, nil, append([]string{"build", src, "--out", out, "--base-url", base, "--json"}, args...)...)
	var r serving.BuildReport
	if err := json.Unmarshal([]byte(text), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, text, errs)
	}
	return r
}

// folderState returns the times and bytes of all files of a folder.
func folderState(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(name)
		out[strings.TrimPrefix(name, dir)] = info.ModTime().String() + string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// builtOnce tests the life of a folder that is built from another one.
func builtOnce(t *testing.T, src, page, phrase, gone string, base string) (out, file string) {
	t.Helper()
	out, file = filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "s.db")
	first := built(t, src, out, base, "--store", file, "--complete")
	if first.Written == 0 || first.Unchanged+first.Removed+len(first.LeftOut) != 0 {
		t.Fatalf("%+v", first)
	}
	before := folderState(t, out)

	second := built(t, src, out, base, "--store", file, "--complete")
	if second.Written+second.Removed != 0 || second.Unchanged != first.Written || second.Bytes != first.Bytes {
		t.Errorf("nothing changed: %d written, %d removed, %d unchanged", second.Written, second.Removed, second.Unchanged)
	}
	if d := cmp.Diff(before, folderState(t, out)); d != "" {
		t.Errorf("folder changed without a change of the source:\n%.2000s", d)
	}

	name := filepath.Join(src, filepath.FromSlash(page))
	html, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(html), phrase) {
		t.Fatalf("%s does not contain %q: %v", page, phrase, err)
	}
	write(t, name, strings.Replace(string(html), phrase, "Once upon a time, "+phrase, 1))
	edited := built(t, src, out, base, "--store", file, "--complete")
	collections := 0
	for _, f := range edited.WrittenFiles {
		if strings.HasPrefix(f, "scp/") {
			collections++
		} else if f != page && !strings.HasSuffix(f, "/llm.json") && f != "llm-pages.json" && f != "sitemap.xml" &&
			!strings.HasSuffix(f, "/llm/index.html") && f != "llm-sitemap.json" &&
			!strings.HasPrefix(f, "feed.") && path.Base(f) != path.Base(strings.TrimSuffix(page, "index.html")+"index.md") && f != page+".md" &&
			f != "openfeeder.json" && !strings.HasPrefix(f, "openfeeder/pages/") &&
			!strings.HasPrefix(path.Base(f), "arc-sitemap.") && !strings.HasPrefix(f, "arc-sitemap-deltas/") {
			t.Errorf("one page edited, but %s was written", f)
		}
	}
	// An edit writes the page, its four documents, the lists, the sitemap, the feeds,
	// and the collections of the site and of the page's section. Replaced files stay
	// for clients that still read them. After a slow snapshot on a busy machine, build
	// waits and writes no collection.
	if edited.Written != 15+collections || collections != 0 && collections < 3 || collections > 6 || edited.Removed != 0 {
		t.Errorf("one page edited: %d written, %d removed: %q", edited.Written, edited.Removed, edited.WrittenFiles)
	}

	if err := os.Remove(filepath.Join(src, filepath.FromSlash(gone))); err != nil {
		t.Fatal(err)
	}
	removed := built(t, src, out, base, "--store", file, "--complete")
	// The collections that contain the page are removed too.
	rest := slices.DeleteFunc(slices.Clone(removed.RemovedFiles), func(f string) bool { return strings.HasPrefix(f, "scp/") })
	if len(rest) != 5 || !slices.Contains(removed.RemovedFiles, gone) {
		t.Errorf("one page removed: %q", removed.RemovedFiles)
	}
	return out, file
}

func TestBuildHandbook(t *testing.T) {
	t.Parallel()
	src := copySite(t, "handbook")
	out, _ := builtOnce(t, src, "articles/reading-a-river/index.html", "Two numbers say", "about/index.html", "http://handbook.example/")
	s := serve(t, src, "--base-url", "http://handbook.example/")
	for _, name := range []string{"llm-pages.json", "articles/three-wheels/llm.json", "articles/reading-a-river/index.html", "css/style.css"} {
		_, _, want := get(t, address(s)+strings.TrimSuffix(name, "index.html"))
		got, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if name == "llm-pages.json" { // the two stores have different dates for a page
			want, got = want[:300], got[:300]
		}
		if name == "articles/reading-a-river/index.html" { // a plain host sends no Link fields
			for _, element := range []string{
				`<link rel="alternate" type="text/markdown" href="http://handbook.example/articles/reading-a-river/index.md"/>`,
				`<link rel="describedby" type="text/plain" href="http://handbook.example/llms.txt"/>`,
			} {
				if bytes.Count(got, []byte(element)) != 1 {
					t.Errorf("%s lacks %s", name, element)
				}
				got = bytes.Replace(got, []byte(element+"\n"), nil, 1)
			}
		}
		if string(got) != want {
			t.Errorf("%s differs from the response of serve:\n%s", name, cmp.Diff(string(got), want))
		}
	}
}

func TestBuildManual(t *testing.T) {
	if testing.Short() {
		t.Skip("testing.Short: a build of many pages, four times")
	}
	t.Parallel()
	out, _ := builtOnce(t, pgdocOf(t, "index.", "tutorial", "queries", "ddl"), "tutorial-join.html", "Thus far, our queries", "tutorial-agg.html", "https://manual.example/")
	if _, err := os.Stat(filepath.Join(out, "tutorial-join.html.docs", "llm.json")); err != nil {
		t.Error(err)
	}
}

// A built mirror and a built Markdown tree have a page that links to the documents.
func TestBuildOthers(t *testing.T) {
	t.Parallel()
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, copySite(t, "handbook"))
	pull(t, s.url, mirror)
	s.stop()
	for _, src := range []string{mirror, copySite(t, "md-plain")} {
		out := t.TempDir()
		r := built(t, src, out, "https://docs.example/", "--also", "tct-01")
		home, err := os.ReadFile(filepath.Join(out, "index.html"))
		if err != nil || !strings.Contains(string(home), "/llm-pages.json") {
			t.Errorf("%v:\n%s", err, home)
		}
		// The host of a mirror has no files of its own.
		if _, err := os.Stat(filepath.Join(out, "robots.txt")); (err == nil) != (src == mirror) {
			t.Errorf("robots.txt of %s: %v", r.As, err)
		}
		if !slices.Contains(unmet(&r), "tct-01/1.4.1/index-link") || len(r.Host.Hidden) > 0 {
			t.Errorf("%s: %+v", r.As, r.Host)
		}
	}
}

// The pages of hosts without Link fields have elements for the links, and those of others need
// none. For a site below a path, the report says how to publish the protocols that need the root.
func TestBuildElements(t *testing.T) {
	t.Parallel()
	src := filepath.Join(t.TempDir(), "tree")
	if err := os.CopyFS(filepath.Join(src, "public"), os.DirFS(copySite(t, "handbook"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(src, "content"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(src, "hugo.toml"), "baseURL = \"https://ann.example/notes/\"\n")
	write(t, filepath.Join(src, "content", "river.md"), "# The source, beside the built site")
	for _, host := range static.HostNames() {
		out := filepath.Join(t.TempDir(), "out")
		r := built(t, src, out, "https://ann.example/notes/", "--host", host)
		for _, name := range []string{"index", "articles/reading-a-river/index"} {
			html, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(name)+".html"))
			if err != nil {
				t.Fatal(err)
			}
			silent := slices.Contains([]string{"github", "gitlab", "s3", "plain"}, host)
			for _, element := range []string{
				`<link rel="alternate" type="text/markdown" href="https://ann.example/notes/` + name + `.md"/>`,
				`/notes/llms.txt"/>`,
			} {
				if strings.Contains(string(html), element) != silent {
					t.Errorf("%s: %s has %s: %t, want %t", host, name, element, !silent, silent)
				}
			}
		}
		if slices.Contains(r.Host.Hidden, "web") || !slices.Contains(r.Host.Hidden, "scp") ||
			!strings.HasSuffix(r.Host.Sentences()[2], " https://ann.example/.") {
			t.Errorf("%s: %+v", host, r.Host)
		}
	}
}

// A compact build is at most twice the size of its source's HTML: the pages, one document
// for each, and lists of all.
func TestBuildSize(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]func(t *testing.T) string{
		"handbook": func(t *testing.T) string { return copySite(t, "handbook") },
		"manual":   func(t *testing.T) string { return pgdocOf(t, "index.", "tutorial", "queries") },
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			r := built(t, source(t), out, "https://handbook.example/")
			size, sum := 0, int64(0)
			for _, file := range folderSizes(t, out) {
				size += file
			}
			for _, s := range r.Sizes {
				sum += s.Bytes
			}
			if int64(size) > 2*r.HTML || r.HTML == 0 || sum != r.Bytes {
				t.Errorf("%d bytes of %d of HTML; by protocol %+v", size, r.HTML, r.Sizes)
			}
		})
	}
}

// folderSizes returns the sizes of all files of a folder.
func folderSizes(t *testing.T, dir string) (sizes []int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sizes = append(sizes, int(info.Size()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sizes
}

func TestBuildUsage(t *testing.T) {
	t.Parallel()
	src, full := copySite(t, "handbook"), t.TempDir()
	write(t, filepath.Join(full, "mine"), "")
	const base = "https://handbook.example/"
	for _, tt := range []struct {
		name string
		args []string
		code string
	}{
		{"no folder", []string{"--base-url", base}, "usage/out"},
		{"no base", []string{"--out", full}, "usage/base-url"},
		{"the source", []string{"--out", src, "--base-url", base}, "usage/out"},
		{"in the source", []string{"--out", filepath.Join(src, "public", "x"), "--base-url", base}, "usage/out"},
		{"around the source", []string{"--out", filepath.Dir(src), "--base-url", base}, "usage/out"},
		{"not empty", []string{"--out", full, "--base-url", base}, "usage/force"},
		{"a public store", []string{"--out", full, "--base-url", base, "--store", filepath.Join(full, "s.db")}, "usage/store"},
		{"no host", []string{"--out", full, "--base-url", base, "--host", "apache"}, "usage/host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exit, code, out := failure(t, nil, append([]string{"build", src}, tt.args...)...)
			if exit != exitUsage || code != tt.code {
				t.Errorf("exit %d %s, want %s:\n%s", exit, code, tt.code, out)
			}
		})
	}
	if f := folderState(t, full); len(f) != 1 {
		t.Errorf("unexpected output: %d files", len(f))
	}
}

// build refuses content that the configuration protects by keys, unless a flag allows
// it.
func TestBuildRequiresKey(t *testing.T) {
	t.Parallel()
	src, out := copySite(t, "handbook"), filepath.Join(t.TempDir(), "out")
	env := map[string]string{"HOME": t.TempDir(), "MILLRACE_REQUIRE_KEY": "true"}
	args := []string{"build", src, "--out", out, "--base-url", "https://handbook.example/"}
	if exit, code, out := failure(t, env, args...); exit != exitUsage || code != "usage/require-key" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files were written: %v", err)
	}
	if code, _, errs := command(t, env, append(args, "--require-key=false")...); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// build refuses an unusable folder before it reads the site, and a failed build leaves
// no files.
func TestBuildRefusedFirst(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("build sent requests to the site") }))
	defer site.Close()
	full := t.TempDir()
	write(t, filepath.Join(full, "mine"), "")
	args := []string{"build", site.URL, "--allow-private", "--as", "crawl", "--base-url", "https://handbook.example/", "--json", "--out"}
	if exit, code, out := failure(t, nil, append(args, full)...); exit != exitUsage || code != "usage/force" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	site.Close()
	none := filepath.Join(full, "none")
	code, out, errs := command(t, nil, append(args, none)...)
	var r serving.BuildReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 || r.Error == "" || r.LeftOut == nil || r.Sizes == nil {
		t.Errorf("exit %d, %v: %s%s", code, err, out, errs)
	}
	if _, err := os.Stat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("failed build left a folder: %v", err)
	}
}

// A second build into the same folder is refused while the first one runs.
func TestBuildTwice(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	const base = "https://handbook.example/"
	b, err := static.Open(out, base, http.NotFoundHandler(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	args := []string{"build", copySite(t, "handbook"), "--out", out, "--base-url", base}
	if exit, code, out := failure(t, nil, args...); exit != exitFailure || code != "conflict" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if code, text, errs := command(t, nil, args...); code != 0 {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
}

// The report of a host contains no findings about collections at another host.
func TestBuildFilesURL(t *testing.T) {
	t.Parallel()
	src, out := copySite(t, "handbook"), filepath.Join(t.TempDir(), "out")
	const base = "https://handbook.example/"
	for host, want := range map[string]bool{"nginx": false, "caddy": false, "plain": true} {
		r := built(t, src, out, base, "--files-url", "https://cdn.example/mill/", "--host", host, "--also", "tct-00")
		if r.FilesURL != "https://cdn.example/mill" {
			t.Errorf("files_url %q", r.FilesURL)
		}
		if ids := unmet(&r); slices.Contains(ids, "tct-00/8.1/content-type") != want || !want && len(ids) > 0 {
			t.Errorf("%s: %q", host, ids)
		}
	}
	sitemap, err := os.ReadFile(filepath.Join(out, "sitemap.xml"))
	if err != nil || !strings.Contains(string(sitemap), ` url="https://cdn.example/mill/scp/all-`) {
		t.Errorf("%v:\n%s", err, sitemap)
	}
	_, text, _ := command(t, nil, "build", src, "--out", out, "--base-url", base, "--files-url", "https://cdn.example/mill")
	if want := filepath.Join(out, "scp"); !strings.Contains(text, want) {
		t.Errorf("%q is missing in\n%s", want, text)
	}
}

// The text report says what works on the host. Rules are listed only on request.
func TestBuildText(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"build", copySite(t, "handbook"), "--out", out, "--base-url", "https://handbook.example/", "--host", "netlify", "--complete"}
	for _, verbose := range []bool{false, true} {
		if verbose {
			args = append(args, "--verbose")
		}
		code, text, errs := command(t, nil, args...)
		for _, want := range []string{"On Netlify, ", " work in full.\n", "can be read, but not by strict clients", "Netlify reads _headers", "; the HTML of the source is "} {
			if code != 0 || !strings.Contains(text, want) {
				t.Errorf("exit %d, missing in the report: %q\n%s%s", code, want, text, errs)
			}
		}
		if strings.Contains(text, "tct-01/1.6.2/etag-form: ") != verbose {
			t.Errorf("verbose %v:\n%s", verbose, text)
		}
	}
}

// After a kill at any moment, the next build completes the folder.
func TestKillBuild(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("testing.Short: kills child processes")
	}
	src, out, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "s.db")
	const base = "https://handbook.example/"
	reference := filepath.Join(t.TempDir(), "whole")
	built(t, src, reference, base, "--store", file)
	half := 0
	kills := testkit.Size(0, 8, 40)
	for n := range kills {
		c := asProcess(t.Context(), t, "build", src, "--store", file, "--out", out, "--base-url", base, "--quiet")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		// Kill the build when the folder has k files; the first time, kill it immediately.
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			case <-time.After(200 * time.Microsecond):
				if count(out) >= 40*n/kills {
					_ = c.Process.Kill()
					<-done
					ended = true
				}
			}
		}
		switch k := count(out); {
		case k >= count(reference): // on a busy machine the build can end between two polls
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
		case k > 0:
			half++
		}
	}
	if half == 0 {
		t.Error("every build ended before its kill")
	}
	built(t, src, out, base, "--store", file)
	want, got := folderState(t, reference), folderState(t, out)
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s does not exist", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("unexpected file %s", name)
	}
	if r := built(t, src, out, base, "--store", file); r.Written+r.Removed+len(r.LeftOut) != 0 {
		t.Errorf("build without changes: %+v", r)
	}
}

// count returns the number of files in a folder, or 0 if the folder does not exist.
func count(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}

// A build fails if no page is readable, and names the unreadable pages.
func TestBuildNothingReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.html", "b.html"} {
		write(t, filepath.Join(dir, name), "<!doctype html><html><head></head><body></body></html>")
	}
	code, out, _ := command(t, nil, "build", dir, "--out", filepath.Join(t.TempDir(), "out"), "--base-url", "https://x.example/", "--store", filepath.Join(t.TempDir(), "s.db"), "--json")
	var r serving.BuildReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitFailure || len(r.Skipped) != 2 || r.Error == "" {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}
