package extract

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// meta reads all fields of a page except its content.
type meta struct {
	c         *collected
	url       *url.URL // URL of the page
	base      *url.URL // base URL of references
	own       string   // page URL as given, regardless of a base element
	page      *millrace.Page
	res       *Result
	wanted    []bool              // result of Rules.prepare
	named     map[string][]string // contents of meta elements by name or property in lower case
	ldObjects []ldObject          // JSON-LD objects; those that are probably about the page come first
	// foreign reports whether the articles in the JSON-LD are other pages; see ownObjects.
	foreign  bool
	list     evidence          // evidence that the page is only a list of other pages
	guess    millrace.PageKind // kind that the page declares, determined before the content is located
	lines    []nearLine        // lines around the title, or nil if not gathered yet
	top      *html.Node        // see topNode
	topKnown bool
}

// known is the set of fields that HTML can declare. A field that is not declared is known to be
// empty.
const known = millrace.FieldTitle | millrace.FieldDescription | millrace.FieldAuthor | millrace.FieldPublished | millrace.FieldLanguage |
	millrace.FieldSection | millrace.FieldTags | millrace.FieldKind | millrace.FieldSchema | millrace.FieldAccess | millrace.FieldContent

func (m *meta) read() {
	m.named = map[string][]string{}
	for _, e := range m.c.heads {
		if e.DataAtom == atom.Link {
			if hasToken(attr(e, "rel"), "alternate") {
				m.feed(e)
			}
			if m.res.Canonical == "" && hasToken(attr(e, "rel"), "canonical") {
				if abs, err := canon.Resolve(m.base, attr(e, "href")); err == nil && strings.TrimSpace(attr(e, "href")) != "" {
					m.res.Canonical = abs
				}
			}
			continue
		}
		if strings.EqualFold(attr(e, "http-equiv"), "refresh") {
			m.refresh(e)
		}
		value := oneLine(attr(e, "content"))
		for _, key := range []string{"name", "property", "http-equiv", "itemprop"} {
			if k := strings.ToLower(strings.TrimSpace(attr(e, key))); k != "" && value != "" && len(m.named[k]) < 100 {
				m.named[k] = append(m.named[k], value)
			}
		}
	}
	m.page.Schema = schemas(m.c.jsons)
	m.ldObjects = ldObjects(m.page.Schema)
	slices.SortStableFunc(m.ldObjects, func(a, b ldObject) int { return rank(&a) - rank(&b) })
	m.ldObjects = m.ownObjects()
	m.page.Known, m.page.Detail = known, millrace.DetailBlocks
	if len(m.page.Schema) > 0 {
		m.res.Sources["schema"] = "json-ld"
	}
	m.list = listEvidence(m.c.body, m.url)
	m.guess = m.guessKind()
	m.language()
	m.title()
	m.names()
	m.page.Description = m.first("description", "json-ld description", "meta description", "meta og:description", "meta twitter:description")
	m.author()
	m.dates()
	m.page.Section = m.section()
	m.tags()
}

// ownObjects moves the article that is the page itself to the front, if the page declares several;
// the other articles are pages that it links to. If the page declares more than three articles and
// is none of them, the articles belong to a list, and ownObjects sets m.foreign.
func (m *meta) ownObjects() []ldObject {
	articles := 0
	for articles < len(m.ldObjects) && rank(&m.ldObjects[articles]) == 0 {
		articles++
	}
	if articles < 2 {
		return m.ldObjects
	}
	og, head := letters(m.firstNamed("og:title")), letters(m.c.title)
	for i := range m.ldObjects[:articles] {
		t := &m.ldObjects[i]
		name := letters(cmp.Or(t.text("headline"), t.text("name")))
		if len(name) > 8 && (name == og || strings.HasPrefix(head, name)) || m.res.Canonical != "" && (t.text("url") == m.res.Canonical || t.text("mainEntityOfPage") == m.res.Canonical) {
			own := m.ldObjects[i]
			copy(m.ldObjects[1:i+1], m.ldObjects[:i])
			m.ldObjects[0] = own
			return m.ldObjects
		}
	}
	if articles > 3 {
		m.foreign = true
	}
	return m.ldObjects
}

// rank orders JSON-LD objects by the probability that they are about the page itself.
func rank(t *ldObject) int {
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

// first returns the first value found in the given sources, or "", and records the source. A source
// is "meta NAME", or "json-ld KEY" of an object about the page.
func (m *meta) first(field string, places ...string) string {
	for _, p := range places {
		kind, key, _ := strings.Cut(p, " ")
		if kind == "meta" {
			for _, v := range m.named[key] {
				if !isTemplate(v) && v != "None" { // MkDocs writes "None" for a missing value
					m.res.Sources[field] = p
					return v
				}
			}
			continue
		}
		for i := range m.ldObjects {
			if rank(&m.ldObjects[i]) > 2 {
				continue
			}
			if v := withoutTags(m.ldObjects[i].text(key)); v != "" && !isTemplate(v) && !(m.foreign && rank(&m.ldObjects[i]) == 0) {
				m.res.Sources[field] = p
				return v
			}
		}
	}
	return ""
}

// isTemplate reports whether a value is a placeholder that was not filled in.
func isTemplate(s string) bool {
	return strings.Contains(s, "{{") || strings.HasPrefix(s, "${") || strings.HasPrefix(s, "#") && strings.HasSuffix(s, "#") || strings.HasPrefix(s, "%%")
}

func (m *meta) firstNamed(names ...string) string {
	for _, n := range names {
		if v := m.named[n]; len(v) > 0 {
			return v[0]
		}
	}
	return ""
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
	for i := range m.ldObjects {
		if rank(&m.ldObjects[i]) < 3 {
			add("json-ld keywords", texts(m.ldObjects[i].values["keywords"])...)
		}
	}
	if source == "" {
		add("rel tag", m.related("tag")...)
	}
	add("meta keywords", m.named["keywords"]...)
	add("meta news_keywords", m.named["news_keywords"]...)
	if source != "" {
		m.res.Sources["tags"] = source
	}
}

// withoutTags returns the text of a value that contains markup. Shops write product descriptions
// with markup.
func withoutTags(s string) string {
	if !strings.Contains(s, "</") && !strings.Contains(s, "<br") {
		return s
	}
	return folded(html.UnescapeString(tagPattern.ReplaceAllString(s, " ")))
}

// finish sets the fields that depend on the content.
func (m *meta) finish(l *located, blocks []millrace.Block) {
	if m.page.Language == "" {
		if m.page.Language = detectLanguage(blocks); m.page.Language != "" {
			m.res.Sources["language"] = "detected"
		}
	}
	m.page.Kind, m.res.Sources["kind"] = m.kind(l, blocks)
	if m.page.Kind == "" {
		delete(m.res.Sources, "kind")
	}
}
