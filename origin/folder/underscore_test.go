package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/tree"
	"github.com/millrace/millrace/mirror"
)

// pull walks a folder from a cursor. It returns the URLs and the next cursor.
func pull(t *testing.T, f *opened, since millrace.Cursor) (urls []string, next millrace.Cursor) {
	t.Helper()
	f.files = nil
	for c, err := range f.Changes(t.Context(), since) {
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
		case err != nil:
			t.Fatal(err)
		case c.Kind == millrace.KindCheckpoint:
			next = c.Checkpoint.Cursor
		default:
			urls = append(urls, c.URL)
		}
	}
	return urls, next
}

// edit writes files with modification times later than those of all existing files.
func edit(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	now := func() time.Time {
		must(t, os.WriteFile(probe, []byte("x"), 0o600))
		info, err := os.Stat(probe)
		must(t, err)
		return tree.Changed(info)
	}
	for start := now(); !now().After(start); {
	}
	write(t, dir, files)
}

// leads returns a page with links.
func leads(title string, to ...string) string {
	links := ""
	for _, u := range to {
		links += `<p>See also <a href="` + u + `">the other page</a>.</p>`
	}
	return strings.Replace(html(title, ""), "</main>", links+"</main>", 1)
}

func TestUnderscore(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"x.html": leads("X", "a.html", "lib/_thread.html#names", "_parts/nav.html", "_static/style.css"), "y.html": leads("Y", "_self.html"),
		"z.html": leads("Z", "/lib/_thread"), "lib/_thread.html": html("Threads", ""), "_self.html": leads("Self", "_only.html"),
		"_only.html": html("Linked by one that is linked", ""), "_draft.html": leads("Draft", "_draft.html"), "_parts/nav.html": html("Part", ""),
		"lib/_404.txt": "no page",
	}
	for i := range maxProbes { // these determine the home, so that it needs no other page
		files[fmt.Sprint("0/", i, ".html")] = html("A page without links", "")
	}
	write(t, dir, files)
	f := open(t, dir, &Options{Base: "https://mill.example/"})
	step := func(what string, since millrace.Cursor, want []string, read ...string) millrace.Cursor {
		t.Helper()
		urls, next := pull(t, f, since)
		got := slices.DeleteFunc(urls, func(u string) bool { return !strings.Contains(u, "/_") })
		searched := slices.DeleteFunc(f.files, func(file string) bool { return strings.HasPrefix(file, "0/") })
		if !slices.Equal(got, want) || !slices.Equal(searched, read) {
			t.Errorf("%s: pages %q, want %q; read %q, want %q", what, got, want, searched, read)
		}
		return next
	}
	both, draft := []string{"/_self.html", "/lib/_thread.html"}, []string{"/_draft.html"}
	first := step("first", "", both, "x.html", "y.html", "z.html")
	if _, err := f.Page(t.Context(), millrace.Ref{URL: "/_draft.html"}); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("a draft: %v", err)
	}
	if p := page(t, f, "/lib/_thread.html"); p.Title != "Threads" || p.URL != "/lib/_thread.html" {
		t.Errorf("%+v", p)
	}
	if next := step("unchanged", first, both); next != first || len(f.files) > 0 {
		t.Errorf("an unchanged walk reads %q, and the cursor moves from %s to %s", f.files, first, next)
	}
	edit(t, dir, map[string]string{"x.html": leads("X", "a.html", "lib/_thread.html")})
	second := step("the page that links is edited", first, both, "x.html")
	edit(t, dir, map[string]string{"x.html": leads("X")})
	third := step("another page links", second, both, "x.html", "x.html", "y.html", "z.html")
	edit(t, dir, map[string]string{"z.html": leads("Z"), "y.html": leads("Y", "_draft.html")})
	fourth := step("links go, another one comes", third, draft, "y.html", "z.html", "x.html", "y.html", "z.html")
	if _, err := f.Page(t.Context(), millrace.Ref{URL: "/lib/_thread.html"}); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("a page without links to it: %v", err)
	}
	edit(t, dir, map[string]string{"z.html": leads("Z", "lib/_new.html")})
	fifth := step("a link to nothing", fourth, draft, "z.html")
	edit(t, dir, map[string]string{"lib/_new.html": html("New", "")})
	sixth := step("its page comes later", fifth, []string{"/_draft.html", "/lib/_new.html"}, "x.html", "y.html", "z.html")
	must(t, os.Remove(filepath.Join(dir, "z.html")))
	step("the page that links is gone", sixth, draft, "x.html", "y.html")
	step("a cursor of something else", "walked", draft, "x.html", "y.html")
}

// A mirror deletes a page when the last link to the page is removed.
func TestUnderscoreMirror(t *testing.T) {
	f, dir := site(t, map[string]string{"index.html": leads("Home", "_a.html"), "b.html": html("B", ""), "c.html": html("C", ""), "_a.html": html("A", ""), "d.html": html("D", ""), "e.html": html("E", "")})
	var pages mirror.Pages
	sync := func(want ...string) {
		t.Helper()
		if _, err := mirror.Sync(t.Context(), "folder", f, &pages, nil); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pages.All() {
			got = append(got, p.URL)
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages %q, want %q", got, want)
		}
	}
	sync("/", "/_a.html", "/b.html", "/c.html", "/d.html", "/e.html")
	f.files = nil
	if sync("/", "/_a.html", "/b.html", "/c.html", "/d.html", "/e.html"); len(f.files) != 0 {
		t.Errorf("an unchanged run reads %q", f.files)
	}
	edit(t, dir, map[string]string{"index.html": leads("Home")})
	sync("/", "/b.html", "/c.html", "/d.html", "/e.html")
}

// Python's manual has pages for the modules __main__, __future__ and _thread.
func TestUnderscorePython(t *testing.T) {
	f := open(t, testkit.Data(t, "MILLRACE_TEST_PYDOC"), nil)
	urls, cursor := pull(t, f, "")
	for _, u := range []string{"/library/__main__.html", "/library/__future__.html", "/library/_thread.html"} {
		if !slices.Contains(urls, u) {
			t.Errorf("%s is not a page", u)
		} else if p := page(t, f, u); len(p.Blocks) < 10 {
			t.Errorf("%s has %d blocks", u, len(p.Blocks))
		}
	}
	if again, _ := pull(t, f, cursor); len(f.files) != 0 || !slices.Equal(again, urls) {
		t.Errorf("an unchanged run reads %d files and has %d pages, not %d", len(f.files), len(again), len(urls))
	}
}
