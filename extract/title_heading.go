package extract

import (
	"path"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// tops are the first-level headings of a page with several. One of them may be the name of the
// site, or of the book that the page belongs to.
type tops struct {
	many   bool
	homes  map[*html.Node]bool // headings that lead to the front of the site; nil = all or none do
	inside *html.Node          // the only heading inside main or article
}

// tops returns the headings that may be the title.
func (m *meta) tops() tops {
	var t tops
	n, inside := 0, 0
	homes := map[*html.Node]bool{}
	for _, h := range m.c.headings {
		if headingLevel(h) != 1 || inFurniture(h) || headingText(h) == "" {
			continue
		}
		n++
		if m.leadsHome(h) {
			homes[h] = true
		} else if isInside(h) {
			inside++
			t.inside = h
		}
	}
	if inside != 1 {
		t.inside = nil // sections, or teasers of other pages
	}
	if len(homes) < n {
		t.homes = homes
	}
	t.many = n > 1
	return t
}

// site returns the name of the site: the longest text that the title ends with and that a
// heading leading to the front of the site has.
func (t *tops) site(title string) string {
	site := ""
	for h := range t.homes {
		name := headingText(h)
		for _, sep := range separators {
			if len(name) > len(site) && strings.HasSuffix(title, sep+name) {
				site = name
			}
		}
	}
	return site
}

// home reports whether a heading leads to the front of the site and another one does not.
func (t *tops) home(h *html.Node) bool { return t.homes[h] }

// outside reports whether a heading is outside of the content and another one inside.
func (t *tops) outside(h *html.Node) bool {
	return t.inside != nil && headingLevel(h) == 1 && !isInside(h)
}

// isInside reports whether an element is inside main or article.
func isInside(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n.DataAtom == atom.Main || n.DataAtom == atom.Article || n.Type == html.ElementNode && attr(n, "role") == "main" {
			return true
		}
	}
	return false
}

// leadsHome reports whether a heading consists of a link to the front of the site, or of the
// folder that the page is in or below.
func (m *meta) leadsHome(h *html.Node) bool {
	a := findTag(h, atom.A)
	for p := h.Parent; a == nil && p != nil && isInline(p.DataAtom); p = p.Parent {
		if p.DataAtom == atom.A {
			a = p
		}
	}
	if a == nil || len(plainText(a)) < len(headingText(h)) {
		return false
	}
	href := attr(a, "href")
	if href == "" || href[0] == '#' {
		return false
	}
	at := m.resolve(href)
	if at == nil || at.Host != m.url.Host || m.isHere(at.String()) {
		return false
	}
	dir, file := path.Split(at.Path)
	if name, _, _ := strings.Cut(file, "."); name != "" && name != "index" {
		return false
	}
	return dir == "" || at.Path != m.url.Path && strings.HasPrefix(m.url.Path, dir)
}

// lateProse is the number of words of paragraphs after which a heading is late. A notice at
// the top of a page has fewer.
const lateProse = 150

// isLate reports whether much of the page's text precedes a heading.
func isLate(h *html.Node) bool {
	text := h.Parent
	if text != nil && text.DataAtom != atom.Body && text.Parent != nil {
		text = text.Parent
	}
	words, steps := int32(0), 0
	find(text, func(n *html.Node) bool {
		if n.DataAtom == atom.P {
			words += wordCount(plainText(n))
		}
		steps++
		return n == h || words > lateProse || steps > 2000
	})
	return words > lateProse
}

// isNumbered reports whether a heading has a section number.
func isNumbered(s string) bool {
	number, _, ok := strings.Cut(s, " ")
	return ok && isDigit(number[0]) && len(number) <= 8 && strings.Contains(number, ".") && strings.Trim(number, "0123456789.") == ""
}

// headingText returns the text of a heading without its permalink.
func headingText(h *html.Node) string {
	var room [256]byte
	b := room[:0]
	for c := h.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || !isPermalink(c) && !holdsPermalink(c) && !isToolLink(c) {
			b = appendPlain(b, c)
		}
	}
	return withoutSign(folded(string(b)))
}

// holdsPermalink reports whether an element of a heading consists of a permalink.
func holdsPermalink(n *html.Node) bool {
	return (n.DataAtom == atom.Span || n.DataAtom == atom.Div) && n.FirstChild != nil && n.FirstChild.NextSibling == nil && n.FirstChild.Type == html.ElementNode && isPermalink(n.FirstChild)
}

// withoutSign cuts off a permalink sign that is not a link but works by script. It keeps the
// one in "C#".
func withoutSign(s string) string {
	for _, sign := range []string{"¶", "🔗", " §", " #"} {
		if t, ok := strings.CutSuffix(s, sign); ok && strings.ContainsFunc(t, unicode.IsLetter) {
			return strings.TrimRightFunc(t, unicode.IsSpace)
		}
	}
	return s
}
