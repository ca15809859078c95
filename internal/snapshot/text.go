package snapshot

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// text returns the text of an element on one line, without hidden or sensitive parts and
// without the values of inputs.
func (b *builder) text(n *html.Node) string {
	var s strings.Builder
	b.write(&s, n, true)
	return fold(s.String())
}

func (b *builder) write(s *strings.Builder, n *html.Node, top bool) {
	if b.work--; b.work < 0 || b.err != nil {
		b.fail("too many nested texts")
		return
	}
	switch n.Type {
	case html.TextNode:
		b.work -= len(n.Data)
		s.WriteString(n.Data)
		return
	case html.ElementNode:
		if isSilent(n) || !top && (isHidden(n) || attributesOf(n).closed()) {
			return
		}
		if isApart(n) {
			s.WriteByte(' ')
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.write(s, c, false)
	}
	if isApart(n) {
		s.WriteByte(' ')
	}
}

// isSilent reports whether the text in an element is not page text: scripts, values of inputs,
// and fallback content.
func isSilent(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Input, atom.Textarea, atom.Select, atom.Option, atom.Optgroup, atom.Datalist, atom.Output,
		atom.Iframe, atom.Noframes, atom.Noembed, atom.Noscript, atom.Title, atom.Svg, atom.Canvas, atom.Progress, atom.Meter:
		return true
	}
	return false
}

// isApart reports whether an element begins a new line of text.
func isApart(n *html.Node) bool {
	switch n.DataAtom {
	case 0, atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I,
		atom.Ins, atom.Kbd, atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Time,
		atom.Tt, atom.U, atom.Var, atom.Wbr, atom.Ruby, atom.Rt, atom.Rp, atom.Rb:
		return false
	}
	return n.Type == html.ElementNode
}

// isHidden reports whether HTML hides an element. A tab panel does not count as hidden, because it
// is shown when its tab is selected.
func isHidden(n *html.Node) bool {
	if attr(n, "role") == "tabpanel" {
		return false
	}
	for i := range n.Attr {
		switch v := n.Attr[i].Val; n.Attr[i].Key {
		case "hidden":
			if v != "until-found" {
				return true
			}
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(v), "true") {
				return true
			}
		case "style":
			v = strings.ToLower(strings.Join(strings.Fields(v), ""))
			if strings.Contains(v, "display:none") || strings.Contains(v, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}
