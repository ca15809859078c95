package markdown

import (
	"encoding/xml"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

// The addresses of the pages in the generators' own documentation are those in the sitemap that the
// generator writes. All other addresses in the sitemap have no Markdown.
func TestRealDocumentation(t *testing.T) {
	for _, c := range []struct {
		env     string // environment variable with the folder of the documentation
		content string // text before the path of a page in the name of its file
		command []string
		least   int // minimum number of pages
		setUp   map[string]string
	}{
		{"MILLRACE_TEST_HUGO_DOCS", "content/en/", []string{"hugo", "--quiet", "-d", "OUT"}, 450, nil},
		{"MILLRACE_TEST_JEKYLL_DOCS", "_", []string{"jekyll", "build", "-q", "-d", "OUT", "--config", "_config.yml,_sitemap.yml"}, 60, map[string]string{
			"_sitemap.yml": "url: http://jekyllrb.example\nplugins: [jekyll-sitemap]\n",
		}},
	} {
		t.Run(c.command[0], func(t *testing.T) {
			testkit.Real(t, c.command[0])
			docs := os.Getenv(c.env)
			if _, err := os.Stat(docs); err != nil {
				t.Skipf("%s: %v", c.env, err)
			}
			src, out := t.TempDir(), t.TempDir()
			must(t, os.CopyFS(src, os.DirFS(docs)))
			write(t, src, c.setUp)
			must(t, filepath.WalkDir(src, func(name string, e fs.DirEntry, err error) error {
				if err == nil && strings.Contains(name, "/layouts/") && filepath.Ext(name) == ".html" {
					text := "x" // layouts determine no address, and take minutes
					if old, _ := os.ReadFile(name); strings.Contains(string(old), ".Inner") {
						text = "{{ .Inner }}"
					}
					return os.WriteFile(name, []byte(text), 0o644)
				}
				return err
			}))
			for i, a := range c.command {
				if a == "OUT" {
					c.command[i] = out
				}
			}
			cmd := exec.CommandContext(t.Context(), c.command[0], c.command[1:]...)
			cmd.Dir, cmd.Env = src, append(os.Environ(), "LANG=C.UTF-8")
			text, _ := cmd.CombinedOutput() // without its layouts, Hugo reports errors
			data, err := os.ReadFile(filepath.Join(out, "sitemap.xml"))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			var sitemap struct {
				Loc []string `xml:"url>loc"`
			}
			must(t, xml.Unmarshal(data, &sitemap))
			got := map[string]bool{}
			for _, u := range urls(t, open(t, src, nil)) {
				got[u] = true
			}
			if len(got) < c.least {
				t.Errorf("%d pages, want at least %d", len(got), c.least)
			}
			for _, loc := range sitemap.Loc {
				u, err := url.Parse(loc)
				must(t, err)
				if !got[u.EscapedPath()] && hasMarkdown(filepath.Join(src, c.content+strings.TrimPrefix(u.Path, "/"))) {
					t.Errorf("%s is missing", loc)
				}
				delete(got, u.EscapedPath())
			}
			if len(got) > 0 {
				t.Errorf("not in the sitemap: %q", slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

// hasMarkdown reports whether the page at a path has a Markdown file.
func hasMarkdown(path string) bool {
	for _, end := range []string{".md", "/index.md", "/_index.md"} {
		if _, err := os.Stat(strings.TrimSuffix(path, "/") + end); err == nil {
			return true
		}
	}
	return false
}
