package export

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// hostile lists URLs that file systems cannot represent unchanged.
var hostile = []string{
	"/", "/index", "/index.html", "/a", "/a/", "/A", "/A/", "/a.html", "/a/b", "/A/b", "/a.md", "/a.md/", "/a.md/b", "/a.md.html",
	"/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/a%00b", "/a%0Ab", "/%5C..%5Cx", "/c:%5Cx", "/con", "/CON.html", "/aux/x", "/nul.txt", "/com1", "/com%C2%B9",
	"/.git/config", "/.well-known/x", "/-rf", "/~user/", "/%20x", "/x%20", "/x.", "/x...", "/%FF", "/%25FF", "//", "/a//b",
	"/%F0%9F%92%A7", "/%F0%9F%91%A8%E2%80%8D%F0%9F%91%A9", "/%E2%80%AEgpj.exe", "/caf%C3%A9", "/cafe%CC%81", "/CAF%C3%89", "/%EF%BB%BFx", "/stra%C3%9Fe", "/strasse", "/STRASSE",
	"/x?a=1", "/x@a=1", "/x?a=1&b=%2F..", "/x?", "/?x", "/x?" + strings.Repeat("q=1&", 200), "/" + strings.Repeat("n", 300), "/" + strings.Repeat("n", 299) + "m",
	"/" + strings.Repeat("%C3%A9", 150), "/" + strings.Repeat("d/", 600) + "x", "/" + strings.Repeat("d/", 600) + "y",
	"https://elsewhere.example/a/b?c", "/%3Cscript%3E", "/%22%7C%2A%3F", "/.millrace/export.jsonl", "/...", "/%20",
}

func hostileSite(t *testing.T) []Site {
	t.Helper()
	var pages []*millrace.Page
	for _, u := range hostile {
		if strings.HasPrefix(u, "//") {
			u = "https://mill.example" + u
		}
		pages = append(pages, &millrace.Page{
			URL: u, Title: "---\nkey: \"x\"\r\n---\x00\x07\u0085\u2028\ufeff\u202e\U000e0001 \xff\\" + strings.Repeat("very long ", 500), Author: "# no comment: [a]", Description: "| \t>", Tags: []string{"a: b", "]", "---", "\n---\n"},
			Modified: noon, Blocks: millrace.TextBlocks("---\n\nnot: front matter\n\n---\n\x00\x1b[31m"),
		})
	}
	return []Site{{View: protocoltest.NewView(millrace.Site{Base: "https://mill.example/"}, pages)}}
}

func TestHostileNames(t *testing.T) {
	sites := hostileSite(t)
	dir := t.TempDir()
	c, err := Markdown(t.Context(), tree(filepath.Join(dir, "out"), sites), sites, nil)
	if err != nil || c.Pages != len(hostile) {
		t.Fatalf("%d pages: %v", c.Pages, err)
	}
	got := files(t, dir)
	folded, urls := map[string]string{}, map[string]string{}
	for name, text := range got {
		name, ok := strings.CutPrefix(name, "out/")
		if !ok {
			t.Fatalf("%q is outside", name)
		}
		if strings.HasPrefix(name, hidden+"/") {
			continue
		}
		key := strings.ToLower(strings.ToUpper(name))
		if other, ok := folded[key]; ok {
			t.Errorf("%q and %q", name, other)
		}
		folded[key] = name
		if !utf8.ValidString(name) || len(name) > 1000 || filepath.VolumeName(name) != "" || !strings.HasSuffix(name, ".md") {
			t.Errorf("%q", name)
		}
		for p := range strings.SplitSeq(name, "/") {
			if p == "" || p == "." || p == ".." || len(p) > 255 || strings.HasPrefix(p, ".") || strings.HasPrefix(p, "-") || strings.HasSuffix(p, ".") ||
				strings.HasSuffix(p, " ") || strings.ContainsAny(p, "\\:*?\"<>|\x00\n\x7f\u202e\u200d\ufeff") || device(p) {
				t.Errorf("%q has the part %q", name, p)
			}
		}
		var front map[string]any
		head, rest, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
		if err := yaml.UnmarshalWithOptions([]byte(head), &front, yaml.Strict()); err != nil || !ok {
			t.Fatalf("%s: %v\n%.300s", name, err, text)
		}
		title := front["title"].(string)
		if want := "---\nkey: \"x\"\r\n---\x00\x07\u0085\u2028\ufeff\u202e\U000e0001 \uFFFD\\very long very"; !strings.HasPrefix(title, want) {
			t.Fatalf("%q", title[:60])
		}
		if d := cmp.Diff([]any{"a: b", "]", "---", "\n---\n"}, front["tags"]); d != "" || front["author"] != "# no comment: [a]" || front["description"] != "| \t>" {
			t.Errorf("%s %v %v", d, front["author"], front["description"])
		}
		if !strings.Contains(rest, "not: front matter") {
			t.Errorf("%q", rest)
		}
		urls[front["url"].(string)] = name
	}
	if len(urls) != len(hostile) || c.Files != len(hostile) {
		t.Errorf("%d of %d pages have a file", len(urls), len(hostile))
	}
	for u, want := range map[string]string{
		"": "index.md", "A": "A.md", "A/": "A/index.md", "A/b": "A/b.md", "x?a=1": "x@a=1.md", "CAF%C3%89": "CAFÉ.md", "%F0%9F%92%A7": "💧.md", "~user/": "~user/index.md",
	} {
		if got := urls["https://mill.example/"+u]; got != "mill.example/"+want {
			t.Errorf("%q: %q, want %q", u, got, want)
		}
	}
	// A second export uses the same names.
	again, err := Markdown(t.Context(), tree(filepath.Join(dir, "out"), sites), sites, nil)
	if err != nil || again.Unchanged != again.Files || again.Removed != 0 {
		t.Errorf("%+v %v", again, err)
	}
}

func TestFolders(t *testing.T) {
	bases := []string{
		"http://a.example/", "https://a.example/", "https://a.example:8443/", "https://a.example/docs/", "https://a.example/Docs/", "http://[::1]:80/", "https://x.md/", "https://a.example_8443/",
	}
	got := Folders(bases)
	if got["http://a.example/"] != "a.example" || got["https://a.example:8443/"] != "a.example_8443" || got["https://a.example/docs/"] != "a.example_docs" {
		t.Errorf("%q", got)
	}
	folded := map[string]bool{}
	for _, name := range got {
		folded[strings.ToLower(name)] = true
	}
	if len(folded) != len(bases) || strings.ContainsAny(fmt.Sprint(got["http://[::1]:80/"]), ":/") || strings.HasSuffix(got["https://x.md/"], ".md") {
		t.Errorf("%q", got)
	}
}

// mdSite returns a site of pages with titles by path.
func mdSite(titles map[string]string) []Site {
	var pages []*millrace.Page
	for u, title := range titles {
		pages = append(pages, &millrace.Page{URL: u, Title: title, Modified: noon})
	}
	return []Site{{View: protocoltest.NewView(millrace.Site{Base: "https://mill.example/"}, pages)}}
}

// A second export writes changed pages, removes deleted ones, and does not touch foreign
// files.
func TestMarkdownAgain(t *testing.T) {
	dir := t.TempDir()
	run := func(titles map[string]string) Counts {
		t.Helper()
		sites := mdSite(titles)
		c, err := Markdown(t.Context(), tree(dir, sites), sites, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(map[string]string{"/": "home", "/a/": "a", "/a/b": "b", "/c/d/e": "e", "/f": "f", "/g": "g"})
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"index.md", "a/index.md"} {
		if err := os.Chtimes(filepath.Join(dir, "mill.example", name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	write("mill.example/own.md", "mine")
	write("mill.example/f.md", "changed by someone")
	write("mill.example/g.md", "changed by someone")
	c := run(map[string]string{"/": "home", "/a/": "a", "/a/b": "B", "/h": "h", "/g": "g"})
	if c.Unchanged != 2 || c.Removed != 1 || c.Files != 5 || !slices.Equal(c.KeptFiles, []string{"mill.example/f.md"}) {
		t.Errorf("%+v", c)
	}
	var names []string
	for n := range files(t, dir) {
		names = append(names, strings.TrimPrefix(n, "mill.example/"))
	}
	slices.Sort(names)
	want := []string{".millrace/export.jsonl", ".millrace/export.lock", "a/b.md", "a/index.md", "f.md", "g.md", "h.md", "index.md", "own.md"}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"index.md", "a/index.md"} {
		if info, err := os.Stat(filepath.Join(dir, "mill.example", name)); err != nil || !info.ModTime().Equal(old.Truncate(time.Nanosecond)) {
			t.Errorf("%s was rewritten: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "mill.example", "c")); err == nil {
		t.Error("an empty folder remains")
	}
	// A foreign file is not replaced, and the other files remain.
	before := files(t, dir)
	sites := mdSite(map[string]string{"/": "home", "/own": "own"})
	_, err := Markdown(t.Context(), tree(dir, sites), sites, nil)
	if !errors.Is(err, millrace.ErrConflict) || millrace.ErrorCode(err) != "foreign-file" {
		t.Error(err)
	}
	after := files(t, dir)
	delete(after, journalName)
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
	c = run(map[string]string{"/": "home"})
	if c.Removed != 4 || c.Unchanged != 1 {
		t.Errorf("%+v", c)
	}
}

// Pages whose names differ only in case get distinct names on every file system. A name that
// becomes free is used again.
func TestMarkdownCase(t *testing.T) {
	dir := t.TempDir()
	for _, titles := range []map[string]string{
		{"/about": "1", "/About": "2", "/ABOUT": "3"}, {"/about": "1", "/About": "2"}, {"/about": "1"}, {"/About": "2"}, {"/about": "1"},
	} {
		sites := mdSite(titles)
		if _, err := Markdown(t.Context(), tree(dir, sites), sites, nil); err != nil {
			t.Fatal(err)
		}
		got := files(t, filepath.Join(dir, "mill.example"))
		if len(got) != len(titles) {
			t.Errorf("%q", slices.Sorted(maps.Keys(got)))
		}
		if name := slices.Sorted(maps.Keys(titles))[0][1:] + ".md"; got[name] == "" {
			t.Errorf("file %s not found: %q", name, slices.Sorted(maps.Keys(got)))
		}
	}
}

// An export of one site keeps the files of the others. An export of all sites removes those of
// a deleted site.
func TestMarkdownPart(t *testing.T) {
	dir, sites := t.TempDir(), mill()
	to := tree(dir, sites)
	full, err := Markdown(t.Context(), to, sites, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	part := to
	part.Part = true
	c, err := Markdown(t.Context(), part, sites[1:], nil)
	if err != nil || c.Files != 1 || c.Removed != 0 || c.Unchanged != 1 {
		t.Errorf("%+v %v", c, err)
	}
	after := files(t, dir)
	delete(before, manifestName)
	delete(after, manifestName)
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
	if c, err = Markdown(t.Context(), to, sites[1:], nil); err != nil || c.Removed != full.Files-1 {
		t.Errorf("%+v %v", c, err)
	}
}

// The next export completes an export that was killed at any point.
func TestMarkdownKilled(t *testing.T) {
	titles := map[string]string{"/a": "a", "/b": "b", "/c": "c", "/d": "d"}
	for stop := range 5 {
		dir := t.TempDir()
		sites := mdSite(map[string]string{"/a": "A", "/c": "c", "/old": "old"})
		if _, err := Markdown(t.Context(), tree(dir, sites), sites, nil); err != nil {
			t.Fatal(err)
		}
		// The state after a kill: some files, and a journal with a partial last line.
		sites = mdSite(titles)
		o, err := openFolder(dir, ".md")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for p := range sites[0].View.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
			if n++; n > stop {
				break
			}
			// An older version of the page, with other bytes.
			b := appendMarkdown(nil, "https://mill.example/", p, policy.Merge(nil))
			if err := o.write("mill.example/"+fileName("https://mill.example/", p.URL), p.URL, append(b, "older\n"...)); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
		j, err := os.OpenFile(filepath.Join(dir, journalName), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		j.WriteString(`{"file":"mill.example/cu`)
		j.Close()
		c, err := Markdown(t.Context(), tree(dir, sites), sites, nil)
		if err != nil || c.Removed != 1 {
			t.Errorf("after %d: %+v %v", stop, c, err)
		}
		fresh := t.TempDir()
		if _, err := Markdown(t.Context(), tree(fresh, sites), sites, nil); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(files(t, fresh), files(t, dir)); d != "" {
			t.Errorf("after %d:\n%s", stop, d)
		}
	}
}

func TestMarkdownRefused(t *testing.T) {
	sites := mdSite(map[string]string{"/": "home"})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.md"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Markdown(t.Context(), tree(dir, sites), sites, nil); !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != "foreign-folder" {
		t.Error(err)
	}
	file := filepath.Join(dir, "thesis.md")
	if _, err := Markdown(t.Context(), tree(file, sites), sites, nil); err == nil || strings.Count(err.Error(), file) != 1 {
		t.Error(err)
	}
	if d := cmp.Diff(map[string]string{"thesis.md": "mine"}, files(t, dir)); d != "" {
		t.Error(d)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, hidden), 0o755); err != nil {
		t.Fatal(err)
	}
	f := flock.New(filepath.Join(folder, filepath.FromSlash(lockName)))
	if locked, err := f.TryLock(); err != nil || !locked {
		t.Fatal(locked, err)
	}
	if _, err := Markdown(t.Context(), tree(folder, sites), sites, nil); !errors.Is(err, millrace.ErrConflict) {
		t.Error(err)
	}
	f.Close()
	// A manifest or a link that points outside of the folder deletes nothing there.
	out := filepath.Join(t.TempDir(), "out.md")
	if err := os.WriteFile(out, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	empty := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	lines := "{\"format\":1}\n"
	for _, name := range []string{out, "../" + filepath.Base(filepath.Dir(out)) + "/out.md", "l/out.md"} {
		lines += fmt.Sprintf("{\"file\":%q,\"sum\":%q}\n", filepath.ToSlash(name), empty)
	}
	if _, err := hex.DecodeString(empty); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(manifestName)), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Symlink(filepath.Dir(out), filepath.Join(folder, "l")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Dir(out), filepath.Join(folder, "mill.example")); err != nil {
			t.Fatal(err)
		}
		if _, err := Markdown(t.Context(), tree(folder, sites), sites, nil); err == nil {
			t.Error("the export followed a link out of the folder")
		}
		os.Remove(filepath.Join(folder, "mill.example"))
	}
	if _, err := Markdown(t.Context(), tree(folder, sites), sites, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(out); err != nil {
		t.Error("a file outside of the folder was removed")
	}
}
