package markdown

import (
	"cmp"
	"fmt"
	"io/fs"
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
	prefixes   map[string]string // URL prefix of each language, such as "" or "de"
	codes      map[string]string // language code that the pages of each language have
	main       string            // default language
	ugly       bool
	uglyIn     map[string]bool
	keepCase   bool
	permalinks map[string]string // URL pattern of pages, by section
	sections   map[string]string // URL pattern of section pages, by section
	fileDates  bool              // use dates in file names
	cascades   map[string]matter // front matter that the pages below a content folder inherit
	indexed    map[string]bool   // content folders that have a page
	targeted   bool              // whether a cascade that applies only to some pages determines their address or existence
	ignored    []string          // patterns for files that are not pages
}

// hugoRoot is a folder of pages. at is its path in the content, or "" for the content folder
// itself.
type hugoRoot struct{ name, language, at string }

// hugoConfig returns the configuration file, merged with the files in the folder config.
func (p *project) hugoConfig() (matter, error) {
	c := p.conf
	for _, dir := range []string{"config/_default", "config/production"} {
		list, err := fs.ReadDir(p.root.FS(), dir)
		if err != nil {
			continue // a project may lack this folder
		}
		for _, e := range list {
			name := path.Join(dir, e.Name())
			part := strings.ToLower(stemOf(e.Name()))
			if !slices.Contains([]string{".toml", ".yaml", ".yml", ".json"}, path.Ext(name)) || name == p.file {
				continue
			}
			m, err := p.read(name)
			if err != nil {
				return nil, err
			}
			part, language, translated := strings.Cut(part, ".")
			if part != "hugo" && part != "config" {
				m = matter{part: map[string]any(m)}
			}
			if translated {
				m = matter{"languages": map[string]any{language: map[string]any(m)}}
			}
			c = merged(c, m)
		}
	}
	return c, nil
}

// merged returns the values of two maps. The values in the second map take precedence.
func merged(a, b matter) matter {
	out := maps.Clone(a)
	if out == nil {
		out = matter{}
	}
	for k, v := range b {
		if under, ok := v.(map[string]any); ok {
			v = map[string]any(merged(out.under(k), lowered(under)))
		}
		out[k] = v
	}
	return out
}

func loadHugo(p *project) (*site, error) {
	c, err := p.hugoConfig()
	if err != nil {
		return nil, err
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
			h.folders = append(h.folders, hugoRoot{name: path.Clean(dir), language: l})
		}
	}
	if len(h.folders) < max(len(h.languages), 1) || slices.Contains(h.roots(), path.Clean(content)) {
		if !slices.Contains(h.roots(), path.Clean(content)) {
			h.folders = append(h.folders, hugoRoot{name: path.Clean(content), language: h.main})
		}
	}
	if mounts := h.mounts(c.under("module")["mounts"]); len(mounts) > 0 {
		h.folders = mounts
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
	if h.cascades, err = h.readCascades(p, c["cascade"]); err != nil {
		return nil, err
	}
	h.ignored = c.list("ignorefiles", false)
	unsure := unknownToken(hugoAny, hugoTokens, append(slices.Collect(maps.Values(h.permalinks)), slices.Collect(maps.Values(h.sections))...)...)
	switch {
	case unsure != "":
	case h.targeted:
		unsure = "a cascade with a target"
	case c.is("removepathaccents"):
		unsure = "removePathAccents"
	case slices.ContainsFunc(c.list("disablekinds", true), func(k string) bool { return k == "page" || k == "section" || k == "home" }):
		unsure = "disableKinds"
	}
	for l := range languages {
		if languages.under(l).text("baseurl") != "" {
			unsure = "languages with a baseURL"
		}
	}
	h.fileDates = slices.Contains(c.under("frontmatter").list("date", false), ":filename")
	return &site{
		convention: h, title: cmp.Or(languages.under(h.main).text("title"), c.text("title")), values: c.under("params"),
		generator: generator{generators[Hugo].name, generators[Hugo].command, cmp.Or(c.text("publishdir"), generators[Hugo].out)}, unsupported: unsure,
		base: baseOf(c.text("baseurl")), language: h.codes[h.main], shortNames: true,
		drafts: c.is("builddrafts"), future: c.is("buildfuture"), expired: c.is("buildexpired"),
	}, nil
}

// mounts returns the folders that the configuration mounts as content. They replace all other
// content folders.
func (h *hugoSite) mounts(list any) (out []hugoRoot) {
	all, _ := list.([]any)
	for _, e := range all {
		m, _ := e.(map[string]any)
		mount := lowered(m)
		rest, ok := strings.CutPrefix(path.Clean(mount.text("target"))+"/", "content/")
		if ok && mount.text("source") != "" {
			out = append(out, hugoRoot{path.Clean(mount.text("source")), cmp.Or(mount.text("lang"), h.main), strings.Trim(rest, "/")})
		}
	}
	return out
}

// readCascades returns the front matter that the pages below each folder inherit from the
// configuration and from section pages. It also finds all section pages.
func (h *hugoSite) readCascades(p *project, own any) (map[string]matter, error) {
	out := map[string]matter{}
	h.indexed = map[string]bool{}
	add := func(dir string, v any) {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, e := range list {
			e, _ := e.(map[string]any)
			m := lowered(e)
			if m["target"] == nil && m["_target"] == nil {
				out[dir] = merged(out[dir], m)
			} else {
				h.targeted = h.targeted || slices.ContainsFunc(slices.Collect(maps.Keys(m)), decides)
			}
		}
	}
	add("", own)
	for _, r := range h.folders {
		err := fs.WalkDir(p.root.FS(), r.name, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), "_index.") || !isMarkdown(name) {
				return nil //nolint:nilerr // a walk over the pages reports this error
			}
			_, rel := below([]string{r.name}, name)
			dir := strings.Trim(path.Join(r.at, path.Dir(rel)), "./")
			h.indexed[dir] = true
			data, _, _, err := tree.Read(p.root, name, maxMatter)
			if err != nil {
				return nil //nolint:nilerr // a walk over the pages reports this error
			}
			if hd, err := parseHead(data); err == nil && hd.matter["cascade"] != nil {
				add(dir, hd.matter["cascade"])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// decides reports whether a field of front matter determines the address of a page, or whether the
// page exists.
func decides(field string) bool {
	return slices.Contains([]string{"url", "slug", "build", "_build", "draft", "headless", "publishdate", "expirydate", "date"}, field)
}

// fill adds the cascades that apply to a file to its front matter.
func (h *hugoSite) fill(m matter, dir string) matter {
	for len(h.cascades) > 0 {
		if c := h.cascades[dir]; c != nil {
			m = merged(c, m)
		}
		if dir == "" {
			break
		}
		if dir = path.Dir(dir); dir == "." {
			dir = ""
		}
	}
	return m
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
		leaf = false // an index.md in the content folder does not make the whole site a bundle
	}
	if folder {
		return !leaf && base != "node_modules", nil
	}
	if !isMarkdown(base) || path.Ext(base) == ".mdx" {
		return false, nil
	}
	for _, pattern := range h.ignored {
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString("/"+name) {
			return true, unpublished{"excluded", "excluded by the configuration"}
		}
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
			def, rel = r.language, path.Join(r.at, rel)
		}
	}
	dir, file := path.Split(rel)
	dir = strings.TrimSuffix(dir, "/")
	m = h.fill(m, dir)
	hd.matter = m
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
		ugly = ugly && dir != "" // the page of the content folder always has the path of a folder
	default:
		p = path.Join(h.clean(dir), h.clean(cmp.Or(slug, stem)))
	}
	p = join(prefix, p) + strings.Repeat("/", map[bool]int{true: 1}[strings.HasSuffix(p, "/") && strings.Trim(p, "/") != ""])
	switch {
	case ugly && p != "/":
		p = strings.TrimSuffix(p, "/") + ".html"
	case path.Ext(m.text("url")) != "": // the page is a file, such as /feed.json
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

// hides reports whether the build options in front matter exclude a page.
func hides(m matter) bool {
	v := strings.ToLower(m.text("render"))
	return v == "never" || v == "link" || v == "false" || m.isNot("render")
}

type hugoValues struct {
	dir, stem, slug, title string
	date                   time.Time
}

// hugoTokens contains the tokens of permalinks that expand supports. hugoAny matches every token.
const hugoTokens = "year month monthname day weekday weekdayname yearday section sections title slug filename contentbasename " +
	"slugorfilename slugorcontentbasename"

var hugoAny = regexp.MustCompile(`:\w+`)

var hugoToken = regexp.MustCompile(`:[a-z]+(\[[^\]]*\])?`)

// expand replaces the tokens in a pattern: https://gohugo.io/configuration/permalinks/.
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
			return h.clean(strings.Join(slice(h.sectionsOf(v.dir), strings.TrimSuffix(part, "]")), "/"))
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

// sectionsOf returns the sections that contain a folder: the section on the first level, and those
// with a page.
func (h *hugoSite) sectionsOf(dir string) (out []string) {
	at := ""
	for i, name := range strings.Split(dir, "/") {
		if at = path.Join(at, name); i == 0 || h.indexed[at] {
			out = append(out, name)
		}
	}
	return out
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

// clean converts a path as Hugo does: to lower case, with hyphens for white space, and without
// characters other than letters, digits and some punctuation.
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
