package folder

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tree"
)

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"file.html":          html("A", ""),
		"empty/":             "",
		"none/style.css":     "p{}",
		"hidden/.a.html":     html("A", ""),
		"hidden/.git/a.html": html("A", ""),
		"drafts/_a.html":     html("A", ""),
		"good/index.html":    html("A", ""),
	})
	for _, tt := range []struct {
		dir, base string
		want      error
		says      string
	}{
		{"absent", "", millrace.ErrNotFound, "not-found"},
		{"file.html", "", millrace.ErrInvalid, "no-folder"},
		{"empty", "", millrace.ErrInvalid, "no-page"},
		{"none", "", millrace.ErrInvalid, "no-page"},
		{"hidden", "", millrace.ErrInvalid, "no-page"},
		{"drafts", "", millrace.ErrInvalid, "no-page"},
		{"good", "ftp://mill.example/", millrace.ErrInvalid, "bad-base"},
		{"good", "mill.example", millrace.ErrInvalid, "bad-base"},
	} {
		_, err := New(filepath.Join(dir, tt.dir), &Options{Base: tt.base})
		if !errors.Is(err, tt.want) || millrace.ErrorCode(err) != tt.says {
			t.Errorf("New(%s, base %q) = %v, want %v: code %q, want %q", tt.dir, tt.base, err, tt.want, millrace.ErrorCode(err), tt.says)
		}
	}
}

func TestWalk(t *testing.T) {
	f, _ := site(t, map[string]string{
		"index.html":                  html("Home", ""),
		"a/index.html":                html("A", ""),
		"a/b.html":                    html("B", ""),
		"a.html":                      html("A file", ""),
		"a-b/index.html":              html("Dash", ""),
		"old/index.htm":               html("Old", ""),
		"both/index.html":             html("Both", ""),
		"both/index.htm":              html("Both, old", ""),
		"x.XHTML":                     html("X", ""),
		"dir.html/index.html":         html("A directory named like a file", ""),
		"100%.html":                   html("Per cent", ""),
		"50%25.html":                  html("Escape", ""),
		"a b.html":                    html("Space", ""),
		"mühle.html":                  html("Umlaut", ""),
		"q;v=1,2.html":                html("Sub-delims", ""),
		".well-known/a.html":          html("Well known", ""),
		".git/a.html":                 html("Git", ""),
		".a.html":                     html("Hidden", ""),
		"_draft.html":                 html("Draft", ""),
		"_parts/nav.html":             html("Part", ""),
		"_static/style.css":           "body{}",
		"404.html":                    html("Not found", ""),
		"en/404.html":                 html("Not found", ""),
		"50x.html":                    html("Error", ""),
		"google0123456789.txt":        "no page",
		"google0123456789abcdef.html": "google-site-verification: google0123456789abcdef.html",
		"google.html":                 html("About a search engine", ""),
		"empty.html":                  "",
		"style.css":                   "p{}",
	})
	got := walk(t, f)
	want := []string{
		"/", "/.well-known/a.html", "/100%25.html", "/50%2525.html", "/a%20b.html", "/a-b/", "/a.html", "/a/", "/a/b.html",
		"/both/", "/both/index.htm", "/dir.html/", "/google.html", "/m%C3%BChle.html", "/old/", "/q;v=1,2.html", "/x.XHTML",
	}
	if d := cmp.Diff(want, got.urls); d != "" {
		t.Error("pages (-want +got):\n" + d)
	}
	skipped := slices.Sorted(maps.Keys(got.skipped))
	wantSkipped := []string{"/404.html", "/50x.html", "/_draft.html", "/_parts/", "/empty.html", "/en/404.html", "/google0123456789abcdef.html"}
	if d := cmp.Diff(wantSkipped, skipped); d != "" {
		t.Error("skipped (-want +got):\n" + d)
	}
	if !got.mark.Complete || got.mark.Section != "" || got.mark.Cursor == "" {
		t.Errorf("mark %+v", got.mark)
	}
	for _, u := range got.urls {
		if c, err := canon.URL("https://mill.example" + u); err != nil || c != "https://mill.example"+u {
			t.Errorf("%s is not canonical: %s, %v", u, c, err)
		}
		if p := page(t, f, u); p.URL != u || p.Version != got.versions[u] || p.Title == "" {
			t.Errorf("page %s: URL %s, version %q (walk: %q), title %q", u, p.URL, p.Version, got.versions[u], p.Title)
		}
	}
}

func TestWalkAnyBytes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("file names of any bytes are Linux's")
	}
	names := []string{"what?.html", "a#b.html", `a\b.html`, "latin\xfc.html", "new\nline.html", "a:b.html", `"<>|.html`}
	files := map[string]string{}
	for _, n := range names {
		files[n] = html("Odd", "")
	}
	f, _ := site(t, files)
	got := walk(t, f)
	if len(got.urls) != len(names) {
		t.Errorf("pages %q, want %d", got.urls, len(names))
	}
	for _, u := range got.urls {
		if c, err := canon.URL("https://mill.example" + u); err != nil || c != "https://mill.example"+u {
			t.Errorf("%s is not canonical: %s, %v", u, c, err)
		}
		page(t, f, u)
		if file, _, err := f.Lookup(u); err != nil || !slices.Contains(names, file) {
			t.Errorf("Lookup(%s) = %q, %v", u, file, err)
		}
	}
}

func TestWalkLimits(t *testing.T) {
	deep := strings.Repeat("d/", tree.MaxDepth+1)
	long := strings.Repeat(strings.Repeat("l", 200)+"/", 38)
	f, dir := site(t, map[string]string{"index.html": html("Home", ""), deep + "a.html": html("Deep", ""), "big.html": strings.Repeat("x", 3000)})
	func() { // a path too long for one system call is created in steps
		root, err := os.OpenRoot(dir)
		must(t, err)
		defer root.Close()
		must(t, root.MkdirAll(strings.TrimSuffix(long, "/"), 0o755))
		must(t, root.WriteFile(long+"a.html", []byte(html("Long", "")), 0o644))
	}()
	f.max = 2000
	got := walk(t, f)
	if d := cmp.Diff([]string{"/"}, got.urls); d != "" {
		t.Error(d)
	}
	for u, want := range map[string]error{
		"/" + deep: millrace.ErrTooLarge, "/big.html": millrace.ErrTooLarge,
	} {
		if !errors.Is(got.skipped[u], want) {
			t.Errorf("%s: %v, want %v", u, got.skipped[u], want)
		}
	}
	if len(got.skipped) != 3 {
		t.Errorf("skipped %v, want the long path too", got.skipped)
	}
	if _, err := f.Page(t.Context(), millrace.Ref{URL: "/big.html"}); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("the page of a large file: %v", err)
	}
}

func TestLinksAndSpecials(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret.html": html("Secret", "")})
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"index.html":    html("Home", ""),
		"v2/index.html": html("Version 2", ""),
		"v2/a.html":     html("A", ""),
		"v3/index.html": html("Version 3", ""),
	})
	for name, target := range map[string]string{
		"latest":       "v2",           // a directory inside the folder
		"copy.html":    "v2/a.html",    // a file inside the folder
		"v2/up":        "..",           // a cycle
		"v2/self":      ".",            // the shortest cycle
		"v3/other":     "../v2",        // v3/other/up would never end
		"eats.html":    "eats.html",    // a link to itself
		"dangling.htm": "nowhere.html", // missing target
		"escape.html":  filepath.Join(outside, "secret.html"),
		"escape":       outside,
		"relative":     "../../../../../../../../../etc",
		"image.png":    "nowhere.png", // not a page, so not reported
	} {
		must(t, os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))))
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket.html"))
	must(t, err)
	defer l.Close()
	makePipe(t, filepath.Join(dir, "pipe.html"))

	f := open(t, dir, nil)
	got := walk(t, f)
	want := []string{"/", "/copy.html", "/latest/", "/latest/a.html", "/v2/", "/v2/a.html", "/v3/", "/v3/other/", "/v3/other/a.html"}
	if d := cmp.Diff(want, got.urls); d != "" {
		t.Error("pages (-want +got):\n" + d)
	}
	for _, u := range []string{
		"/v2/up/", "/v2/self/", "/v3/other/up/", "/eats.html", "/dangling.htm", "/escape.html", "/escape", "/relative",
		"/socket.html", "/pipe.html",
	} {
		if got.skipped[u] == nil {
			t.Errorf("%s is not reported; skipped: %v", u, slices.Sorted(maps.Keys(got.skipped)))
		}
	}
	if !got.mark.Complete {
		t.Error("links and pipes make the list incomplete")
	}
	for _, u := range []string{"/escape.html", "/escape/secret.html", "/pipe.html", "/eats.html"} {
		done := make(chan error, 1)
		go func() {
			_, err := f.Page(context.Background(), millrace.Ref{URL: u})
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("page %s was read", u)
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("page %s: still waiting", u)
		}
		if h, err := f.Open(strings.TrimPrefix(u, "/")); err == nil {
			h.Close()
			t.Errorf("Open(%s) succeeded", u)
		}
	}
}

func TestVersions(t *testing.T) {
	f, dir := site(t, map[string]string{"index.html": html("Home", ""), "a.html": html("A", ""), "b.html": html("B", "")})
	first := walk(t, f)
	for u, v := range first.versions {
		if v == "" || strings.ContainsAny(v, " \"\n") {
			t.Errorf("%s has the version %q", u, v)
		}
		if _, err := f.Page(t.Context(), millrace.Ref{URL: u, Version: v}); !errors.Is(err, millrace.ErrUnmodified) {
			t.Errorf("page %s with its stored version: %v", u, err)
		}
	}
	if len(f.files) != 0 {
		t.Errorf("an unchanged folder was read: %q", f.files)
	}
	a := filepath.Join(dir, "a.html")
	old, err := os.Stat(a)
	must(t, err)
	changed := func(what string) {
		t.Helper()
		now := walk(t, f)
		if now.versions["/a.html"] == first.versions["/a.html"] {
			t.Error(what + ": the version has not moved")
		}
		if now.versions["/b.html"] != first.versions["/b.html"] {
			t.Error(what + ": the version of another file has moved")
		}
		if p := page(t, f, "/a.html"); p.Version != now.versions["/a.html"] {
			t.Errorf("%s: page %q, walk %q", what, p.Version, now.versions["/a.html"])
		}
		first = now
	}
	must(t, os.WriteFile(a, []byte(html("Z", "")), 0o644)) // same length
	changed("written in place")
	must(t, os.WriteFile(a, []byte(html("Y", "")), 0o644))
	must(t, os.Chtimes(a, old.ModTime(), old.ModTime()))
	if runtime.GOOS != "windows" {
		changed("written in place, its time set back")
	}
	tmp := filepath.Join(dir, ".a.html.swp")
	must(t, os.WriteFile(tmp, []byte(html("X", "")), 0o644))
	must(t, os.Rename(tmp, a))
	changed("replaced by an editor")
	if p := page(t, f, "/a.html"); p.Title != "X" {
		t.Errorf("title %q after the replacement", p.Title)
	}

	must(t, os.Rename(a, filepath.Join(dir, "c.html")))
	if d := cmp.Diff([]string{"/", "/b.html", "/c.html"}, walk(t, f).urls); d != "" {
		t.Error("after a rename (-want +got):\n" + d)
	}
	if _, err := f.Page(t.Context(), millrace.Ref{URL: "/a.html", Version: "x"}); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("a page that was removed: %v", err)
	}
}

func TestVersionsOfFreshFiles(t *testing.T) {
	f, dir := site(t, map[string]string{"index.html": html("Home", "")})
	f.now = time.Now
	for range 3 { // several changes within one tick of the file system's clock
		must(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte(html("Rome", "")), 0o644))
		if v := walk(t, f).versions["/"]; v != "" {
			t.Errorf("version %q of a file that may change without a trace", v)
		}
		if p := page(t, f, "/"); p.Version != "" {
			t.Errorf("page with version %q", p.Version)
		}
	}
	f.now = func() time.Time { return time.Now().Add(tree.Racy) }
	if walk(t, f).versions["/"] == "" {
		t.Error("no version after two seconds")
	}
	f.now = func() time.Time { return time.Now().Add(-time.Hour) }
	if v := walk(t, f).versions["/"]; v != "" {
		t.Errorf("version %q of a file with a time in the future", v)
	}
}

func TestVersionsMoveWithBase(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"index.html": html("Home", "")})
	a := walk(t, open(t, dir, &Options{Base: "http://127.0.0.1:8080"}))
	b := walk(t, open(t, dir, &Options{Base: "http://127.0.0.1:8080/"}))
	c := walk(t, open(t, dir, &Options{Base: "http://127.0.0.1:9090/"}))
	if a.versions["/"] != b.versions["/"] || a.versions["/"] == c.versions["/"] {
		t.Errorf("%v %v %v", a.versions, b.versions, c.versions)
	}
}

func TestRemovedWhileWalking(t *testing.T) {
	f, dir := site(t, map[string]string{"a.html": html("A", ""), "b/c.html": html("C", ""), "d.html": html("D", "")})
	var urls []string
	for c, err := range f.Changes(t.Context(), "") {
		must(t, err)
		if c.Kind == millrace.Put {
			if urls = append(urls, c.URL); len(urls) == 1 {
				must(t, os.RemoveAll(filepath.Join(dir, "b")))
				must(t, os.Remove(filepath.Join(dir, "d.html")))
			}
		}
	}
	if d := cmp.Diff([]string{"/a.html"}, urls); d != "" {
		t.Error(d)
	}
	if _, err := f.Page(t.Context(), millrace.Ref{URL: "/d.html"}); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("removed between walk and read: %v", err)
	}
}

func TestReplacedFolder(t *testing.T) {
	top := t.TempDir()
	write(t, top, map[string]string{"r1/index.html": html("One", "https://one.example/"), "r2/index.html": html("Two", "https://two.example/")})
	link := filepath.Join(top, "current")
	must(t, os.Symlink("r1", link))
	f := open(t, link, nil)
	first := walk(t, f)
	must(t, os.Remove(link))
	if _, err := next(f.Changes(t.Context(), "")); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("a folder that was removed: %v, want unavailable", err)
	}
	must(t, os.Symlink("r2", link))
	if second := walk(t, f); second.versions["/"] == first.versions["/"] {
		t.Error("the new folder is not detected")
	}
	if p := page(t, f, "/"); p.Title != "Two" {
		t.Errorf("title %q", p.Title)
	}
	must(t, os.Remove(link))
	must(t, os.WriteFile(link, nil, 0o644))
	if _, err := next(f.Changes(t.Context(), "")); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("a folder that became a file: %v, want unavailable", err)
	}
}

func TestChangesStops(t *testing.T) {
	f, _ := site(t, map[string]string{"a.html": html("A", ""), "b.html": html("B", ""), "c/d.html": html("D", "")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range f.Changes(ctx, "") {
		n++
		last = err
		cancel()
	}
	if n != 2 || !errors.Is(last, context.Canceled) || errors.Is(last, millrace.ErrUnavailable) {
		t.Errorf("%d changes, then %v", n, last)
	}
	for c := range f.Changes(t.Context(), "anything") {
		if c.URL != "/a.html" {
			t.Errorf("first %q", c.URL)
		}
		break
	}
}

func next(seq func(func(millrace.Change, error) bool)) (millrace.Change, error) {
	for c, err := range seq {
		return c, err
	}
	return millrace.Change{}, fs.ErrClosed
}
