package extract

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// meta reads the fields beside the content.
type meta struct {
	c      *collected
	base   *url.URL
	page   *millrace.Page
	res    *Result
	named  map[string][]string // content of meta elements by name or property, lower case
	things []thing
	guess  millrace.PageKind // by what the page declares, before its content is known
}

// known are the fields that HTML speaks for: what it does not declare, it
// says is empty.
const known = millrace.FieldTitle | millrace.FieldDescription | millrace.FieldAuthor | millrace.FieldPublished | millrace.FieldLanguage |
	millrace.FieldSection | millrace.FieldTags | millrace.FieldKind | millrace.FieldSchema | millrace.FieldAccess | millrace.FieldContent

func (m *meta) read() {
	m.named = map[string][]string{}
	for _, e := range m.c.heads {
		if e.DataAtom == atom.Link {
			if m.res.Canonical == "" && hasToken(attr(e, "rel"), "canonical") {
				if abs, err := canon.Resolve(m.base, attr(e, "href")); err == nil && strings.TrimSpace(attr(e, "href")) != "" {
					m.res.Canonical = abs
				}
			}
			continue
		}
		value := oneLine(attr(e, "content"))
		for _, key := range []string{"name", "property", "http-equiv", "itemprop"} {
			if k := strings.ToLower(strings.TrimSpace(attr(e, key))); k != "" && value != "" && len(m.named[k]) < 100 {
				m.named[k] = append(m.named[k], value)
			}
		}
	}
	m.page.Schema = schemas(m.c.jsons)
	m.things = things(m.page.Schema)
	slices.SortStableFunc(m.things, func(a, b thing) int { return rank(&a) - rank(&b) })
	m.page.Known, m.page.Detail = known, millrace.DetailBlocks
	if len(m.page.Schema) > 0 {
		m.res.Sources["schema"] = "json-ld"
	}
	m.title()
	m.page.Description = m.first("description", "json-ld description", "meta description", "meta og:description", "meta twitter:description")
	m.author()
	m.dates()
	m.language()
	m.page.Section = m.first("section", "json-ld articleSection", "meta article:section", "meta section")
	m.tags()
	for _, v := range m.named["robots"] {
		v = strings.ToLower(v)
		if strings.Contains(v, "noindex") || hasToken(v, "none") {
			m.page.Access.NoIndex = true
			m.res.Sources["access"] = "meta robots"
		}
	}
	m.guess = m.guessKind()
}

// rank orders JSON-LD objects by how likely they are about the page itself.
func rank(t *thing) int {
	switch {
	case t.isArticle():
		return 0
	case t.is("Product", "ProductGroup", "Event", "JobPosting", "Course", "SoftwareApplication", "Book", "Movie"):
		return 1
	case t.is("*Page"):
		return 2
	}
	return 3
}

// first gives the first value that one of some places has: "meta NAME" or
// "json-ld KEY" of an object about the page.
func (m *meta) first(field string, places ...string) string {
	for _, p := range places {
		kind, key, _ := strings.Cut(p, " ")
		if kind == "meta" {
			for _, v := range m.named[key] {
				if !isTemplate(v) {
					m.res.Sources[field] = p
					return v
				}
			}
			continue
		}
		for i := range m.things {
			if rank(&m.things[i]) > 2 {
				continue
			}
			if v := m.things[i].text(key); v != "" && !isTemplate(v) {
				m.res.Sources[field] = p
				return v
			}
		}
	}
	return ""
}

// isTemplate reports whether a value is a placeholder that was never filled.
func isTemplate(s string) bool {
	return strings.Contains(s, "{{") || strings.HasPrefix(s, "${") || strings.HasPrefix(s, "#") && strings.HasSuffix(s, "#") || strings.HasPrefix(s, "%%")
}

// title takes the heading that the head of the document confirms, else what
// the head says.
func (m *meta) title() {
	site := m.firstNamed("og:site_name", "application-name")
	if site == "" {
		for i := range m.things {
			if m.things[i].is("WebSite", "Organization") {
				site = m.things[i].text("name")
			}
		}
	}
	claims := []string{m.c.title, m.firstNamed("og:title"), m.firstNamed("twitter:title")}
	for i := range m.things {
		if rank(&m.things[i]) < 2 {
			claims = append(claims, m.things[i].text("headline"), m.things[i].text("name"))
		}
	}
	for i, c := range claims {
		claims[i] = letters(c)
	}
	siteLetters := letters(site)
	best, length := 0, 0 // of the heading chosen so far: how well it is confirmed, how long it is
	text, source := "", ""
	for _, level := range []int{1, 2} {
		if m.c.titleNode != nil {
			break
		}
		for _, h := range m.c.headings {
			if headingLevel(h) != level || inFurniture(h) {
				continue
			}
			t := headingText(h)
			l := letters(t)
			if l == "" || len(l) > 1000 || l == siteLetters && level == 1 && len(m.c.headings) > 1 {
				continue
			}
			score := 0
			for _, c := range claims {
				switch {
				case c == "":
				case c == l:
					score = max(score, 3)
				case level == 1 && (strings.HasPrefix(c, l) || strings.HasSuffix(c, l) && l != siteLetters):
					score = max(score, 2)
				case level == 2 && strings.HasPrefix(c, l) && len(l)*2 > len(c):
					score = max(score, 2)
				case level == 1 && (strings.Contains(c, l) && len(l)*3 > len(c) || strings.Contains(l, c)):
					score = max(score, 1)
				}
			}
			if score == 0 && level == 1 && (alike(t, m.c.title) || alike(t, m.firstNamed("og:title"))) {
				score = 1
			}
			if score > best || score == best && score == 2 && len(l) > length {
				length, best, m.c.titleNode, text, source = len(l), score, h, t, h.Data
			}
		}
	}
	if text == "" {
		if og := m.firstNamed("og:title", "twitter:title"); og != "" && letters(og) != siteLetters && !isTemplate(og) {
			text, source = withoutSite(og, site), "meta og:title"
		} else if m.c.title != "" {
			text, source = withoutSite(m.c.title, site), "title"
		} else if h := m.onlyHeading(); h != nil {
			text, source = headingText(h), "h1"
			m.c.titleNode = h
		}
	}
	if m.page.Title = text; text != "" {
		m.res.Sources["title"] = source
	}
}

// alike reports whether two titles share most of their words.
func alike(a, b string) bool {
	common, words := 0, strings.Fields(strings.ToLower(b))
	list := strings.Fields(strings.ToLower(a))
	for _, w := range list {
		if slices.Contains(words, w) {
			common++
		}
	}
	return len(list) < 100 && len(words) < 100 && common >= 2 && common*2 >= min(len(list), len(words))
}

// onlyHeading gives the heading of the first level if there is just one.
func (m *meta) onlyHeading() *html.Node {
	var only *html.Node
	for _, h := range m.c.headings {
		if headingLevel(h) == 1 && plainText(h) != "" {
			if only != nil {
				return nil
			}
			only = h
		}
	}
	return only
}

func inFurniture(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		switch p.DataAtom {
		case atom.Nav, atom.Footer, atom.Dialog:
			return true
		}
	}
	return false
}

// headingText is the text of a heading without its permalink.
func headingText(h *html.Node) string {
	var b []byte
	for c := h.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || !isPermalink(c) {
			b = appendPlain(b, c)
		}
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// letters gives the letters and digits of a text in lower case: what is
// compared.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// withoutSite cuts the name of the site off a title.
func withoutSite(title, site string) string {
	for _, sep := range []string{" | ", " - ", " – ", " — ", " · ", " » ", " « ", " :: ", " / ", " • "} {
		head, tail := title, ""
		if i := strings.LastIndex(title, sep); i > 0 {
			head, tail = title[:i], title[i+len(sep):]
			switch {
			case site != "" && letters(tail) == letters(site):
				return head
			case site != "" && letters(head) == letters(site):
				return tail
			case site == "" && len(strings.Fields(head)) >= 2 && len(strings.Fields(tail)) <= 4 && sep != " / ":
				return head
			case sep == " | " && len(head) > len(tail):
				return head
			}
		}
	}
	return title
}

func (m *meta) firstNamed(names ...string) string {
	for _, n := range names {
		if v := m.named[n]; len(v) > 0 {
			return v[0]
		}
	}
	return ""
}

func (m *meta) author() {
	var names []string
	source := ""
	add := func(from string, list ...string) {
		for _, s := range list {
			if s = personName(s); s != "" && (source == "" || source == from) && !slices.Contains(names, s) && len(names) < 20 {
				names, source = append(names, s), from
			}
		}
	}
	for i := range m.things {
		if m.things[i].isArticle() || m.things[i].is("*Page") {
			add("json-ld author", texts(m.things[i].values["author"])...)
			if len(names) > 0 {
				break
			}
		}
	}
	for _, key := range []string{"author", "article:author", "dc.creator", "parsely-author", "sailthru.author", "citation_author"} {
		add("meta "+key, m.named[key]...)
	}
	for _, n := range m.c.props {
		prop := attr(n, "itemprop")
		if hasToken(prop, "author") || hasToken(prop, "creator") {
			inner := find(n, func(e *html.Node) bool { return hasToken(attr(e, "itemprop"), "name") })
			if inner != nil {
				n = inner
			}
			if v := attr(n, "content"); v != "" {
				add("itemprop author", v)
			} else {
				add("itemprop author", plainText(n))
			}
		}
	}
	if source == "" && m.guess != millrace.Forum {
		for _, n := range m.c.props {
			if source == "" && hasToken(attr(n, "rel"), "author") {
				add("rel author", plainText(n))
			}
		}
	}
	if source == "" && m.guess != millrace.Forum {
		if name := m.byline(); name != "" {
			add("byline", name)
		}
	}
	if m.page.Author = strings.Join(names, ", "); source != "" {
		m.res.Sources["author"] = source
	}
}

// byline gives the name that stands with the page's title in an element whose
// class says that it names the author.
func (m *meta) byline() string {
	top := m.titleBlock()
	if top == nil {
		return ""
	}
	steps, found := 0, ""
	find(top, func(n *html.Node) bool {
		if steps++; steps > 300 {
			return true
		}
		class := strings.ToLower(attr(n, "class"))
		if !strings.Contains(class, "author") && !strings.Contains(class, "byline") {
			return false
		}
		t := plainText(n)
		if i := strings.IndexAny(t, "|·•,—"); i > 0 {
			t = t[:i]
		}
		if t = personName(t); len(t) > 50 || strings.ContainsAny(t, "0123456789:?!") || len(strings.Fields(t)) < 2 || len(strings.Fields(t)) > 5 {
			return false
		}
		for f := range strings.FieldsSeq(t) {
			if r, _ := utf8.DecodeRuneInString(f); unicode.IsLower(r) && len(f) > 3 {
				return false
			}
		}
		found = t
		return true
	})
	return found
}

// personName cleans a name; an address or a URL is none.
func personName(s string) string {
	s = oneLine(s)
	for _, p := range []string{"By ", "by ", "BY ", "Written by ", "written by "} {
		s = strings.TrimPrefix(s, p)
	}
	if s = strings.Trim(s, " ,;|"); len(s) > 120 || strings.ContainsAny(s, "@{}<>") || strings.Contains(s, "://") || isTemplate(s) || !strings.ContainsFunc(s, unicode.IsLetter) {
		return ""
	}
	switch strings.ToLower(s) {
	case "admin", "administrator", "author", "unknown", "null", "undefined", "none", "anonymous":
		return ""
	}
	return s
}

func (m *meta) dates() {
	var source string
	pick := func(key string, names ...string) time.Time {
		for i := range m.things {
			if rank(&m.things[i]) > 2 || rank(&m.things[i]) == 1 {
				continue
			}
			if t, ok := parseTime(m.things[i].text(key)); ok {
				source = "json-ld " + key
				return t
			}
		}
		for _, n := range names {
			for _, v := range m.named[n] {
				if t, ok := parseTime(v); ok {
					source = "meta " + n
					return t
				}
			}
		}
		for _, n := range m.c.props {
			if hasToken(attr(n, "itemprop"), key) {
				for _, v := range []string{attr(n, "datetime"), attr(n, "content"), plainText(n)} {
					if t, ok := parseTime(v); ok {
						source = "itemprop " + key
						return t
					}
				}
			}
		}
		return time.Time{}
	}
	m.page.Published = pick("datePublished", "article:published_time", "og:article:published_time", "datepublished", "dc.date.issued", "dcterms.created",
		"citation_publication_date", "parsely-pub-date", "sailthru.date", "pubdate", "publish-date", "publish_date", "date", "dc.date")
	if m.page.Published.IsZero() {
		if t, ok := m.nearTitle(); ok {
			m.page.Published, source = t, "time"
		}
	}
	if !m.page.Published.IsZero() {
		m.res.Sources["published"] = source
	}
	m.page.Modified = pick("dateModified", "article:modified_time", "og:updated_time", "og:article:modified_time", "datemodified", "dcterms.modified", "last-modified")
	if !m.page.Modified.IsZero() {
		m.page.Known |= millrace.FieldModified
		m.res.Sources["modified"] = source
	}
}

// titleBlock gives the element around the page's title in which a byline and a
// date are expected, nil if there is no title on the page.
func (m *meta) titleBlock() *html.Node {
	top := m.c.titleNode
	if top == nil {
		return nil
	}
	for steps := 0; steps < 4 && top.Parent != nil && top.Parent.DataAtom != atom.Body; steps++ {
		top = top.Parent
		if top.DataAtom == atom.Article || top.DataAtom == atom.Main {
			break
		}
	}
	return top
}

// nearTitle gives the time that stands with the page's title.
func (m *meta) nearTitle() (time.Time, bool) {
	top := m.titleBlock()
	if top == nil {
		return time.Time{}, false
	}
	for _, n := range m.c.times {
		if !isAncestor(top, n) {
			continue
		}
		v := attr(n, "datetime")
		if v == "" {
			v = plainText(n)
		}
		if t, ok := parseTime(v); ok {
			return t, true
		}
		break // the first one counts
	}
	return time.Time{}, false
}

var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST",
	"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006/01/02", "January 2, 2006", "Jan 2, 2006", "Jan. 2, 2006", "2 January 2006", "2 Jan 2006",
	time.RFC1123, time.RFC1123Z, "January 2, 2006 3:04 pm", "January 2, 2006 15:04", "20060102",
}

// parseTime reads a date as pages write it. A year alone is none.
func parseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 || len(s) > 60 {
		return time.Time{}, false
	}
	for _, l := range layouts {
		if t, err := time.Parse(l, s); err == nil && t.Year() >= 1980 && t.Year() < 2200 {
			return t.UTC().Truncate(time.Second), true
		}
	}
	return time.Time{}, false
}

func (m *meta) language() {
	for _, p := range []struct{ source, value string }{
		{"html lang", attr(m.c.html, "lang")}, {"html xml:lang", attr(m.c.html, "xml:lang")}, {"meta content-language", m.firstNamed("content-language")},
		{"meta og:locale", m.firstNamed("og:locale")}, {"json-ld inLanguage", m.first("language", "json-ld inLanguage")},
	} {
		if tag := languageTag(p.value); tag != "" {
			m.page.Language = tag
			m.res.Sources["language"] = p.source
			return
		}
	}
	delete(m.res.Sources, "language")
}

// languageTag gives a BCP 47 tag in the usual case, "" for what is none.
func languageTag(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(strings.ReplaceAll(s, "_", "-")), ",")
	parts := strings.Split(s, "-")
	for i, p := range parts {
		if len(p) > 8 || len(p) == 0 || strings.ContainsFunc(p, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
		}) {
			return ""
		}
		switch {
		case i == 0:
			if len(p) < 2 || len(p) > 3 {
				return ""
			}
			parts[i] = strings.ToLower(p)
		case len(p) == 2:
			parts[i] = strings.ToUpper(p)
		case len(p) == 4:
			parts[i] = strings.ToUpper(p[:1]) + strings.ToLower(p[1:])
		}
	}
	return strings.Join(parts, "-")
}

func (m *meta) tags() {
	source := ""
	add := func(from string, list ...string) {
		for _, v := range list {
			if source != "" && source != from {
				return
			}
			for t := range strings.SplitSeq(v, ",") {
				if t = oneLine(t); t != "" && len(t) <= 80 && !isTemplate(t) && len(m.page.Tags) < 50 && !slices.Contains(m.page.Tags, t) {
					m.page.Tags, source = append(m.page.Tags, t), from
				}
			}
		}
	}
	add("meta article:tag", m.named["article:tag"]...)
	for i := range m.things {
		if rank(&m.things[i]) < 3 {
			add("json-ld keywords", texts(m.things[i].values["keywords"])...)
		}
	}
	add("meta keywords", m.named["keywords"]...)
	add("meta news_keywords", m.named["news_keywords"]...)
	if source != "" {
		m.res.Sources["tags"] = source
	}
}

// finish sets what only the content tells.
func (m *meta) finish(l *located, blocks []millrace.Block) {
	m.page.Kind, m.res.Sources["kind"] = m.kind(l, blocks)
	if m.page.Kind == "" {
		delete(m.res.Sources, "kind")
	}
}
