package markdown

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tree"
)

// mkdocsSite is the convention of MkDocs: https://www.mkdocs.org/user-guide/configuration/.
type mkdocsSite struct {
	docs    string
	flat    bool // whether use_directory_urls is false
	exclude []string
	drafts  []string
	titles  map[string]string // titles in the navigation, by name relative to docs
}

func loadMkDocs(p *project) (*site, error) {
	c := p.conf
	m := &mkdocsSite{
		docs: path.Clean(cmp.Or(c.text("docs_dir"), "docs")), flat: c.isNot("use_directory_urls"),
		exclude: lines(c["exclude_docs"]), drafts: lines(c["draft_docs"]), titles: map[string]string{},
	}
	if p.file == "" && !p.isFolder(m.docs) {
		m.docs = "."
	}
	if !p.isFolder(m.docs) {
		return nil, millrace.Coded("folder-outside", fmt.Errorf("%w: the folder %q of %s is not in the project", millrace.ErrInvalid, m.docs, p.file))
	}
	m.navigation(c["nav"])
	hooks := c.list("hooks", false)
	unsure := cmp.Or(mover(MkDocs, c["plugins"]), p.script(hooks...))
	if c["inherit"] != nil {
		unsure = "another configuration file (INHERIT)"
	}
	return &site{
		generator: generator{generators[MkDocs].name, generators[MkDocs].command, cmp.Or(c.text("site_dir"), generators[MkDocs].out)}, unsupported: unsure,
		convention: m, title: c.text("site_name"), values: c.under("extra"), macros: hasPlugin(c["plugins"], "macros"),
		base: baseOf(c.text("site_url")), language: c.under("theme").text("language", "locale"),
	}, nil
}

// hasPlugin reports whether MkDocs uses a plugin.
func hasPlugin(v any, name string) bool {
	list, _ := v.([]any)
	for _, e := range list {
		options, _ := e.(map[string]any)
		if _, ok := options[name]; ok || e == name {
			return true
		}
	}
	return false
}

func lines(v any) []string {
	s, _ := v.(string)
	var out []string
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			out = append(out, l)
		}
	}
	return out
}

// navigation stores the titles of the pages in a navigation.
func (m *mkdocsSite) navigation(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			m.navigation(e)
		}
	case map[string]any:
		for title, e := range v {
			if file, ok := e.(string); ok {
				m.titles[path.Clean(file)] = title
			} else {
				m.navigation(e)
			}
		}
	}
}

func (m *mkdocsSite) roots() []string { return []string{m.docs} }

func (m *mkdocsSite) entry(name string, folder bool, has func(string) bool) (bool, error) {
	_, rel := below(m.roots(), name)
	if folder {
		return rel != "templates" && path.Base(rel) != "node_modules", nil
	}
	switch {
	case !isMarkdown(rel) || path.Ext(rel) == ".mdx":
		return false, nil
	case ignored(m.exclude, rel):
		return true, unpublished{"excluded", "excluded by the configuration"}
	case ignored(m.drafts, rel):
		return true, unpublished{"draft", "draft"}
	}
	return true, nil
}

// ignored reports whether patterns in the syntax of .gitignore exclude a file. The last matching
// pattern decides.
func ignored(patterns []string, rel string) bool {
	out := false
	for _, p := range patterns {
		p, not := strings.CutPrefix(p, "!")
		p, dir := strings.CutSuffix(p, "/")
		anchored := strings.Contains(p, "/")
		p = strings.TrimPrefix(strings.TrimPrefix(p, "/"), "**/")
		parts := strings.Split(rel, "/")
		for i := range parts {
			if dir && i == len(parts)-1 {
				break
			}
			subject := parts[i]
			if anchored {
				subject = strings.Join(parts[:i+1], "/")
			}
			if ok, err := path.Match(p, subject); ok && err == nil {
				out = !not
			}
		}
	}
	return out
}

func (m *mkdocsSite) spot(name string, _ *head) (spot, error) {
	_, rel := below(m.roots(), name)
	dir, file := path.Split(rel)
	stem := stemOf(file)
	sp := spot{kind: millrace.Documentation, title: m.titles[rel], weak: stem == "README"}
	p := join(escapePath(dir), tree.Escape(stem))
	switch {
	case stem == "index" || sp.weak:
		p = asFolder(join(escapePath(dir)))
	case m.flat:
		p += ".html"
	default:
		p += "/"
	}
	var err error
	sp.url, err = pageURL(p)
	return sp, err
}

// docusaurusSite is the convention of Docusaurus for docs, blog and pages:
// https://docusaurus.io/docs/create-doc.
type docusaurusSite struct {
	folders []docusaurusRoot
	slash   string // trailingSlash: "true", "false" or "" if unset
}

type docusaurusRoot struct{ name, route string }

var (
	jsURL     = regexp.MustCompile(`(?m)^\s*["']?url["']?\s*:\s*["'\x60]([^"'\x60$]+)["'\x60]`)
	jsTitle   = regexp.MustCompile(`(?m)^\s*["']?title["']?\s*:\s*["'\x60]([^"'\x60$]+)["'\x60]`)
	jsBase    = regexp.MustCompile(`(?m)^\s*["']?baseUrl["']?\s*:\s*["'\x60]([^"'\x60$]+)["'\x60]`)
	jsSlash   = regexp.MustCompile(`(?m)^\s*["']?trailingSlash["']?\s*:\s*(true|false)`)
	jsLocale  = regexp.MustCompile(`["']?defaultLocale["']?\s*:\s*["']([A-Za-z-]+)["']`)
	jsRoute   = regexp.MustCompile(`["']?routeBasePath["']?\s*:\s*["']([^"'$]*)["']`)
	jsPath    = regexp.MustCompile(`(?m)(?:^|[{,\s])["']?path["']?\s*:\s*["']([^"'$]+)["']`)
	jsSection = regexp.MustCompile(`["']?\b(docs|blog|pages)["']?\s*:\s*(\{|false)`)
)

func loadDocusaurus(p *project) (*site, error) {
	text := strings.ReplaceAll(p.text, "\r\n", "\n")
	d := &docusaurusSite{slash: firstMatch(jsSlash, text)}
	parts := map[string]string{}
	for _, at := range jsSection.FindAllStringSubmatchIndex(text, -1) {
		if name := text[at[2]:at[3]]; parts[name] == "" {
			parts[name] = jsObject(text[at[4]:])
		}
	}
	for _, r := range []struct{ kind, name, route string }{{"docs", "docs", "docs"}, {"blog", "blog", "blog"}, {"pages", "src/pages", ""}} {
		if parts[r.kind] == "false" {
			continue
		}
		conf := parts[r.kind]
		name, route := cmp.Or(firstMatch(jsPath, conf), r.name), r.route
		if m := jsRoute.FindStringSubmatch(conf); m != nil {
			route = strings.Trim(m[1], "/")
		}
		if name = path.Clean(name); p.isFolder(name) {
			d.folders = append(d.folders, docusaurusRoot{name, route})
		}
	}
	if p.file == "" && len(d.folders) == 0 {
		d.folders = append(d.folders, docusaurusRoot{".", "docs"})
	}
	authors := map[string]string{}
	for _, r := range d.folders {
		// An invalid list of authors must not prevent the page from being read.
		if list, err := p.read(r.name + "/authors.yml"); err == nil {
			for key := range list {
				authors[key] = list.under(key).text("name")
			}
		}
	}
	base := ""
	if u := baseOf(firstMatch(jsURL, text)); u != "" {
		base = asFolder(u + strings.Trim(firstMatch(jsBase, text), "/"))
	}
	unsure := ""
	if data, _, _, err := tree.Read(p.root, "versions.json", maxConfig); err == nil && strings.ContainsRune(string(data), '"') {
		unsure = "the versions in versions.json"
	}
	return &site{convention: d, unsupported: unsure, title: firstMatch(jsTitle, text), base: baseOf(base), language: firstMatch(jsLocale, text), authors: authors}, nil
}

func firstMatch(re *regexp.Regexp, text string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// jsObject returns the JavaScript object at the start of a text, or the first word of the text.
func jsObject(text string) string {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[:i+1]
			}
		}
		if depth == 0 {
			return strings.TrimSpace(text[:min(len(text), 5)])
		}
	}
	return text
}

func (d *docusaurusSite) roots() []string {
	var out []string
	for _, r := range d.folders {
		out = append(out, r.name)
	}
	return out
}

func (d *docusaurusSite) entry(name string, folder bool, _ func(string) bool) (bool, error) {
	base := path.Base(name)
	switch {
	case folder && (base == "node_modules" || base == "__tests__"):
		return false, nil
	case !folder && !isMarkdown(base):
		return false, nil
	case strings.HasPrefix(base, "_") && !slices.Contains(d.roots(), name):
		return true, errPrivate
	}
	return true, nil
}

var (
	numbered  = regexp.MustCompile(`^\d+\s*[-_.]+\s*([^-_.\s].*)$`)
	versioned = regexp.MustCompile(`^\d+[-_.]\d`)
	blogName  = regexp.MustCompile(`^(.*)(\d{4}[-/]\d{1,2}[-/]\d{1,2})[-/]?(.*)$`)
)

// unnumbered removes a number prefix, which determines the order of files, from a name. It keeps a
// prefix that looks like a date or a version.
func unnumbered(name string) string {
	if m := numbered.FindStringSubmatch(name); m != nil && !versioned.MatchString(name) {
		return m[1]
	}
	return name
}

func (d *docusaurusSite) spot(name string, h *head) (spot, error) {
	m := h.matter
	root, rel := below(d.roots(), name)
	at := slices.IndexFunc(d.folders, func(r docusaurusRoot) bool { return r.name == root })
	route := d.folders[max(at, 0)].route
	dir, file := path.Split(rel)
	stem := stemOf(file)
	slug := m.text("slug")
	sp := spot{section: route}
	var p string
	switch {
	case route == "" && strings.HasSuffix(root, "pages"):
		sp.section = ""
		p = join(escapePath(dir), tree.Escape(stem))
		if stem == "index" {
			p = asFolder(join(escapePath(dir)))
		}
	case root == "blog" || route == "blog":
		sp.kind = millrace.Article
		rel := stemOf(rel)
		rel = strings.TrimSuffix(strings.TrimSuffix(rel, "/index"), "/README")
		p = rel
		if b := blogName.FindStringSubmatch(rel); b != nil {
			day := strings.ReplaceAll(b[2], "/", "-")
			if t, ok := parseDate(day); ok {
				sp.date = t
				p = strings.ReplaceAll(day, "-", "/") + "/" + b[1] + b[3]
			}
		}
		p = escapePath(p)
		if slug != "" {
			p = slug
		}
		p = join(route, p)
	default:
		sp.kind = millrace.Documentation
		parts := strings.Split(strings.Trim(dir, "/"), "/")
		for i := range parts {
			parts[i] = unnumbered(parts[i])
		}
		folder := strings.Join(parts, "/")
		base := unnumbered(stem)
		index := strings.EqualFold(base, "index") || isReadme(base) || folder != "" && strings.EqualFold(base, parts[len(parts)-1])
		sp.weak = isReadme(base)
		switch {
		case strings.HasPrefix(slug, "/"):
			p = join(route, slug)
			if strings.HasSuffix(slug, "/") {
				p = asFolder(p)
			}
		case slug != "":
			p = join(route, escapePath(folder), slug)
		case index:
			p = asFolder(join(route, escapePath(folder)))
		default:
			id := m.text("id")
			p = join(route, escapePath(folder), tree.Escape(cmp.Or(id, base)))
		}
	}
	switch {
	case d.slash == "true":
		p = asFolder(p)
	case d.slash == "false" && p != "/":
		p = strings.TrimSuffix(p, "/")
	}
	var err error
	sp.url, err = pageURL(p)
	return sp, err
}
