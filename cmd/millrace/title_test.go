package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The title of a site comes from its source, and is the title of lists, feeds and descriptors. If
// the title changes, they are built again, even if no page has changed.
func TestSiteTitle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "hugo.toml")
	write(t, config, "title = 'Old Mill'\n")
	if err := os.Mkdir(filepath.Join(dir, "content"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "content", "_index.md"), "---\ntitle: Welcome\n---\nHello.\n")
	write(t, filepath.Join(dir, "content", "a.md"), "---\ntitle: A\n---\nText of a.\n")
	s := serve(t, dir)
	titled := func(want string) bool {
		for path, text := range map[string]string{
			"/llms.txt": "# " + want + "\n", "/feed.json": `"title":"` + want + `"`, "/feed.atom": ">" + want + "</title>",
			"/.well-known/openfeeder.json": `"` + want + `"`,
		} {
			if _, _, body := get(t, strings.TrimSuffix(s.url, "/")+path); !strings.Contains(strings.ReplaceAll(body, `": "`, `":"`), text) {
				t.Logf("%s does not contain %q", path, text)
				return false
			}
		}
		return true
	}
	if !titled("Old Mill") {
		t.Error("the title differs from that of hugo.toml")
	}
	write(t, config, "title = 'New Mill'\n")
	eventually(t, "the new title", func() bool { return titled("New Mill") })
}

// The title of a folder of HTML is the common part of the titles of its pages. site-title
// overrides it.
func TestSiteTitleOfHTML(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"index", "about", "contact"} {
		write(t, filepath.Join(dir, name+".html"), "<html><head><title>"+name+" – Old Mill</title></head><body><main><h1>"+name+
			"</h1><p>Some text of this page, long enough to be its content.</p></main></body></html>")
	}
	for _, c := range []struct {
		want string
		args []string
	}{{"# Old Mill\n", nil}, {"# The Mill\n", []string{"--site-title", "The Mill"}}} {
		s := serve(t, append([]string{dir}, c.args...)...)
		if _, _, body := get(t, strings.TrimSuffix(s.url, "/")+"/llms.txt"); !strings.HasPrefix(body, c.want) {
			t.Errorf("llms.txt begins with %q, want %q", body[:min(len(body), 40)], c.want)
		}
	}
}

// If the folder of a site generator contains the built site, the built site is read. Its sources
// are read on request, or refused with the command that builds the site.
func TestServeBuilt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"content", "public"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "hugo.toml")
	write(t, config, "title = 'Old Mill'\n")
	write(t, filepath.Join(dir, "content", "a.md"), "Wheels.\n")
	write(t, filepath.Join(dir, "public", "index.html"), "<html><body><main><p>Gears.</p></main></body></html>")
	s := serve(t, dir)
	if _, _, body := get(t, s.url+"index.md"); !strings.Contains(body, "Gears.") || !strings.Contains(s.out.String(), "source="+filepath.Join(dir, "public")) {
		t.Errorf("built site is not read: %q\n%s", body, s.out.String())
	}
	s = serve(t, dir, "--as", "markdown")
	if _, _, body := get(t, s.url+"a/index.md"); !strings.Contains(body, "Wheels.") {
		t.Errorf("source is not read: %q", body)
	}
	write(t, config, "removePathAccents = true\n")
	if exit, code, output := failure(t, nil, "build", dir, "--as", "markdown", "--out", t.TempDir(), "--base-url", "https://example.com/"); exit != 1 || code != "addresses-unknown" {
		t.Errorf("exit %d, %q:\n%s", exit, code, output)
	}
}

// A tree of Markdown has pages for people at its canonical addresses. With keys, it has none.
func TestServeMarkdownPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.md"), "---\ntitle: Wheels & co\nlang: de\ndescription: D\n---\nSee [b](b.md#c) <script>x</script>.\n\n| A |\n|---|\n| `1` |\n")
	write(t, filepath.Join(dir, "b.md"), "# B\n")
	write(t, filepath.Join(dir, "d.md"), "---\ndraft: true\n---\nSecret.\n")
	s := serve(t, dir, "--site-title", "Mill")
	code, h, body := get(t, s.url+"a/")
	for _, want := range []string{
		`<html lang="de">`, "<title>Wheels &amp; co | Mill</title>", `<meta name="description" content="D">`, "<h1>Wheels &amp; co</h1>", `<a href="` + s.url + `b/#c">b</a>`,
		"<td><code>1</code></td>", `<nav><a href="` + s.url + `">Mill</a></nav>`, `<link rel="alternate" type="application/json"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
	if code != 200 || strings.Contains(body, "<script>") || !strings.Contains(strings.Join(h["Link"], ", "), "text/markdown") {
		t.Errorf("%d, Link %q", code, h["Link"])
	}
	if code, _, _ := get(t, s.url+"a/", "If-None-Match", h.Get("Etag")); code != 304 {
		t.Errorf("a conditional request: %d, want 304", code)
	}
	if code, h, _ := get(t, s.url+"a"); code != 301 && code != 308 || h.Get("Location") != "/a/" {
		t.Errorf("without the slash: %d to %q", code, h.Get("Location"))
	}
	for path, want := range map[string]int{"": 200, "b/": 200, "d/": 404, "none/": 404} {
		if code, _, _ := get(t, s.url+path); code != want {
			t.Errorf("/%s: %d, want %d", path, code, want)
		}
	}
	if code, _, _ := get(t, serve(t, dir, "--require-key").url+"a/"); code != 401 {
		t.Errorf("with keys: %d, want 401", code)
	}
}
