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

// jekyllSite is the convention of Jekyll: https://jekyllrb.com/docs/permalinks/.
type jekyllSite struct {
	source      string // folder that contains the sources of the site
	collections string // folder of the collections
	style       string // permalink style
	permalinks  map[string]string
	output      map[string]bool // whether a collection has pages, by its name
	exclude     []string
	include     []string
	drafts      bool
	defaults    []jekyllDefault
	zone        string // IANA time zone. If empty, UTC, which most build servers use.
}

// jekyllDefault is default front matter in the configuration, which applies to some files.
type jekyllDefault struct {
	path, kind string
	values     matter
}

func loadJekyll(p *project) (*site, error) {
	c := p.conf
	j := &jekyllSite{
		source: path.Clean(cmp.Or(c.text("source"), ".")), style: cmp.Or(c.text("permalink"), "date"),
		permalinks: map[string]string{}, output: map[string]bool{"posts": true}, drafts: c.is("show_drafts"),
		exclude: append(c.list("exclude", false), "node_modules", "vendor/bundle/", "vendor/cache/", "vendor/gems/", "vendor/ruby/", "gemfiles"),
		include: c.list("include", false), zone: c.text("timezone"),
	}
	if !p.isFolder(j.source) {
		return nil, millrace.Coded("folder-outside", fmt.Errorf("%w: the folder %q of %s is not in the project", millrace.ErrInvalid, j.source, p.file))
	}
	j.collections = path.Join(j.source, c.text("collections_dir"))
	collections := c.under("collections")
	for name := range collections {
		conf := collections.under(name)
		if name != "posts" {
			j.output[name] = conf.is("output")
		}
		if s := conf.text("permalink"); s != "" {
			j.permalinks[name] = s
		}
	}
	if collections == nil {
		for _, name := range c.list("collections", false) {
			j.output[name] = false
		}
	}
	defaults, _ := c["defaults"].([]any)
	for _, d := range defaults {
		if d, ok := d.(map[string]any); ok {
			scope := lowered(d).under("scope")
			j.defaults = append(j.defaults, jekyllDefault{scope.text("path"), scope.text("type"), lowered(d).under("values")})
		}
	}
	patterns := append(slices.Collect(maps.Values(j.permalinks)), jekyllStyle(j.style))
	unsure := cmp.Or(mover(Jekyll, c["plugins"]), mover(Jekyll, c["gems"]), p.script(path.Join(j.source, "_plugins/*.rb"), path.Join(j.source, "_plugins/*/*.rb")),
		unknownToken(jekyllToken, jekyllTokens, patterns...))
	base := ""
	if u := baseOf(c.text("url")); u != "" {
		base = asFolder(u + strings.Trim(c.text("baseurl"), "/"))
	}
	return &site{
		convention: j, title: c.text("title", "name"), values: c,
		generator: generator{generators[Jekyll].name, generators[Jekyll].command, cmp.Or(c.text("destination"), generators[Jekyll].out)}, unsupported: unsure,
		base: baseOf(base), language: c.text("lang", "locale"), shortNames: true,
		drafts: c.is("unpublished"), future: c.is("future"),
	}, nil
}

func (j *jekyllSite) roots() []string { return []string{j.source} }

func (j *jekyllSite) entry(name string, folder bool, _ func(string) bool) (bool, error) {
	_, rel := below(j.roots(), name)
	base := path.Base(rel)
	if j.excluded(rel) || strings.ContainsAny(base[:1], "#~") { // editors create such backup files
		return false, nil
	}
	if strings.HasPrefix(base, "_") && !slices.Contains(j.include, base) && !slices.Contains(j.include, rel) {
		if folder {
			_, collection := j.output[base[1:]]
			return base == "_posts" || base == "_drafts" || collection && path.Dir(name) == j.collections, nil
		}
		if isMarkdown(base) && j.collection(name) == "" {
			return true, errPrivate
		}
	}
	return folder || isMarkdown(base) && path.Ext(base) != ".mdx", nil
}

func (j *jekyllSite) excluded(rel string) bool {
	for _, pattern := range j.exclude {
		pattern = strings.Trim(strings.TrimPrefix(pattern, "./"), "/")
		if slices.Contains(j.include, pattern) || pattern == "" {
			continue
		}
		if within(pattern, rel) {
			return true
		}
		if ok, err := path.Match(pattern, rel); ok && err == nil {
			return true
		}
	}
	return false
}

// collection returns the name of the collection that contains a file, or "".
func (j *jekyllSite) collection(name string) string {
	rel, ok := strings.CutPrefix(name, j.collections+"/")
	if j.collections == "." {
		rel, ok = name, true
	}
	top, _, inside := strings.Cut(rel, "/")
	if label, is := strings.CutPrefix(top, "_"); ok && inside && is {
		if _, known := j.output[label]; known && label != "posts" {
			return label
		}
	}
	return ""
}

var postName = regexp.MustCompile(`^(\d{2,4})-(\d{1,2})-(\d{1,2})-(.+)$`)

func (j *jekyllSite) spot(name string, h *head) (spot, error) {
	_, rel := below(j.roots(), name)
	dir, file := path.Split("/" + rel)
	stem := stemOf(file)
	before, _, post := strings.Cut(dir, "/_posts/")
	draft := strings.Contains(dir, "/_drafts/")
	collection := j.collection(name)
	kind := cmp.Or(collection, "pages")
	if post {
		kind = "posts"
	} else if draft {
		kind = "drafts"
	}
	j.fill(h, strings.TrimPrefix(dir, "/")+file, kind)
	m := h.matter
	sp := spot{}
	v := jekyllValues{stem: stem, slug: m.text("slug"), date: m.date("date"), collection: kind}
	if len(m.text("date")) > len(time.DateOnly) { // a date without a time is already in the site's time zone
		if zone, err := time.LoadLocation(j.zone); err == nil {
			v.date = v.date.In(zone)
		}
	}
	var template string
	switch {
	case draft && !j.drafts:
		return sp, unpublished{"draft", "draft"}
	case post || draft:
		sp.kind = millrace.Article
		if post {
			d := postName.FindStringSubmatch(stem)
			if d == nil {
				return sp, unpublished{"post-date", "the name of a post must start with its date, such as 2024-06-30-"}
			}
			t, err := time.Parse("2006-1-2", d[1]+"-"+d[2]+"-"+d[3])
			if err != nil {
				return sp, unpublished{"post-date", "the date at the start of the post's name is invalid"}
			}
			sp.date = t
			if v.date.IsZero() {
				v.date = t
			}
			v.stem = d[4]
		}
		v.slug = cmp.Or(v.slug, v.stem)
		v.categories = append(strings.FieldsFunc(strings.TrimPrefix(before, "/"), func(r rune) bool { return r == '/' }), m.list("categories", true)...)
		if c := m.text("category"); c != "" {
			v.categories = append(v.categories, c)
		}
		template = jekyllStyle(cmp.Or(j.permalinks["posts"], j.style))
	case collection != "":
		if !j.output[collection] {
			return sp, unpublished{"collection", "the collection has no output"}
		}
		if !h.any {
			return sp, errNoMatter
		}
		top := path.Join(j.collections, "_"+collection) + "/"
		v.path = stemOf(strings.TrimPrefix(name, top))
		sp.section = collection
		template = j.permalinks[collection]
		if template == "" {
			template = suffixed("/:collection/:path", j.style)
		} else {
			template = jekyllStyle(template)
		}
	default:
		if !h.any {
			return sp, errNoMatter
		}
		v.path = strings.Trim(dir, "/")
		if template = "/:path/"; stem != "index" {
			template = suffixed("/:path/:basename", j.style)
		}
	}
	if own := m.text("permalink"); own != "" {
		template = jekyllStyle(own)
	}
	var err error
	sp.url, err = pageURL(strings.TrimSuffix(v.expand(template), "index.html"))
	return sp, err
}

// fill adds the defaults in the configuration to a file's front matter.
func (j *jekyllSite) fill(h *head, rel, kind string) {
	own := h.matter
	h.matter = matter{}
	for _, d := range j.defaults {
		p := strings.Trim(d.path, "/")
		glob, _ := path.Match(p, rel)
		if (d.kind == "" || d.kind == kind) && (p == "" || within(p, rel) || glob) {
			for k, v := range d.values {
				h.matter[k] = v
			}
		}
	}
	for k, v := range own {
		h.matter[k] = v
	}
}

// jekyllStyle returns the permalink template that a style name stands for.
func jekyllStyle(s string) string {
	switch s {
	case "date":
		return "/:categories/:year/:month/:day/:title:output_ext"
	case "pretty":
		return "/:categories/:year/:month/:day/:title/"
	case "ordinal":
		return "/:categories/:year/:y_day/:title:output_ext"
	case "weekdate":
		return "/:categories/:year/W:week/:short_day/:title:output_ext"
	case "none":
		return "/:categories/:title:output_ext"
	}
	return s
}

// suffixed adds the suffix of the site's permalink style to the template of a page.
func suffixed(template, style string) string {
	switch {
	case style == "pretty", strings.HasSuffix(style, "/"):
		return template + "/"
	case style == "date", style == "ordinal", style == "weekdate", style == "none", strings.HasSuffix(style, ":output_ext"):
		return template + ":output_ext"
	}
	return template
}

type jekyllValues struct {
	stem, slug, path, collection string
	date                         time.Time
	categories                   []string
}

// jekyllTokens contains the tokens of permalinks that expand supports.
const jekyllTokens = "year short_year month i_month short_month long_month day i_day y_day short_day long_day week w_day hour minute second " +
	"title slug name basename path collection categories slugified_categories output_ext"

var jekyllToken = regexp.MustCompile(`:[a-z_]+`)

func (v *jekyllValues) expand(template string) string {
	return jekyllToken.ReplaceAllStringFunc(template, func(token string) string {
		switch token[1:] {
		case "year":
			return fmt.Sprintf("%04d", v.date.Year())
		case "short_year":
			return v.date.Format("06")
		case "month":
			return v.date.Format("01")
		case "i_month":
			return v.date.Format("1")
		case "short_month":
			return v.date.Format("Jan")
		case "long_month":
			return v.date.Format("January")
		case "day":
			return v.date.Format("02")
		case "i_day":
			return v.date.Format("2")
		case "y_day":
			return v.date.Format("002")
		case "short_day":
			return v.date.Format("Mon")
		case "long_day":
			return v.date.Format("Monday")
		case "week":
			_, w := v.date.ISOWeek()
			return fmt.Sprintf("%02d", w)
		case "w_day":
			return strconv.Itoa((int(v.date.Weekday())+6)%7 + 1)
		case "hour":
			return v.date.Format("15")
		case "minute":
			return v.date.Format("04")
		case "second":
			return v.date.Format("05")
		case "title":
			return tree.Escape(jekyllSlug(cmp.Or(v.slug, v.stem), true))
		case "slug":
			return tree.Escape(strings.ToLower(jekyllSlug(cmp.Or(v.slug, v.stem), false)))
		case "name":
			return tree.Escape(strings.ToLower(jekyllSlug(v.stem, false)))
		case "basename":
			return tree.Escape(v.stem)
		case "path":
			return escapePath(v.path)
		case "collection":
			return v.collection
		case "categories", "slugified_categories":
			var list []string
			for _, c := range v.categories {
				if c = strings.ToLower(c); token == ":slugified_categories" {
					c = jekyllSlug(c, false)
				}
				if c = escapePath(c); !slices.Contains(list, c) {
					list = append(list, c)
				}
			}
			return strings.Join(list, "/")
		case "output_ext":
			return ".html"
		}
		return token
	})
}

// jekyllSlug replaces characters other than letters and digits with hyphens. If pretty is set, it
// keeps punctuation that is allowed in a path.
func jekyllSlug(s string, pretty bool) string {
	var b strings.Builder
	hyphen := false
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || pretty && strings.ContainsRune("._~!$&'()+,;=@", r) {
			if hyphen && b.Len() > 0 {
				b.WriteByte('-')
			}
			hyphen = false
			b.WriteRune(r)
			continue
		}
		hyphen = true
	}
	return b.String()
}
