package extract

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
)

// author sets the authors that the page declares. A byline on the page takes precedence over the
// name of the site or of a company. It also takes precedence over a meta element, because many
// sites put the editor who uploaded the page there.
func (m *meta) author() {
	names, source := m.declaredAuthor()
	unknown := len(names) == 0 || len(names) == 1 && m.isFirm(letters(names[0]))
	if unknown || strings.HasPrefix(source, "meta ") {
		if name := m.byline(unknown); name != "" {
			names, source = []string{name}, "byline"
		}
	}
	switch {
	case m.guess == millrace.Product || m.guess == millrace.Collection || m.guess == millrace.Archive || m.list >= likeList:
		names = nil // the names are those of the items' authors
	case m.guess == millrace.Forum && len(names) > 1:
		names = names[:1] // the author who began the thread
	}
	if m.page.Author = strings.Join(names, ", "); m.page.Author != "" {
		m.res.Sources["author"] = source
	}
}

// declaredAuthor returns the authors that the page's metadata declares.
func (m *meta) declaredAuthor() (names []string, source string) {
	add := func(from string, list ...string) {
		for _, s := range list {
			if s = personName(s); s != "" && (source == "" || source == from) && !slices.Contains(names, s) && len(names) < 20 {
				names, source = append(names, s), from
			}
		}
	}
	for i := range m.ldObjects {
		if m.ldObjects[i].isArticle() && !m.foreign || m.ldObjects[i].is("*Page") {
			add("json-ld author", texts(m.ldObjects[i].values["author"])...)
			if len(names) > 0 {
				return names, source
			}
		}
	}
	for _, v := range m.named["citation_author"] {
		if last, first, ok := strings.Cut(v, ", "); ok {
			v = first + " " + last // journals write the family name first
		}
		add("meta citation_author", v)
	}
	for _, key := range []string{"author", "article:author", "dc.creator", "parsely-author", "sailthru.author"} {
		add("meta "+key, m.named[key]...)
	}
	tries := 0
	for _, attribute := range []string{"itemprop", "rel"} {
		for _, n := range m.c.props {
			role := attr(n, attribute)
			if tries > maxTries || !hasToken(role, "author") && !hasToken(role, "creator") || attribute == "rel" && (source != "" || m.guess == millrace.Forum) {
				continue
			}
			if tries++; inComments(n, 8) {
				continue
			}
			if inner := find(n, func(e *html.Node) bool { return hasToken(attr(e, "itemprop"), "name") }); inner != nil {
				n = inner
			}
			if name := attr(n, "content"); name != "" {
				add(attribute+" author", name)
			} else {
				add(attribute+" author", plainText(n))
			}
		}
	}
	return names, source
}

// isFirm reports whether a name, reduced to letters, is that of the site or of an organization.
func (m *meta) isFirm(name string) bool {
	return name == letters(m.siteName()) || slices.ContainsFunc(m.ldObjects, func(t ldObject) bool {
		author := inner(t.values["author"])
		return letters(t.text("publisher")) == name || t.is(organizationTypes...) && letters(t.text("name")) == name || author.is(organizationTypes...) && letters(author.text("name")) == name
	})
}

// organizationTypes are the JSON-LD types of organizations.
var organizationTypes = []string{"*Organization", "Corporation", "LocalBusiness"}

func firstText(v any) string {
	if l := texts(v); len(l) > 0 {
		return l[0]
	}
	return ""
}

// personName cleans a name. It returns "" for an e-mail address, a URL, a template, or a generic
// name such as "admin".
func personName(s string) string {
	s = oneLine(s)
	for range 2 {
		if label, rest := cutLabel(s); label != "" && rest != "" {
			s = rest
		}
	}
	s, _, _ = strings.Cut(s, " | ")
	if s = strings.Trim(s, " ,;|\"“”"); len(s) > 120 || strings.ContainsAny(s, "@{}<>") || strings.Contains(s, "://") || isTemplate(s) || !strings.ContainsFunc(s, unicode.IsLetter) {
		return ""
	}
	switch strings.ToLower(s) {
	case "admin", "administrator", "author", "unknown", "null", "undefined", "none", "anonymous", "webmaster", "editor", "guest", "user", "root", "staff", "default":
		return ""
	}
	return s
}
