package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
)

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
