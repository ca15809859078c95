package extract

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// nearLine is one line of text near the page's title.
type nearLine struct {
	text  string
	block *html.Node // block element that contains the line
	parts []nearPart
	at    int // number of lines after the title; negative = before it
}

// nearPart is one text node of a line.
type nearPart struct {
	n          *html.Node
	start, end int // offsets in the line's text
}

// Maximum distances between the title and a byline or a date.
const (
	linesBefore = 6
	linesAfter  = 30
	bytesAfter  = 3000
	nodesAround = 2500
)

// near returns the lines around the page's title. The lines before the title come first. It skips
// menus, forms, picture captions, quotations and readers' comments.
func (m *meta) near() []nearLine {
	if m.lines != nil || m.topNode() == nil {
		return m.lines
	}
	before := gather(m.topNode(), false)
	slices.Reverse(before)
	for i := range before {
		before[i].at = i - len(before)
	}
	m.lines = slices.Concat(before, gather(m.topNode(), true))
	if m.lines == nil {
		m.lines = []nearLine{}
	}
	return m.lines
}

// topNode returns the element where the page's text begins: the heading of the title, else an
// element with the same text as the title, else the first h1, or nil.
func (m *meta) topNode() *html.Node {
	if m.c.titleNode != nil || m.topKnown {
		return cmp.Or(m.c.titleNode, m.top)
	}
	m.topKnown = true
	want, weight := letters(m.page.Title), wordCount(m.page.Title)
	for i := range m.c.boxes {
		b := &m.c.boxes[i]
		if want == "" || b.own == 0 || b.words < weight-1 || b.words > weight+3 || inBoilerplate(b.n) {
			continue
		}
		heading := headingLevel(b.n) > 0
		if (heading || m.top == nil && !within(b.n, 4, atom.Li, atom.A)) && letters(headingText(b.n)) == want {
			if m.top = b.n; heading {
				break
			}
		}
	}
	for _, h := range m.c.headings {
		if m.top == nil && headingLevel(h) == 1 && !inBoilerplate(h) {
			m.top = h
		}
	}
	return m.top
}

// gather returns the lines before or after the title, in the order of their distance from it.
func gather(start *html.Node, forward bool) []nearLine {
	var lines []nearLine
	var nodes []*html.Node // text nodes of the line, in the order of the walk
	var block *html.Node
	var line []byte // buffer for the line's text
	size := 0
	flush := func() {
		if len(nodes) == 0 {
			return
		}
		l := nearLine{block: block, at: len(lines) + 1, parts: make([]nearPart, 0, len(nodes))}
		line = line[:0]
		for i := range nodes {
			n := nodes[i]
			if !forward {
				n = nodes[len(nodes)-1-i]
			}
			if len(line) > 0 {
				line = append(line, ' ')
			}
			start := len(line)
			line = appendFolded(line, n.Data[:min(len(n.Data), 2000)])
			l.parts = append(l.parts, nearPart{n: n, start: start, end: len(line)})
		}
		l.text = string(line)
		size += len(l.text)
		lines, nodes = append(lines, l), nodes[:0]
	}
	most := linesAfter
	if !forward {
		most = linesBefore
	}
	n := start
	for steps := 0; steps < nodesAround && len(lines) < most && size < bytesAfter; steps++ {
		if n = step(n, start, forward); n == nil {
			break
		}
		switch {
		case n.DataAtom == atom.Br:
			flush()
		case n.Type == html.TextNode && strings.TrimSpace(n.Data) != "":
			at := n.Parent
			for at != nil && isInline(at.DataAtom) {
				at = at.Parent
			}
			if at != block || len(nodes) >= 20 {
				flush()
				block = at
			}
			nodes = append(nodes, n)
		}
	}
	flush()
	return lines
}

// step returns the next or previous node of a walk through the document that began at start, or nil
// at the end of the body. The walk does not enter start.
func step(n, start *html.Node, forward bool) *html.Node {
	next, inner := n.NextSibling, n.FirstChild
	if !forward {
		next, inner = n.PrevSibling, n.LastChild
	}
	if inner != nil && n != start && !isAside(n) {
		return inner
	}
	for next == nil {
		if n = n.Parent; n == nil || n.DataAtom == atom.Body {
			return nil
		}
		if next = n.NextSibling; !forward {
			next = n.PrevSibling
		}
	}
	return next
}

// isAside reports whether an element never contains the byline of the page.
func isAside(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return false
	}
	switch n.DataAtom {
	case atom.Button:
		return false // some pages show the author's name in a button
	case atom.Footer:
		// Inside the text, a footer may contain the byline, as in Drupal.
		return !within(n, 4, atom.Article) && (!within(n, 4, atom.Main) || len(plainText(n)) > 300)
	case atom.Nav, atom.Form, atom.Dialog, atom.Figure, atom.Table, atom.Pre, atom.Blockquote:
		return true
	}
	return isNothing(n) || isHidden(n) != "" || inComments(n, 1)
}

// inComments reports whether an element or one of its nearest ancestors contains readers'
// comments.
func inComments(n *html.Node, steps int) bool {
	for ; n != nil && steps > 0; n, steps = n.Parent, steps-1 {
		if n.Type != html.ElementNode || len(n.Attr) == 0 {
			continue
		}
		if hasClass(n, "comment") || isComments(n) {
			return true
		}
		if t := attr(n, "itemtype"); strings.HasSuffix(t, "/Comment") || strings.HasSuffix(t, "/UserComments") {
			return true
		}
	}
	return false
}

// inCard reports whether an element belongs to the teaser of another page: below the common
// ancestor with the title, there is an article, a heading that is a link, or a link that contains
// more than the element.
func (m *meta) inCard(n *html.Node, line string) bool {
	top := m.topNode()
	for steps := 0; n != nil && steps < 12; n, steps = n.Parent, steps+1 {
		if isAncestor(n, top) {
			return false
		}
		switch n.DataAtom {
		case atom.Article: // a longer article is the text itself, below a title of its own
			if len(plainText(n)) < 2000 {
				return true
			}
		case atom.A:
			if at := m.resolve(attr(n, "href")); at != nil && !m.isHere(at.String()) && len(plainText(n)) > len(line)+10 {
				return true
			}
		}
		if steps < 4 && isTeaser(n, top) {
			return true
		}
	}
	return false
}

// isHere reports whether an absolute URL is that of the page itself.
func (m *meta) isHere(abs string) bool { return abs == m.url.String() || abs == m.res.Canonical }

// isTeaser reports whether an element has a heading that links to another page. A heading of a few
// words may be the author's name.
func isTeaser(n, top *html.Node) bool {
	steps := 0
	return find(n, func(e *html.Node) bool {
		if steps++; steps > 40 {
			return true
		}
		return headingLevel(e) > 1 && e != top && wordCount(plainText(e)) > 3 && (findTag(e, atom.A) != nil && !isPermalink(findTag(e, atom.A)) || within(e, 2, atom.A))
	}) != nil && steps <= 40
}
