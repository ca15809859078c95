package extract

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// title sets the title: the heading that the head of the document confirms, else the title that the
// head declares.
func (m *meta) title() {
	og, head := m.firstNamed("og:title", "twitter:title"), m.c.title
	if isTemplate(og) {
		og = ""
	}
	site := m.siteName()
	claims := []string{head, og}
	for i := range m.ldObjects {
		if rank(&m.ldObjects[i]) < 2 && len(claims) < 20 {
			claims = append(claims, m.ldObjects[i].text("headline"), m.ldObjects[i].text("name"))
		}
	}
	short := withoutSite(head, site)
	claims = append(claims, short, withoutSite(og, site))
	folded := make([]string, len(claims))
	for i, c := range claims {
		folded[i] = letters(c)
	}
	siteLetters := letters(site)
	best, length, text, source := 0, 0, "", "" // score, length, text and source of the best heading so far
	for _, level := range []int{1, 2} {
		if level == 2 && best != 0 && best != 2 {
			break // a heading that matches only the beginning or the end of a claim may be the site's name
		}
		for _, h := range m.c.headings {
			t := headingText(h)
			l := letters(t)
			if headingLevel(h) != level || inBoilerplate(h) || l == "" || len(l) > 1000 || level == 1 && l == siteLetters && (len(m.c.headings) > 1 || og != "" && letters(og) != l) {
				continue
			}
			score := 0
			for i, c := range folded {
				cut := headOf(claims[i], t)
				score = max(score, confirms(c, l, level, siteLetters, cut))
				if level == 2 && cut && best == 2 && c == l+letters(text) {
					score = 3 // the first-level heading is the rest of the claim
				}
			}
			if score == 0 && level == 1 && (similarTitles(t, head) || similarTitles(t, og) || similarTitles(t, short)) {
				score = 1
			}
			if level == 2 && best == 2 && score < 3 {
				continue
			}
			if score > best || score == best && score > 1 && len(l) > length {
				length, best, m.c.titleNode, text, source = len(l), score, h, t, h.Data
			}
		}
	}
	if text == "" {
		text, source = m.declaredTitle(og, site)
	} else {
		text = asDeclared(m.c.titleNode, text, claims)
	}
	if m.page.Title = text; text != "" {
		m.res.Sources["title"] = source
	}
}

// confirms rates how well a claim in the head confirms a heading. Both contain only letters and
// digits. cut reports whether a separator follows the heading in the claim. Such a claim rates
// higher than one that ends with the heading, because the end is usually the site's name.
func confirms(claim, heading string, level int, site string, cut bool) int {
	switch {
	case claim == "":
	case claim == heading:
		return 4
	case cut && strings.HasPrefix(claim, heading) && (level == 1 || len(heading)*2 > len(claim)):
		return 3
	case strings.HasPrefix(claim, heading) && (level == 1 || len(heading)*2 > len(claim)), level == 1 && strings.HasSuffix(claim, heading) && heading != site:
		return 2
	case level == 1 && strings.Contains(claim, heading) && len(heading)*3 > len(claim):
		return 1
	}
	return 0
}

// separators separate the name of a page from the name of its site.
var separators = []string{" | ", " - ", " – ", " — ", " · ", " » ", " « ", " :: ", " / ", " • "}

// headOf reports whether the part of a claim before a separator is the text of a heading.
func headOf(claim, heading string) bool {
	rest, ok := strings.CutPrefix(claim, heading)
	if !ok {
		return false
	}
	for _, sep := range separators {
		if strings.HasPrefix(rest, sep) {
			return true
		}
	}
	return false
}

// siteName returns the name of the site that the page declares. If the title element is the
// OpenGraph title with an addition, the addition is the name.
func (m *meta) siteName() string {
	if site := cmp.Or(m.firstNamed("og:site_name", "application-name"), m.thingName("WebSite", "Organization")); site != "" {
		return site
	}
	if og := m.firstNamed("og:title"); len(og) >= 4 {
		for _, sep := range slices.Concat(separators, []string{": "}) {
			if rest, ok := strings.CutPrefix(m.c.title, og+sep); ok {
				return rest
			}
			if rest, ok := strings.CutSuffix(m.c.title, sep+og); ok {
				return rest
			}
		}
	}
	return ""
}

// thingName returns the name of the first JSON-LD object that has one of the types and a name, or "".
func (m *meta) thingName(types ...string) string {
	for i := range m.ldObjects {
		if name := m.ldObjects[i].text("name"); name != "" && m.ldObjects[i].is(types...) {
			return name
		}
	}
	return ""
}

// declaredTitle returns the title that only the head contains. If the head has no title, it returns
// the first heading, if that is an h1.
func (m *meta) declaredTitle(og, site string) (text, source string) {
	switch {
	case og != "" && letters(og) != letters(site):
		return withoutSite(og, site), "meta og:title"
	case m.c.title != "":
		return withoutSite(m.c.title, site), "title"
	case len(m.c.headings) > 0 && headingLevel(m.c.headings[0]) == 1:
		m.c.titleNode = m.c.headings[0]
		return headingText(m.c.titleNode), "h1"
	}
	return "", ""
}

// asDeclared returns the text of a heading as written in the head if that is better: without a
// label or a count in a separate element, and not in capitals.
func asDeclared(h *html.Node, text string, claims []string) string {
	var parts []string
	var add func(n *html.Node)
	add = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch {
			case c.Type == html.TextNode && strings.TrimSpace(c.Data) != "":
				parts = append(parts, letters(c.Data))
			case c.Type == html.ElementNode && len(parts) < 20 && !isNothing(c):
				add(c)
			}
		}
	}
	add(h)
	l := letters(text)
	for _, c := range claims {
		c = oneLine(c)
		claim := letters(c)
		if len(claim) < 4 {
			continue
		}
		if claim == l {
			if isCapitals(text) && !isCapitals(c) {
				return c
			}
			continue
		}
		if len(claim)*2 < len(l) || len(parts) < 2 || len(parts) > 20 {
			continue
		}
		for i := range parts {
			run := ""
			for _, p := range parts[i:] {
				if run += p; run == claim {
					return c
				}
			}
		}
	}
	return text
}

// isCapitals reports whether a text of more than ten characters is in capitals.
func isCapitals(s string) bool {
	return utf8.RuneCountInString(s) > 10 && strings.ContainsFunc(s, unicode.IsUpper) && !strings.ContainsFunc(s, unicode.IsLower)
}

// similarTitles reports whether two titles have at least two words in common, and at least half of
// the words of the shorter title.
func similarTitles(a, b string) bool {
	list, words := titleWords(a), titleWords(b)
	common := 0
	for _, w := range list {
		if slices.Contains(words, w) {
			common++
		}
	}
	return len(list) < 100 && len(words) < 100 && common >= 2 && common*2 >= min(len(list), len(words))
}

// titleWords returns the words of a title without punctuation.
func titleWords(s string) []string {
	var out []string
	for f := range strings.FieldsSeq(s) {
		w := letters(f)
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

func inBoilerplate(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		switch p.DataAtom {
		case atom.Nav, atom.Footer, atom.Dialog:
			return true
		}
	}
	return false
}

// letters returns the letters and digits of a text in lower case, for comparison.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// withoutSite removes the name of the site from a title, or the part after a separator that is
// probably the name.
func withoutSite(title, site string) string {
	if tail, ok := strings.CutPrefix(title, site+": "); ok && site != "" {
		return tail
	}
	for _, sep := range separators {
		if i := strings.LastIndex(title, sep); i > 0 {
			head, tail := title[:i], title[i+len(sep):]
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

// isNumbered reports whether a heading starts with a section number.
func isNumbered(s string) bool {
	number, _, ok := strings.Cut(s, " ")
	return ok && isDigit(number[0]) && len(number) <= 8 && strings.Contains(number, ".") && strings.Trim(number, "0123456789.") == ""
}

// headingText returns the text of a heading without its permalink.
func headingText(h *html.Node) string {
	var buf [256]byte
	b := buf[:0]
	for c := h.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || !isPermalink(c) && !holdsPermalink(c) {
			b = appendPlain(b, c)
		}
	}
	return withoutSign(folded(string(b)))
}

// holdsPermalink reports whether an element of a heading contains only a permalink.
func holdsPermalink(n *html.Node) bool {
	return (n.DataAtom == atom.Span || n.DataAtom == atom.Div) && n.FirstChild != nil && n.FirstChild.NextSibling == nil && n.FirstChild.Type == html.ElementNode && isPermalink(n.FirstChild)
}

// withoutSign removes a permalink sign that is not a link but works by a script. It keeps the sign
// in "C#".
func withoutSign(s string) string {
	for _, sign := range []string{"¶", "🔗", " §", " #"} {
		if t, ok := strings.CutSuffix(s, sign); ok && strings.ContainsFunc(t, unicode.IsLetter) {
			return strings.TrimRightFunc(t, unicode.IsSpace)
		}
	}
	return s
}
