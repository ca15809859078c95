package extract

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

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
		if rank(&m.things[i]) < 2 && len(claims) < 20 {
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
			if score > best || score == 2 && best == 2 && len(l) > length {
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
