package extract

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
)

// author sets the authors that the page declares. A byline on the page takes precedence over
// the site or a company, and over a meta element, which many sites fill with the name of the
// editor who uploaded the page.
func (m *meta) author() {
	names, source := m.declaredAuthor()
	firm := len(names) > 0 && m.isFirm(names)
	if len(names) == 0 || firm || strings.HasPrefix(source, "meta ") {
		if byLine := m.byline(); byLine != "" {
			names, source = []string{byLine}, "byline"
		} else if len(names) == 0 || firm {
			if person := m.authorClass(); person != "" {
				names, source = []string{person}, "byline"
			}
		}
	}
	if len(names) == 0 {
		if name := m.labelledMeta(); name != "" {
			names, source = []string{name}, "meta twitter:data1"
		}
	}
	switch {
	case m.guess == millrace.Product || m.guess == millrace.Archive || m.guess == millrace.Listing || m.list >= likeList:
		names = nil // those of items
	case m.guess != millrace.Article && len(names) == 1 && m.isSite(names[0]):
		names = nil
	case m.guess == millrace.Forum && len(names) > 1:
		names = names[:1] // who began the thread
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
	for i := range m.things {
		if m.things[i].isArticle() && !m.foreign || m.things[i].is("*Page") {
			add("json-ld author", texts(m.things[i].values["author"])...)
			if len(names) > 0 {
				return names, source
			}
		}
	}
	for _, v := range m.named["citation_author"] {
		// Journals write the last name first.
		if last, first, ok := strings.Cut(v, ", "); ok && !strings.Contains(first, ",") {
			v = first + " " + last
		}
		add("meta citation_author", v)
	}
	for _, key := range []string{"author", "article:author", "dc.creator", "parsely-author", "sailthru.author"} {
		add("meta "+key, m.named[key]...)
	}
	tries := 0
	for _, n := range m.c.props {
		prop := attr(n, "itemprop")
		if tries > maxTries || !hasToken(prop, "author") && !hasToken(prop, "creator") {
			continue
		}
		if tries++; inComments(n, 8) {
			continue
		}
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
	if source == "" && m.guess != millrace.Forum {
		for _, n := range m.c.props {
			if source == "" && tries <= maxTries && hasToken(attr(n, "rel"), "author") && !inComments(n, 8) {
				tries++
				add("rel author", plainText(n))
			}
		}
	}
	return names, source
}

// isFirm reports whether the declared author is the site itself or is declared to be a
// company.
func (m *meta) isFirm(names []string) bool {
	if len(names) > 1 {
		return false
	}
	name := letters(names[0])
	if name == letters(m.firstNamed("og:site_name", "application-name")) {
		return true
	}
	for i := range m.things {
		t := &m.things[i]
		if t.is("Organization", "WebSite", "Corporation", "NewsMediaOrganization", "LocalBusiness") && letters(t.text("name")) == name ||
			letters(firstText(t.values["publisher"])) == name {
			return true
		}
		if a, ok := t.values["author"].(map[string]any); ok && letters(firstText(a["name"])) == name {
			if inner := (thing{types: texts(a["@type"])}); inner.is("Organization", "Corporation", "NewsMediaOrganization") {
				return true
			}
		}
	}
	return false
}

// isSite reports whether a name is that of the site: its host has it.
func (m *meta) isSite(name string) bool {
	for label := range strings.SplitSeq(strings.TrimPrefix(m.url.Hostname(), "www."), ".") {
		if strings.ReplaceAll(label, "-", "") == letters(name) {
			return true
		}
	}
	return letters(name) == letters(m.firstNamed("og:site_name", "application-name"))
}

func firstText(v any) string {
	if l := texts(v); len(l) > 0 {
		return l[0]
	}
	return ""
}

// labelledMeta returns the author from the pair of meta elements for link previews:
// twitter:label1 names the meaning of twitter:data1.
func (m *meta) labelledMeta() string {
	if _, rest := cutLabel(m.firstNamed("twitter:label1") + " "); rest == "" && m.firstNamed("twitter:label1") != "" {
		return personName(m.firstNamed("twitter:data1"))
	}
	return ""
}

// personName cleans a name. It returns "" for an e-mail address or a URL.
func personName(s string) string {
	s = oneLine(s)
	for range 2 {
		if label, rest := cutLabel(s); label != "" && rest != "" {
			s = rest
		}
	}
	for _, stop := range []string{", Updated by", ", Reviewed by", " | ", " on Facebook", " on Twitter"} {
		if i := indexFold(s, stop); i > 0 {
			s = s[:i]
		}
	}
	if s = strings.Trim(s, " ,;|\"“”"); len(s) > 120 || strings.ContainsAny(s, "@{}<>") || strings.Contains(s, "://") || isTemplate(s) || !strings.ContainsFunc(s, unicode.IsLetter) {
		return ""
	}
	switch strings.ToLower(s) {
	case "admin", "administrator", "author", "unknown", "null", "undefined", "none", "anonymous", "webmaster", "editor", "guest", "user", "root", "staff", "default":
		return ""
	}
	return s
}

func indexFold(s, part string) int {
	for i := 0; i+len(part) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}
