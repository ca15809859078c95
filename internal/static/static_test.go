package static

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
)

const base = "https://mill.example/"

// doc is the response of a site at one path.
type doc struct {
	proto, name string // of the item
	body        string
	header      http.Header
}

// site is a handler, and the list of the items of its build.
type site map[string]doc

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, ok := s[r.URL.RequestURI()]
	if !ok {
		http.NotFound(w, r)
		return
	}
	maps.Copy(w.Header(), d.header)
	_, _ = w.Write([]byte(d.body))
}

// page returns a file of the site itself.
func page(name, body string, links ...string) doc {
	return doc{name: name, body: body, header: http.Header{"Link": links}}
}

// data returns a document of a protocol.
func data(body, tag string, more ...string) doc {
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Cache-Control": {"no-cache"}, "Etag": {`"` + tag + `"`}}
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return doc{proto: "protocol", body: body, header: h}
}

// build writes a site into a folder and returns the report.
func build(t *testing.T, dir string, s site, o *Options) *Report {
	t.Helper()
	b, err := begun(t, dir, s, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return &b.Report
}

// begun is a build that is not finished. It is for Cloudflare, if there are no options.
func begun(t *testing.T, dir string, s site, o *Options) (*Build, error) {
	t.Helper()
	if o == nil {
		o = &Options{Host: cloudflare}
	}
	b, err := Open(dir, base, s, o)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = b.Close() })
	reserved := map[string]bool{}
	paths := slices.Sorted(maps.Keys(s))
	for _, own := range []bool{true, false, true} {
		for _, p := range paths {
			d := s[p]
			it := Item{Path: p, Protocol: d.proto, Name: d.name}
			switch {
			case own != (d.proto == ""):
			case own && reserved[p]:
				err = errors.Join(err, b.Add(t.Context(), it))
			case own:
				reserved[p] = b.Reserve(it)
			default:
				err = errors.Join(err, b.Add(t.Context(), it))
			}
		}
	}
	return b, err
}

// files returns the modification time and the bytes of every file in a folder, by name.
func files(t *testing.T, dir string) map[string]string {
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
		rel, _ := filepath.Rel(dir, name)
		out[filepath.ToSlash(rel)] = info.ModTime().UTC().Format(time.RFC3339Nano) + "\n" + string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// public returns the sorted names of the files outside the hidden folder.
func public(all map[string]string) (names []string) {
	for n := range all {
		if !strings.HasPrefix(n, hidden+"/") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func mill() site {
	return site{
		"/":              page("index.html", "<p>home", `</list.json>; rel="index"`),
		"/style.css":     page("style.css", ""),
		"/a.html":        page("a.html", "<p>a"),
		"/list.json":     data("[]", "l"),
		"/doc.json":      data("{}", "h", "Link", `<`+base+`>; rel="canonical"`, "Last-Modified", "Sun, 22 Nov 2026 08:00:00 GMT"),
		"/b/doc.json":    data("{b}", "b", "Link", `<`+base+`b/>; rel="canonical"`),
		"/c/doc.json":    data("{c}", "c", "Link", `<`+base+`c/>; rel="canonical"`),
		"/x/doc.json?y":  data("{x}", "x"),
		"/NUL/doc.json":  data("{n}", "n"),
		"/B/doc.json":    data("{B}", "B"),
		"/a.html/d.json": data("{a}", "a"),
		"/%2e%2e/d.json": data("{e}", "e"),
	}
}

func TestBuild(t *testing.T) {
	dir, s := filepath.Join(t.TempDir(), "out"), mill()
	first := build(t, dir, s, nil)
	got := files(t, dir)
	want := []string{
		"B/doc.json", "_headers", "_redirects", "a.html", "a.html.docs/d.json", "c/doc.json", "doc.json", "index.html", "list.json", "style.css",
	}
	if d := cmp.Diff(want, public(got)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	var left []string
	for _, l := range first.LeftOut {
		left = append(left, l.Path+" "+l.Code)
	}
	if d := cmp.Diff([]string{"/%2e%2e/d.json file-name", "/NUL/doc.json file-name", "/b/doc.json name-taken", "/x/doc.json?y file-name"}, left); d != "" {
		t.Errorf("omitted (-want +got):\n%s", d)
	}
	if at := "2026-11-22T08:00:00Z\n{}"; got["doc.json"] != at {
		t.Errorf("doc.json is %q, not %q", got["doc.json"], at)
	}
	if first.Written != len(want) || first.Unchanged != 0 || first.Separate != 1 {
		t.Errorf("%+v", first)
	}

	second := build(t, dir, s, nil)
	if second.Written+second.Removed != 0 || second.Unchanged != len(want) || second.Bytes != first.Bytes {
		t.Errorf("nothing changed: %+v", second)
	}
	if d := cmp.Diff(got, files(t, dir)); d != "" {
		t.Errorf("the site is unchanged, but the folder has changed:\n%s", d)
	}

	// The document has new bytes and its old date. Its file gets a later date.
	s["/doc.json"] = data("{!}", "h2", "Link", `<`+base+`>; rel="canonical"`, "Last-Modified", "Sun, 22 Nov 2026 08:00:00 GMT")
	delete(s, "/c/doc.json")
	third := build(t, dir, s, nil)
	if d := cmp.Diff([]string{"doc.json", "_headers"}, third.WrittenFiles); d != "" {
		t.Errorf("written (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"c/doc.json"}, third.RemovedFiles); d != "" {
		t.Errorf("removed (-want +got):\n%s", d)
	}
	if at := "2026-11-22T08:00:01Z\n{!}"; files(t, dir)["doc.json"] != at {
		t.Errorf("doc.json is %q, not %q", files(t, dir)["doc.json"], at)
	}
	if _, err := os.Stat(filepath.Join(dir, "c")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a removed file: %v", err)
	}
}

// A build keeps files that it did not create.
func TestForeign(t *testing.T) {
	dir, s := t.TempDir(), mill()
	put := func(name, body string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("CNAME", "mill.example")
	if _, err := Open(dir, base, s, nil); !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != "foreign-folder" {
		t.Fatalf("a folder that no build has written: %v", err)
	}
	put("style.css", "p {}")
	build(t, dir, s, &Options{Force: true})
	if files(t, dir)["style.css"] == "p {}" {
		t.Error("Force has not replaced a file")
	}
	put("list.json", "edited by hand")
	put("new.json", "by another program")
	s["/new.json"] = data("{new}", "n")
	delete(s, "/list.json")
	b, err := begun(t, dir, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Finish(t.Context()); !errors.Is(err, millrace.ErrConflict) || millrace.ErrorCode(err) != "foreign-file" {
		t.Errorf("another program's file has the name of a document: %v", err)
	}
	r := &b.Report
	for name, want := range map[string]string{"list.json": "edited by hand", "new.json": "by another program", "CNAME": "mill.example"} {
		if _, body, _ := strings.Cut(files(t, dir)[name], "\n"); body != want {
			t.Errorf("%s is now %q", name, body)
		}
	}
	if r.Removed != 0 || r.LeftOutCount != 6 {
		t.Errorf("%+v", r)
	}
}

// A file becomes a folder, and a folder a file.
func TestFileAndFolder(t *testing.T) {
	dir := t.TempDir()
	build(t, dir, site{"/a": data("file", "1"), "/b/c": data("in a folder", "2")}, nil)
	r := build(t, dir, site{"/a/d": data("in a folder", "1"), "/b": data("file", "2")}, nil)
	if d := cmp.Diff([]string{"_headers", "a/d", "b"}, public(files(t, dir))); d != "" {
		t.Errorf("(-want +got):\n%s\n%+v", d, r)
	}
	if r := build(t, dir, site{"/a/d": data("in a folder", "1"), "/b": data("file", "2")}, nil); r.Written+r.Removed+len(r.LeftOut) != 0 {
		t.Errorf("nothing changed: %+v", r)
	}
}

// httpDate matches a time of writing, which differs between two builds.
var httpDate = regexp.MustCompile(`[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT`)

// The next build completes an interrupted one, and detects the files that it has written.
func TestUnfinished(t *testing.T) {
	dir, s := t.TempDir(), mill()
	killed, err := begun(t, dir, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Simulate a process that was killed between two batches: the system closes its files, and
	// the last line of the journal is incomplete.
	if err := killed.renameFiles(); err != nil {
		t.Fatal(err)
	}
	if err := killed.lock.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, filepath.FromSlash(journalName))
	journal, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(journal, "CNA"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "CNA"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	delete(s, "/c/doc.json")
	r := build(t, dir, s, nil)
	if r.Removed != 1 {
		t.Errorf("%+v", r)
	}
	want := t.TempDir()
	build(t, want, s, nil)
	got := files(t, dir)
	if _, ok := got["CNA"]; !ok {
		t.Error("another program's file was removed")
	}
	for n, text := range files(t, want) {
		_, a, _ := strings.Cut(httpDate.ReplaceAllString(text, "DATE"), "\n")
		_, b, _ := strings.Cut(httpDate.ReplaceAllString(got[n], "DATE"), "\n")
		if a != b && n != recordName && n != hidden+"/nginx-http.conf" { // these two contain modification times
			t.Errorf("%s is %q, not %q", n, b, a)
		}
		delete(got, n)
	}
	if len(got) != 1 {
		t.Errorf("too much: %q", slices.Collect(maps.Keys(got)))
	}
}

// A damaged record is rebuilt. If a file has other bytes and the record has lost its name, a build
// does not replace the file, and fails.
func TestDamagedRecord(t *testing.T) {
	for _, size := range []int{0, 30, 200} {
		dir := t.TempDir()
		build(t, dir, mill(), nil)
		want, err := os.ReadFile(filepath.Join(dir, recordName))
		if err != nil {
			t.Fatal(err)
		}
		damage := func() {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, recordName), append(want[:size:size], make([]byte, len(want)-size)...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		damage()
		if r := build(t, dir, mill(), nil); r.Written+r.Removed != 0 {
			t.Errorf("with %d bytes of the record: %+v", size, r)
		}
		if got, err := os.ReadFile(filepath.Join(dir, recordName)); err != nil || !slices.Equal(want, got) {
			t.Errorf("with %d bytes of the record: the record differs: %v", size, err)
		}
		damage()
		s := mill()
		s["/list.json"] = data("[1]", "other")
		b, err := begun(t, dir, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Finish(t.Context()); millrace.ErrorCode(err) != "foreign-file" {
			t.Errorf("with %d bytes of the record: %v", size, err)
		}
	}
}

// While a build is running, a second one in the same folder is refused and changes nothing.
func TestTwoAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	first, err := begun(t, dir, mill(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	before := files(t, dir)
	for _, force := range []bool{false, true} {
		if _, err := begun(t, dir, mill(), &Options{Force: force}); !errors.Is(err, millrace.ErrConflict) {
			t.Errorf("force %t: %v", force, err)
		}
	}
	if d := cmp.Diff(before, files(t, dir)); d != "" {
		t.Errorf("the second build has changed the folder (-before +after):\n%s", d)
	}
	if err := first.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if r := build(t, dir, mill(), nil); r.Written+r.Removed != 0 {
		t.Errorf("nothing changed: %+v", r)
	}
}

// A build that is closed before it has written anything leaves the folder as it was.
func TestNothingWritten(t *testing.T) {
	for _, there := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "out")
		if there {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		b, err := Open(dir, base, mill(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		list, err := os.ReadDir(dir)
		if is := !errors.Is(err, fs.ErrNotExist); is != there || len(list) > 0 {
			t.Errorf("the folder existed before: %t, after: %t, %v", there, is, list)
		}
	}
}

// The rules for immutable files do not depend on the number of these files.
func TestFixedHeaders(t *testing.T) {
	fixed := func(n int) string {
		dir := t.TempDir()
		s := mill()
		b, err := begun(t, dir, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for i := range n {
			for _, suffix := range []string{".scp", ".scp.gz"} {
				name := fmt.Sprintf("/scp/all-%d%s", i, suffix)
				s[name] = data(suffix, fmt.Sprint("f", i), "Content-Type", "application/scp")
				if err := b.Add(t.Context(), Item{Path: name, Protocol: "scp", Immutable: true}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := b.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, headersName))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	one := fixed(1)
	if !strings.Contains(one, "\n/*.scp\n") || !strings.Contains(one, "application/scp") || strings.Contains(one, "all-0") {
		t.Errorf("of one file:\n%s", one)
	}
	for _, n := range []int{2, 30} {
		if d := cmp.Diff(one, fixed(n)); d != "" {
			t.Errorf("of %d files (-one +many):\n%s", n, d)
		}
	}
}

// Nothing is written outside of the folder, even through links in it.
func TestOutside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if runtime.GOOS == "windows" {
		t.Skip("windows: links need a privilege")
	}
	if err := os.Symlink(outside, filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	b, err := begun(t, dir, site{"/b/doc.json": data("{}", "b")}, &Options{Force: true})
	if err == nil {
		err = b.Finish(t.Context())
	}
	if err == nil {
		t.Error("the build wrote through a link")
	}
	if f := files(t, outside); len(f) > 0 {
		t.Errorf("written outside: %v", f)
	}
}

func TestFailure(t *testing.T) {
	dir := t.TempDir()
	fail := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	b, err := Open(dir, base, fail, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Add(t.Context(), Item{Path: "/a", Protocol: "r"}); err == nil {
		t.Error("a 503 was written to a file")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Add(ctx, Item{Path: "/b", Protocol: "r"}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct{ path, name string }{
		{"/", "index.html"},
		{"/a/", "a/index.html"},
		{"/a/b.json", "a/b.json"},
		{"/.well-known/x", ".well-known/x"},
		{"/na%C3%AFve", "naïve"},
		{"/50%25", "50%"},
		{"/Talk:Mill", "Talk:Mill"},
		{path: "/a?b"},
		{path: "a"},
		{path: "http://x/a"},
		{path: "//a"},
		{path: "/a//b"},
		{path: "/./a"},
		{path: "/../a"},
		{path: "/a/%2E%2E/b"},
		{path: "/a%2Fb"},
		{path: "/a%5Cb"},
		{path: "/a%00"},
		{path: "/a%0Ab"},
		{path: "/%FF"},
		{path: "/%zz"},
		{path: "/.git/config"},
		{path: "/.millrace/build.jsonl"},
		{path: "/aux"},
		{path: "/COM1.json"},
		{path: "/a/lpt9.x/b"},
		{path: "/a./b"},
		{path: "/a%20"},
		{path: "/a%3Fb"},
		{path: "/a%23b"},
		{path: "/a*b"},
		{path: "/" + strings.Repeat("a", 256)},
		{path: strings.Repeat("/aaaaaaa", 129)},
	} {
		name, err := fileOf(tt.path)
		if (err == nil) != (tt.name != "") || err == nil && name != tt.name {
			t.Errorf("%s is %q, %v; want %q", tt.path, name, err, tt.name)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"/a/b.json", "/%2e%2e/x", "/a//b", "/con", "/a?b"} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, path string) {
		name, err := fileOf(path)
		if err != nil {
			return
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if rel, err := filepath.Rel(dir, at); err != nil || !filepath.IsLocal(rel) || filepath.ToSlash(rel) != name {
			t.Errorf("%q is %q: %v", path, name, err)
		}
		if again, err := fileOf("/" + (&url.URL{Path: name}).EscapedPath()); err != nil || again != name {
			t.Errorf("%q is %q, and after a second call %q: %v", path, name, again, err)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(`{"format":1}` + "\n" + `{"name":"a","size":1,"sum":"00"}` + "\n")
	f.Add("{\n")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		if lines(strings.NewReader(text), func(*line) error { n++; return nil }) == nil && n > strings.Count(text, "\n") {
			t.Errorf("%d lines in %q", n, text)
		}
	})
}

// A string is quoted for nginx and Caddy, or rejected if that is impossible.
func TestQuoted(t *testing.T) {
	for s, want := range map[string]string{`a"b\c`: `"a\"b\\c"`, "a$b": "", "a\nb": ""} {
		if got, ok := quoted(s); got != want || ok != (want != "") {
			t.Errorf("%q is %s", s, got)
		}
	}
	for s, want := range map[string]string{`a"b`: "`a\"b`", "": "`-`", "a`b": "", "{a}": ""} {
		if got, ok := backquoted(s); got != want || ok != (want != "") {
			t.Errorf("%q is %s", s, got)
		}
	}
}
