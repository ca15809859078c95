package markdown

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// The configuration of Hugo may consist of several files, mount folders, and contain front matter
// for the pages below a folder.
func TestHugoProjects(t *testing.T) {
	t.Parallel()
	const text = "Text of a page.\n"
	for name, c := range map[string]struct{ files, want map[string]string }{
		"folder of configurations": {
			map[string]string{
				"hugo.toml": "title = 'A'\n", "config/_default/languages.toml": "[de]\ncontentDir = 'content/de'\n[en]\ncontentDir = 'content/en'\n",
				"config/_default/permalinks.yaml": "page:\n  news: /:year/:slug/\n", "config/production/config.toml": "uglyURLs = true\n",
				"content/en/a.md": text, "content/de/a.md": text, "content/en/news/b.md": "---\ndate: 2024-01-02\nslug: c\n---\n" + text,
			},
			map[string]string{"/content/en/a.md": "/a.html", "/content/de/a.md": "/de/a.html", "/content/en/news/b.md": "/2024/c.html"},
		},
		"languages in folders": {
			map[string]string{
				"hugo.toml":       "defaultContentLanguage = 'de'\ndefaultContentLanguageInSubdir = true\n[languages.de]\n[languages.en]\n",
				"content/a.md":    text,
				"content/a.en.md": text,
			},
			map[string]string{"/content/a.md": "/de/a/", "/content/a.en.md": "/en/a/"},
		},
		"mounts": {
			map[string]string{
				"hugo.toml": "[languages.de]\n[languages.en]\n[[module.mounts]]\nsource = 'docs'\ntarget = 'content/manual'\n" +
					"[[module.mounts]]\nsource = 'text/de'\ntarget = 'content'\nlang = 'de'\n[[module.mounts]]\nsource = 'img'\ntarget = 'static'\n",
				"docs/_index.md": text, "docs/x/y.md": text, "text/de/z.md": text, "content/no.md": text, "img/a.md": text,
			},
			map[string]string{"/docs/_index.md": "/manual/", "/docs/x/y.md": "/manual/x/y/", "/text/de/z.md": "/de/z/"},
		},
		"cascades": {
			map[string]string{
				"hugo.toml": "[cascade]\nslug = 'all'\n", "content/a.md": text, "content/b/_index.md": "---\ncascade:\n  slug: of-b\n  draft: true\n---\n",
				"content/b/x.md": "---\ndraft: false\n---\n" + text, "content/b/y.md": text, "content/b/c/z.md": "---\nslug: own\ndraft: false\n---\n" + text,
			},
			map[string]string{"/content/a.md": "/all/", "/content/b/x.md": "/b/of-b/", "/content/b/c/z.md": "/b/c/own/"},
		},
		"sections": {
			map[string]string{
				"hugo.toml": "[permalinks.page]\na = '/:sections/:slug/'\n", "content/a/b/_index.md": "---\ntitle: B\n---\n",
				"content/a/b/c/x.md": text, "content/a/d/y.md": text,
			},
			map[string]string{"/content/a/b/_index.md": "/a/b/", "/content/a/b/c/x.md": "/a/b/x/", "/content/a/d/y.md": "/a/y/"},
		},
		"ignored files": {
			map[string]string{"hugo.toml": "ignoreFiles = ['\\.part\\.md$']\n", "content/a.md": text, "content/b.part.md": text},
			map[string]string{"/content/a.md": "/a/"},
		},
	} {
		f, _ := made(t, c.files)
		if d := cmp.Diff(c.want, urls(t, f)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A project is rejected if its addresses depend on more than this package knows.
func TestUnknownAddresses(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"permalink of Hugo":   {"hugo.toml": "[permalinks]\nposts = '/:sum/'\n"},
		"date of Hugo":        {"hugo.toml": "[permalinks]\nposts = '/:06/:slug/'\n"},
		"target of a cascade": {"hugo.toml": "[[cascade]]\nslug = 'x'\n[cascade.target]\npath = '/a/**'\n"},
		"accents":             {"hugo.toml": "removePathAccents = true\n"},
		"kinds":               {"hugo.toml": "disableKinds = ['section']\n"},
		"hosts":               {"hugo.toml": "[languages.de]\nbaseURL = 'https://de.example/'\n"},
		"plugin of Jekyll":    {"_config.yml": "title: A\nplugins: [jekyll-feed, jekyll-polyglot]\n"},
		"code for Jekyll":     {"_config.yml": "title: A\n", "_plugins/a.rb": "class A < Jekyll::Generator\nend\n"},
		"permalink of Jekyll": {"_config.yml": "permalink: /:foo/:title/\n"},
		"plugin of MkDocs":    {"mkdocs.yml": "site_name: A\nplugins:\n  - search\n  - i18n:\n      languages: []\n", "docs/a.md": "A"},
		"hook of MkDocs":      {"mkdocs.yml": "site_name: A\nhooks: [a.py]\n", "a.py": "def on_files(files, config): pass\n", "docs/a.md": "A"},
		"configuration":       {"mkdocs.yml": "INHERIT: ../base.yml\n", "docs/a.md": "A"},
		"versions":            {"docusaurus.config.js": "export default {}", "versions.json": `["1.0"]`, "docs/a.md": "A"},
		"Astro":               {"astro.config.mjs": "export default {}"},
		"VitePress":           {"docs/.vitepress/config.ts": "export default {}", "docs/a.md": "A"},
		"Zola":                {"config.toml": "base_url = 'https://a.example'\ntheme = 'x'\n"},
		"Hexo":                {"_config.yml": "title: A\n", "scaffolds/post.md": "---\n---\n"},
	} {
		dir := t.TempDir()
		all := map[string]string{"content/a.md": "---\n---\nA"}
		maps.Copy(all, files)
		write(t, dir, all)
		if f, err := New(dir, nil); millrace.ErrorCode(err) != "addresses-unknown" {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				f.Close()
			}
		}
		if !Is(dir) {
			t.Errorf("%s: not a Markdown site", name)
		}
	}
}

// A project is not rejected because of an option that changes no address.
func TestKnownAddresses(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"Hugo":       {"hugo.toml": "[[cascade]]\ntype = 'x'\n[cascade.target]\npath = '/a/**'\n[permalinks]\nposts = '/:year-:month/:sections[1:]/:slug'\n"},
		"Jekyll":     {"_config.yml": "plugins: [jekyll-feed, jekyll-sitemap]\npermalink: /:categories/:title.html\n", "_plugins/a.rb": "module A\n  def big(s) s.upcase end\nend\n"},
		"MkDocs":     {"mkdocs.yml": "site_name: A\nplugins: [search, tags]\nhooks: [a.py]\n", "a.py": "def on_page_markdown(m): return m\n", "docs/a.md": "A"},
		"Docusaurus": {"docusaurus.config.js": "export default {}", "versions.json": "[]", "docs/a.md": "A"},
	} {
		all := map[string]string{"content/a.md": "---\n---\nA"}
		maps.Copy(all, files)
		if f, _ := made(t, all); len(urls(t, f)) == 0 {
			t.Errorf("%s: no page", name)
		}
	}
}

func TestBuilt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"Hugo":         {[]string{"hugo.toml", "content/a.md", "public/a/index.html"}, "public"},
		"Jekyll":       {[]string{"_config.yml", "_site/index.html"}, "_site"},
		"MkDocs":       {[]string{"mkdocs.yml", "docs/a.md", "site/index.html"}, "site"},
		"Docusaurus":   {[]string{"docusaurus.config.js", "docs/a.md", "build/docs/a/index.html"}, "build"},
		"mdBook":       {[]string{"book.toml", "book/index.html"}, "book"},
		"no pages":     {[]string{"hugo.toml", "public/robots.txt"}, ""},
		"not built":    {[]string{"hugo.toml", "content/a.md"}, ""},
		"no generator": {[]string{"a.md", "public/index.html"}, ""},
	} {
		dir := t.TempDir()
		files := map[string]string{}
		for _, f := range c.files {
			files[f] = "# x\n"
		}
		write(t, dir, files)
		got, ok := Built(dir)
		if want := filepath.Join(dir, c.want); ok != (c.want != "") || ok && got != want {
			t.Errorf("%s: %q, %t; want %q", name, got, ok, c.want)
		}
	}
}
