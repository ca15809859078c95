package extract

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isApart reports whether only a style separates an element from the previous one: columns of a
// row, a name and its type, or links side by side. Components generate such elements, authors do
// not. The two elements differ in their tags, classes or targets, words meet at their border, and
// their parent has no text of its own.
func (w *walker) isApart(n *html.Node) bool {
	before := n.PrevSibling
	if before == nil || !isPart(before) || !isPart(n) || w.in.space || w.in.breaks > 0 || w.in.pre || w.in.empty() || w.inCode() {
		return false
	}
	class, other := attr(n, "class"), attr(before, "class")
	links := n.DataAtom == atom.A && before.DataAtom == atom.A
	switch {
	case class == "" && other == "": // no class distinguishes them
		return false
	case n.DataAtom == before.DataAtom && !links && (class == "" || other == "" || class == other):
		return false
	}
	steps := 0
	for s := n.Parent.FirstChild; s != nil; s = s.NextSibling {
		if steps++; steps > 16 || s.Type == html.TextNode || s.Type == html.ElementNode && !isPart(s) {
			return false
		}
	}
	left, right := edge(before, false), edge(n, true)
	if utf8.RuneCountInString(left) < 2 || utf8.RuneCountInString(right) < 2 {
		return false // animated single letters, or an initial
	}
	l, _ := utf8.DecodeLastRuneInString(left)
	r, _ := utf8.DecodeRuneInString(right)
	return isSpaced(l) && isSpaced(r)
}

// isPart reports whether components are often built from elements with this tag.
func isPart(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Span, atom.A, atom.Strong, atom.B, atom.Small, atom.Time, atom.Label, atom.Button, atom.Em, atom.I:
		return true
	}
	return false
}

// isSpaced reports whether a character belongs to a script with spaces between words.
func isSpaced(r rune) bool { return r < 0x2E80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// edge returns the first or last text of an element.
func edge(n *html.Node, first bool) string {
	for steps := 0; n != nil && steps < 20; steps++ {
		if n.Type == html.TextNode {
			return n.Data
		}
		if first {
			n = n.FirstChild
			for n != nil && n.Type == html.CommentNode {
				n = n.NextSibling
			}
		} else {
			n = n.LastChild
			for n != nil && n.Type == html.CommentNode {
				n = n.PrevSibling
			}
		}
	}
	return ""
}
