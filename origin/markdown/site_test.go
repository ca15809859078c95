package markdown

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// TestPlaces checks one file for each row, with its configuration and its URL. If the URL starts
// with "!", the rest is the code of the reason why the file is not a page.
func TestPlaces(t *testing.T) {
	type rows = []struct{ name, matter, url string }
	for _, tt := range []struct {
		config, text string
		rows         rows
	}{
		{"hugo.toml", "baseURL = 'https://mill.example/'\n", rows{
			{"content/_index.md", "title: x", "/"},
			{"content/a.md", "title: x", "/a/"},
			{"content/A B & c.md", "title: x", "/a-b-c/"},
			{"content/p/Über.md", "title: x", "/p/%C3%BCber/"},
			{"content/p/_index.md", "title: x", "/p/"},
			{"content/p/one.md", "slug: Other Name", "/p/other-name/"},
			{"content/p/two.md", "url: /x/y.html", "/x/y.html"},
			{"content/p/three.md", "url: x/y", "/x/y/"},
			{"content/p/ten.md", "title: 'A/B: c'\nurl: /x/:title/", "/x/a/b-c/"},
			{"content/p/four/index.md", "title: x", "/p/four/"},
			{"content/p/four/part.md", "title: x", "!bundle"},
			{"content/p/five.md", "headless: true", "!no-page"},
			{"content/p/six.md", "build: {render: never}", "!no-page"},
			{"content/p/seven.md", "draft: true", "!draft"},
			{"content/p/eight.md", "date: 2124-01-01", "!future"},
			{"content/p/nine.md", "expiryDate: 2001-01-01", "!expired"},
		}},
		{"hugo.toml", "uglyURLs = true\nbuildDrafts = true\nbuildFuture = true\ndisablePathToLower = true\n", rows{
			{"content/A.md", "draft: true", "/A.html"},
			{"content/_index.md", "title: x", "/"},
			{"content/p/_index.md", "title: x", "/p.html"},
			{"content/p/c.md", "url: /c/d.json", "/c/d.json"},
			{"content/p/e.md", "url: f", "/f/"},
			{"content/p/b.md", "date: 2124-01-01", "/p/b.html"},
		}},
		{"config.yaml", "baseURL: https://mill.example/\npermalinks:\n  page: {posts: '/:sections[1:]/:year/:monthname/:day/:slugorfilename', '/': '/top/:filename/'}\n  section: {posts: /letters/}\n" +
			"frontmatter: {date: [':filename', ':default']}\ndefaultContentLanguageInSubdir: true\nlanguages: {en: {weight: 1}, de: {contentDir: inhalt}}\n", rows{
			{"content/posts/_index.md", "title: x", "/en/letters/"},
			{"content/posts/deep/2024-03-09-x.md", "title: x", "/en/2024/march/09/x/"},
			{"content/a.md", "title: x", "/en/top/a/"},
			{"content/a.de.md", "title: x", "/de/top/a/"},
			{"inhalt/b.md", "url: /c/", "/c/"},
			{"inhalt/c.md", "url: d/", "/de/d/"},
		}},
		{"_config.yml", "url: https://r.example\n", rows{
			{"index.md", "", "/"},
			{"a/b.md", "", "/a/b.html"},
			{"a/index.markdown", "", "/a/"},
			{"_posts/2024-02-03-Some Thing.md", "", "/2024/02/03/Some-Thing.html"},
			{"_posts/2024-02-03-It's new, (May).md", "", "/2024/02/03/It's-new,-(May).html"},
			{"_posts/2024-02-03-b.md", "date: 2023-01-02 03:04:05 +0100\ncategories: A b", "/a/b/2023/01/02/b.html"},
			{"_posts/2024-02-03-c.md", "slug: S\ncategory: Two words", "/two%20words/2024/02/03/S.html"},
			{"x/_posts/2024-02-03-d.md", "permalink: /:categories/:title", "/x/d"},
			{"_posts/2124-02-03-e.md", "", "!future"},
			{"_posts/f.md", "", "!post-date"},
			{"_posts/2024-13-03-g.md", "", "!post-date"},
			{"_posts/2024-02-03-t.md", "date: 2024-02-03 23:30:00 -0800", "/2024/02/04/t.html"},
			{"_x.md", "", "!underscore"},
			{"_drafts/h.md", "", "!draft"},
		}},
		{"_config.yml", "permalink: ordinal\nshow_drafts: true\nfuture: true\ncollections:\n  docs: {output: true}\n  notes:\ninclude: [_pages]\n", rows{
			{"a/b.md", "", "/a/b.html"},
			{"_posts/2124-02-03-e.md", "", "/2124/034/e.html"},
			{"_docs/x/y.md", "", "/docs/x/y.html"},
			{"_notes/z.md", "", "!collection"},
			{"_pages/p.md", "", "/_pages/p.html"},
		}},
		{"_config.yml", "permalink: pretty\ntimezone: America/Los_Angeles\n", rows{
			{"a/b.md", "", "/a/b/"},
			{"_posts/2024-02-03-f.md", "date: 2024-02-03 01:00:00", "/2024/02/02/f/"},
			{"_posts/2024-02-03-g.md", "date: 2024-02-03", "/2024/02/03/g/"},
			{"_posts/2024-02-03-e.md", "", "/2024/02/03/e/"},
		}},
		{"mkdocs.yml", "site_name: x\n", rows{
			{"docs/index.md", "", "/"},
			{"docs/a b.md", "", "/a%20b/"},
			{"docs/g/README.md", "", "/g/"},
		}},
		{"mkdocs.yml", "docs_dir: text\nuse_directory_urls: false\ndraft_docs: d*.md\n", rows{
			{"text/index.md", "", "/"},
			{"text/a.md", "", "/a.html"},
			{"text/g/draft.md", "", "!draft"},
		}},
		{"docusaurus.config.js", "module.exports = {\n  url: 'https://d.example',\n  baseUrl: '/b/',\n  trailingSlash: true,\n  docs: {\n    routeBasePath: '/',\n  },\n  blog: false,\n}\n", rows{
			{"docs/02-a/03-b.md", "", "/a/b/"},
			{"docs/2021-11-04-note.md", "", "/2021-11-04-note/"},
			{"docs/1-2-note.md", "", "/1-2-note/"},
			{"docs/a/a.md", "", "/a/"},
			{"docs/b/x.md", "slug: y", "/b/y/"},
			{"docs/b/z.md", "slug: /y/z", "/y/z/"},
			{"docs/b/README.md", "", "/b/"},
			{"src/pages/p/index.mdx", "", "/p/"},
		}},
		{"docusaurus.config.ts", "export default {}", rows{
			{"docs/a.md", "id: b", "/docs/b"},
			{"blog/2024-01-02-x/index.md", "", "/blog/2024/01/02/x"},
			{"blog/2024/01/02/y.md", "", "/blog/2024/01/02/y"},
			{"blog/news/2024-01-02-v.md", "", "/blog/2024/01/02/news/v"},
			{"blog/2024-1-2-u.md", "", "/blog/2024/1/2/u"},
			{"blog/t/index.md", "", "/blog/t"},
			{"blog/z.md", "slug: /w", "/blog/w"},
		}},
		{"", "", rows{
			{"a.md", "", "/a/"},
			{"b/ReadMe.md", "", "/b/"},
			{"b/c.mdx", "slug: d", "/b/d/"},
			{"b/e.markdown", "permalink: /f.html", "/f.html"},
			{"what?#%.md", "", "/what%3F%23%25/"},
			{"_g.md", "", "!underscore"},
		}},
	} {
		files := map[string]string{}
		if tt.config != "" {
			files[tt.config] = tt.text
		}
		for _, r := range tt.rows {
			files[r.name] = "---\n" + r.matter + "\n---\n\nText of a page.\n"
		}
		f, _ := made(t, files)
		got := urls(t, f)
		skipped := walkAll(t, f).skipped
		for _, r := range tt.rows {
			name := "/" + escapePath(r.name)
			if reason, ok := strings.CutPrefix(r.url, "!"); ok {
				for dir := name; skipped[name] == nil && dir != ""; {
					dir, _, _ = strings.Cut(dir, "\x00")
					dir = dir[:strings.LastIndexByte(dir, '/')]
					skipped[name] = skipped[dir+"/"]
				}
				if err := skipped[name]; millrace.ErrorCode(err) != reason || got[name] != "" {
					t.Errorf("%.15q: %s is at %q, skipped because %v; code %q, want %q", tt.config, r.name, got[name], err, "!"+millrace.ErrorCode(err), r.url)
				}
				if _, err := f.Page(t.Context(), millrace.Ref{URL: name}); !errors.Is(err, millrace.ErrNotFound) {
					t.Errorf("%s: the page of %s: %v", tt.config, r.name, err)
				}
				continue
			}
			if got[name] != r.url {
				t.Errorf("%s %q: %s is at %q (%v), want %q", tt.config, tt.text, r.name, got[name], skipped[name], r.url)
			}
		}
	}
}

func TestConfigurationOfTheFolderAbove(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"hugo.toml":           "baseURL = 'https://mill.example/x/'\n",
		"content/p/a.md":      "A",
		"content/b.md":        "[a](p/a.md)",
		"public/index.html":   "<p>x",
		"public/README.md":    "x",
		"docs/a.md":           "x",
		"broken/_config.yml":  "a: [",
		"broken/a.md":         "x",
		"outside/_config.yml": "source: ../x",
		"outside/a.md":        "x",
	})
	f := open(t, dir+"/content", nil)
	if f.Kind() != Hugo || f.Base() != "https://mill.example/x/" {
		t.Errorf("%s at %s", f.Kind(), f.Base())
	}
	if d := cmp.Diff(map[string]string{"/content/p/a.md": "/p/a/", "/content/b.md": "/b/"}, urls(t, f)); d != "" {
		t.Error(d)
	}
	for name, want := range map[string]bool{"": true, "content": true, "content/p": false, "public": false, "docs": true, "absent": false} {
		if got := Is(dir + "/" + name); got != want && name != "content/p" {
			t.Errorf("Is(%q) = %v", name, got)
		}
	}
	if f := open(t, dir+"/docs", nil); f.Kind() != Plain {
		t.Errorf("docs is %s", f.Kind())
	}
	for name, want := range map[string]string{"broken": "1:4", "outside": "folder-outside"} {
		if _, err := New(dir+"/"+name, nil); !errors.Is(err, millrace.ErrInvalid) || !found(err, want) {
			t.Errorf("New(%s) = %v", name, err)
		}
	}
}

func TestIs(t *testing.T) {
	for _, tt := range []struct {
		files []string
		want  bool
	}{
		{[]string{"a.md"}, true},
		{[]string{"a.md", "b.md", "demo/x.html"}, true},
		{[]string{"README.md", "index.html"}, false},
		{[]string{"README.md", "a/x.html"}, false},
		{[]string{"a.html"}, false},
		{[]string{"a.txt"}, false},
		{[]string{"mkdocs.yml", "docs/a.md", "index.html"}, true},
		{[]string{"_config.yml", "index.html"}, false},
	} {
		dir := t.TempDir()
		for _, f := range tt.files {
			write(t, dir, map[string]string{f: "a: b"})
		}
		if got := Is(dir); got != tt.want {
			t.Errorf("Is(%q) = %v", tt.files, got)
		}
	}
}
