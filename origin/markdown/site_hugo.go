package markdown

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tree"
)

// hugoSite is the convention of Hugo's content folder: https://gohugo.io/content-management/.
type hugoSite struct {
	folders    []hugoRoot
	languages  []string
	prefixes   map[string]string // URL prefix of each language: "" or "de"
	codes      map[string]string // language code of each language in its pages
	main       string            // default language
	ugly       bool
	uglyIn     map[string]bool
	keepCase   bool
	permalinks map[string]string // URL pattern of pages, by section
	sections   map[string]string // URL pattern of section pages, by section
	fileDates  bool              // use dates in file names
}

type hugoRoot struct{ name, language string }

func loadHugo(p *project) (*site, error) {
	c := p.conf
	if path.Dir(p.file) == "config/_default" {
		for _, part := range []string{"languages", "permalinks", "frontmatter"} {
			for _, ending := range []string{".toml", ".yaml", ".yml", ".json"} {
				m, err := p.read("config/_default/" + part + ending)
				if err != nil {
					return nil, err
				}
				if m != nil {
					c[part] = map[string]any(m)
					break
				}
			}
		}
	}
	h := &hugoSite{prefixes: map[string]string{}, codes: map[string]string{}, main: cmp.Or(c.text("defaultcontentlanguage"), "en")}
	content := cmp.Or(c.text("contentdir"), "content")
	if p.file == "" && !p.isFolder(content) {
		content = "."
	}
	languages := c.under("languages")
	for _, l := range slices.Sorted(maps.Keys(languages)) {
		conf := languages.under(l)
		if conf.is("disabled") {
			continue
		}
		h.languages = append(h.languages, l)
		if h.codes[l] = conf.text("languagecode", "locale"); h.codes[l] == "" && l == h.main {
			h.codes[l] = c.text("languagecode", "locale")
		}
		h.codes[l] = cmp.Or(h.codes[l], l)
		if l != h.main || c.is("defaultcontentlanguageinsubdir") {
			h.prefixes[l] = l
		}
		if dir := conf.text("contentdir"); dir != "" {
			h.folders = append(h.folders, hugoRoot{path.Clean(dir), l})
		}
	}
	if len(h.folders) < max(len(h.languages), 1) || slices.Contains(h.roots(), path.Clean(content)) {
		if !slices.Contains(h.roots(), path.Clean(content)) {
			h.folders = append(h.folders, hugoRoot{path.Clean(content), h.main})
		}
	}
	for _, r := range h.folders {
		if !p.isFolder(r.name) {
			return nil, millrace.Coded("folder-outside", fmt.Errorf("%w: the folder %q of %s is not in the project", millrace.ErrInvalid, r.name, p.file))
		}
	}
	if h.codes[h.main] == "" || len(h.languages) == 0 {
		h.codes[h.main] = cmp.Or(c.text("languagecode", "locale"), h.main)
	}
	h.ugly, h.uglyIn = c.is("uglyurls"), map[string]bool{}
	for k := range c.under("uglyurls") {
		h.uglyIn[k] = c.under("uglyurls").is(k)
	}
	h.keepCase = c.is("disablepathtolower")
	h.permalinks, h.sections = map[string]string{}, map[string]string{}
	for section, v := range c.under("permalinks") {
		switch v := v.(type) {
		case string:
			h.permalinks[section] = v
		case map[string]any:
			into := map[string]map[string]string{"page": h.permalinks, "section": h.sections}[section]
			for k, v := range v {
				if s, ok := v.(string); ok && into != nil {
					into[k] = s
				}
			}
		}
	}
	h.fileDates = slices.Contains(c.under("frontmatter").list("date", false), ":filename")
	return &site{
		convention: h, title: cmp.Or(languages.under(h.main).text("title"), c.text("title")), values: c.under("params"), base: baseOf(c.text("baseurl")), language: h.codes[h.main], shortNames: true,
		drafts: c.is("builddrafts"), future: c.is("buildfuture"), expired: c.is("buildexpired"),
	}, nil
}

func (h *hugoSite) roots() []string {
	var out []string
	for _, r := range h.folders {
		out = append(out, r.name)
	}
	return out
}

func (h *hugoSite) entry(name string, folder bool, has func(string) bool) (bool, error) {
	base := path.Base(name)
	leaf := has("index.md") || slices.ContainsFunc(h.languages, func(l string) bool { return has("index." + l + ".md") })
	if root, rel := below(h.roots(), name); leaf && root != "" && path.Dir(rel) == "." {
		leaf = false // an index.md at the top does not make the whole site a bundle
	}
	if folder {
		return !leaf && base != "node_modules", nil
	}
	if !isMarkdown(base) || path.Ext(base) == ".mdx" {
		return false, nil
	}
	if stem, _ := h.language(stemOf(base), ""); leaf && stem != "index" {
		return true, unpublished{"bundle", "part of a page's bundle"}
	}
	return true, nil
}

// language splits the language suffix from a file name's stem.
func (h *hugoSite) language(stem, def string) (string, string) {
	if i := strings.LastIndexByte(stem, '.'); i > 0 && slices.Contains(h.languages, strings.ToLower(stem[i+1:])) {
		return stem[:i], strings.ToLower(stem[i+1:])
	}
	return stem, def
}

var fileDate = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[-_ ](.+)$`)

func (h *hugoSite) spot(name string, hd *head) (spot, error) {
	m := hd.matter
	root, rel := below(h.roots(), name)
	def := h.main
	for _, r := range h.folders {
		if r.name == root {
			def = r.language
		}
	}
	dir, file := path.Split(rel)
	dir = strings.TrimSuffix(dir, "/")
	stem, lang := h.language(stemOf(file), def)
	section, _, _ := strings.Cut(dir, "/")
	sp := spot{section: section, language: h.codes[lang]}
	if m.is("headless") || hides(m.under("build")) || hides(m.under("_build")) {
		return sp, unpublished{"no-page", "the front matter disables the page"}
	}
	list := stem == "_index"
	bundle := stem == "index" && dir != ""
	if bundle {
		stem, dir = path.Base(dir), path.Dir(dir)
		if dir == "." {
			dir, sp.section = "", ""
		}
	}
	slug := m.text("slug")
	sp.date = m.date("date", "publishdate", "pubdate", "published", "lastmod", "modified")
	if d := fileDate.FindStringSubmatch(stem); d != nil && h.fileDates {
		if t, ok := parseDate(d[1]); ok && m.date("date").IsZero() {
			sp.date, slug = t, cmp.Or(slug, d[2])
		}
	}
	if !list && !m.date("date").IsZero() {
		sp.kind = millrace.Article
	}
	ugly := h.ugly || h.uglyIn[section]
	prefix := h.prefixes[lang]
	pattern := h.permalinks[section]
	if section == "" {
		pattern = h.permalinks["/"]
	}
	if list {
		pattern = h.sections[section]
		if strings.Contains(dir, "/") {
			pattern = ""
		}
	}
	values := hugoValues{dir, stem, slug, m.text("title"), sp.date}
	var p string
	switch own := m.text("url"); {
	case own != "" && !strings.Contains(own, "://"):
		if strings.HasPrefix(own, "/") {
			prefix = ""
		}
		p, ugly = h.expand(own, values), false
	case pattern != "":
		if p = h.expand(pattern, values); !h.keepCase {
			p = strings.ToLower(p)
		}
	case list, stem == "index" && !bundle:
		p = h.clean(dir)
		ugly = ugly && dir != "" // the home page is always that of a folder
	default:
		p = path.Join(h.clean(dir), h.clean(cmp.Or(slug, stem)))
	}
	p = join(prefix, p) + strings.Repeat("/", map[bool]int{true: 1}[strings.HasSuffix(p, "/") && strings.Trim(p, "/") != ""])
	switch {
	case ugly && p != "/":
		p = strings.TrimSuffix(p, "/") + ".html"
	case path.Ext(m.text("url")) != "": // a file, such as /feed.json
	case path.Ext(p) != ".html" && path.Ext(p) != ".htm":
		p = asFolder(p)
	}
	if b := path.Base(p); b == "index.html" {
		p = strings.TrimSuffix(p, b)
	}
	var err error
	sp.url, err = pageURL(p)
	return sp, err
}

// hides reports whether build options exclude a page.
func hides(m matter) bool {
	v := strings.ToLower(m.text("render"))
	return v == "never" || v == "link" || v == "false" || m.isNot("render")
}

type hugoValues struct {
	dir, stem, slug, title string
	date                   time.Time
}

var hugoToken = regexp.MustCompile(`:[a-z]+(\[[^\]]*\])?`)

// expand fills a pattern: https://gohugo.io/configuration/permalinks/.
func (h *hugoSite) expand(pattern string, v hugoValues) string {
	return hugoToken.ReplaceAllStringFunc(pattern, func(token string) string {
		name, part, _ := strings.Cut(token[1:], "[")
		switch name {
		case "year":
			return fmt.Sprintf("%04d", v.date.Year())
		case "month":
			return fmt.Sprintf("%02d", v.date.Month())
		case "monthname":
			return v.date.Month().String()
		case "day":
			return fmt.Sprintf("%02d", v.date.Day())
		case "weekday":
			return strconv.Itoa(int(v.date.Weekday()))
		case "weekdayname":
			return v.date.Weekday().String()
		case "yearday":
			return strconv.Itoa(v.date.YearDay())
		case "section":
			s, _, _ := strings.Cut(v.dir, "/")
			return h.clean(s)
		case "sections":
			return h.clean(strings.Join(slice(strings.Split(v.dir, "/"), strings.TrimSuffix(part, "]")), "/"))
		case "title":
			return h.clean(cmp.Or(v.title, v.stem))
		case "slug":
			return h.clean(cmp.Or(v.slug, v.title, v.stem))
		case "filename", "contentbasename":
			return h.clean(v.stem)
		case "slugorfilename", "slugorcontentbasename":
			return h.clean(cmp.Or(v.slug, v.stem))
		}
		return token
	})
}

// slice returns the part of a list that "1:", "last" or "0" selects.
func slice(list []string, part string) []string {
	index := func(s string, def int) int {
		if s == "last" {
			return len(list) - 1
		}
		if n, err := strconv.Atoi(s); err == nil {
			return min(max(n, 0), len(list))
		}
		return def
	}
	if part == "" {
		return list
	}
	from, to, ranged := strings.Cut(part, ":")
	a := index(from, 0)
	if !ranged {
		return list[a:min(a+1, len(list))]
	}
	return list[a:max(a, index(to, len(list)))]
}

// clean converts a path like Hugo: letters, digits and a few signs, hyphens for white space,
// in lower case.
func (h *hugoSite) clean(s string) string {
	var b strings.Builder
	hyphen, was := false, false
	for i, r := range s {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), strings.ContainsRune(`./\_#+~-@`, r), r == '%' && isEscape(s[i:]):
			if was = r == '-'; hyphen && !was {
				b.WriteByte('-')
			}
			hyphen = false
			b.WriteRune(r)
		case unicode.IsSpace(r) && b.Len() > 0 && !was:
			hyphen = true
		}
	}
	out := b.String()
	if !h.keepCase {
		out = strings.ToLower(out)
	}
	parts := strings.Split(out, "/")
	for i := range parts {
		if !strings.Contains(parts[i], "%") {
			parts[i] = tree.Escape(parts[i])
		}
	}
	return strings.Join(parts, "/")
}

func isEscape(s string) bool {
	return len(s) > 2 && strings.Trim(s[1:3], "0123456789abcdefABCDEF") == ""
}
