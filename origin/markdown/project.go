package markdown

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tree"
)

// generator is a program that builds a site.
type generator struct {
	name    string
	command string // command that builds the site
	out     string // folder of the built site
}

// generators are the supported generators.
var generators = map[Kind]generator{
	Hugo:       {"Hugo", "hugo", "public"},
	Jekyll:     {"Jekyll", "jekyll build", "_site"},
	MkDocs:     {"MkDocs", "mkdocs build", "site"},
	Docusaurus: {"Docusaurus", "npm run build", "build"},
}

// others are generators whose addresses this package does not compute. They are identified by a
// file in the project folder.
var others = []struct {
	files string // pattern that matches the file
	generator
}{
	{"astro.config.*", generator{"Astro", "npm run build", "dist"}},
	{"eleventy.config.*", generator{"Eleventy", "npx @11ty/eleventy", "_site"}},
	{".eleventy.js", generator{"Eleventy", "npx @11ty/eleventy", "_site"}},
	{".vitepress/config.*", generator{"VitePress", "npx vitepress build", ".vitepress/dist"}},
	{"docs/.vitepress/config.*", generator{"VitePress", "npx vitepress build docs", "docs/.vitepress/dist"}},
	{".vuepress/config.*", generator{"VuePress", "npx vuepress build", ".vuepress/dist"}},
	{"docs/.vuepress/config.*", generator{"VuePress", "npx vuepress build docs", "docs/.vuepress/dist"}},
	{"gatsby-config.*", generator{"Gatsby", "npx gatsby build", "public"}},
	{"next.config.*", generator{"Next.js", "npm run build", "out"}},
	{"nuxt.config.*", generator{"Nuxt", "npx nuxt generate", ".output/public"}},
	{"scaffolds/post.md", generator{"Hexo", "npx hexo generate", "public"}},
	{"pelicanconf.py", generator{"Pelican", "pelican content", "output"}},
	{"conf.py", generator{"Sphinx", "sphinx-build . _build/html", "_build/html"}},
	{"book.toml", generator{"mdBook", "mdbook build", "book"}},
	{"_quarto.yml", generator{"Quarto", "quarto render", "_site"}},
	{"zensical.toml", generator{"Zensical", "zensical build", "site"}},
}

// other returns the site if the project belongs to one of the other generators, and nil otherwise.
// m is the configuration of the project.
func other(root *os.Root, m matter) *site {
	g := generator{}
	for _, o := range others {
		if found, err := fs.Glob(root.FS(), o.files); err == nil && len(found) > 0 {
			g = o.generator
			break
		}
	}
	if _, ok := m["base_url"]; ok {
		g = generator{"Zola", "zola build", "public"}
	}
	if g.name == "" {
		return nil
	}
	return &site{convention: plainSite{}, kind: Plain, generator: g, unsupported: "rules that only " + g.name + " applies"}
}

// Built returns the folder that contains the built site of the project in dir. ok reports whether
// the folder exists and contains pages.
func Built(dir string) (built string, ok bool) {
	s, _, err := load(dir, "", false)
	if err != nil || s == nil || s.out == "" || filepath.IsAbs(s.out) {
		return "", false
	}
	built = filepath.Join(dir, filepath.FromSlash(s.out))
	for _, pattern := range []string{"*.html", "*/*.html", "*/*/*.html"} {
		if found, err := filepath.Glob(filepath.Join(built, pattern)); err == nil && len(found) > 0 {
			return built, true
		}
	}
	return "", false
}

// refusal returns an error if this package cannot compute the addresses of a project, and nil
// otherwise.
func (s *site) refusal() error {
	if s.unsupported == "" {
		return nil
	}
	return millrace.Coded("addresses-unknown", fmt.Errorf("%w: the addresses of this %s site depend on %s; run %q, then use the folder %s",
		millrace.ErrInvalid, s.name, s.unsupported, s.command, s.out))
}

// movers are plugins that change the addresses of pages, or that determine which files are pages.
var movers = map[Kind][]string{
	Jekyll: {"jekyll-multiple-languages-plugin", "jekyll-polyglot", "jekyll-optional-front-matter", "jekyll-readme-index"},
	MkDocs: {"i18n", "monorepo", "multirepo", "material/blog", "blog", "offline", "material/offline", "same-dir", "simple", "exclude", "gen-files"},
}

// mover returns the first plugin in a list that is one of the movers, or "".
func mover(kind Kind, list any) string {
	names, _ := list.([]any)
	for _, e := range names {
		if m, ok := e.(map[string]any); ok {
			for name := range m {
				e = name
			}
		}
		if name, ok := e.(string); ok && slices.Contains(movers[kind], name) {
			return "the plugin " + name
		}
	}
	if m, ok := list.(map[string]any); ok {
		for name := range m {
			if slices.Contains(movers[kind], name) {
				return "the plugin " + name
			}
		}
	}
	return ""
}

// moves matches code of a plugin that may change addresses or create pages.
var moves = regexp.MustCompile(`Generator|Hooks|permalink|dest_uri|dest_path|abs_dest|on_files|use_directory_urls`)

// script returns the first program that may change addresses, or "".
func (p *project) script(patterns ...string) string {
	for _, pattern := range patterns {
		found, _ := fs.Glob(p.root.FS(), path.Clean(pattern))
		for _, name := range found {
			if data, _, _, err := tree.Read(p.root, name, maxConfig); err != nil || moves.Match(data) {
				return "the program " + name
			}
		}
	}
	return ""
}

// unknownToken returns the first unknown token in some patterns, or "".
func unknownToken(token *regexp.Regexp, known string, patterns ...string) string {
	for _, p := range patterns {
		for _, t := range token.FindAllString(p, -1) {
			name, _, _ := strings.Cut(strings.TrimPrefix(t, ":"), "[")
			if !slices.Contains(strings.Fields(known), name) {
				return fmt.Sprintf("%s in the permalink %s", t, p)
			}
		}
	}
	return ""
}
