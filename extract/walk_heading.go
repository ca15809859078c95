package extract

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

func (w *walker) heading(n *html.Node, level int) {
	w.flush()
	if n == w.c.titleNode || hasClass(n, "sr-only", "visually-hidden") && inNotes(n) {
		return
	}
	anchor := attr(n, "id")
	text, spans := w.line(func() {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			w.headingPart(c, &anchor)
		}
	})
	if anchor == "" {
		anchor = outerAnchor(n)
	}
	if text = strings.ReplaceAll(text, "\n", " "); text != "" {
		w.out = append(w.out, millrace.Block{Type: millrace.HeadingBlock, Level: level, Text: text, Spans: w.headingSpans(spans, len(text), &anchor), Anchor: anchor})
	}
	w.out = append(w.out, w.pending...)
	w.pending = w.pending[:0]
}

// headingPart walks a part of a heading without its permalink and controls.
func (w *walker) headingPart(n *html.Node, anchor *string) {
	if n.Type == html.ElementNode {
		if *anchor == "" {
			*anchor = attr(n, "id")
		}
		if *anchor == "" && n.DataAtom == atom.A {
			*anchor = attr(n, "name")
		}
		if isPermalink(n) {
			if *anchor == "" {
				_, *anchor, _ = strings.Cut(attr(n, "href"), "#")
			}
			return
		}
		if hasClass(n, "mw-editsection", "headerlink", "visually-hidden", "sr-only") {
			return
		}
		if holdsPermalink(n) {
			return
		}
	}
	w.node(n)
}

// headingSpans removes the link of a whole heading to itself, and strong spans that cover the whole
// heading.
func (w *walker) headingSpans(spans []millrace.Span, length int, anchor *string) []millrace.Span {
	var retained []millrace.Span
	for _, s := range spans {
		entire := s.Start == 0 && s.End == length
		if entire && s.Type == millrace.StrongSpan {
			continue
		}
		if s.Type == millrace.LinkSpan {
			if page, fragment, ok := strings.Cut(s.URL, "#"); ok && entire && page == w.pageURL {
				if *anchor == "" {
					*anchor = fragment
				}
				continue
			}
		}
		retained = append(retained, s)
	}
	return retained
}

// isPermalink reports whether an element of a heading is a link to the heading itself: a link to a
// fragment, without words or marked as a permalink.
func isPermalink(n *html.Node) bool {
	if n.DataAtom != atom.A {
		return false
	}
	href := attr(n, "href")
	if !strings.Contains(href, "#") {
		return false
	}
	t := plainText(n)
	if !strings.ContainsFunc(t, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return true
	}
	return strings.HasPrefix(href, "#") && sibling(n, true) == nil && hasTextBefore(n) && len(t) < 40 &&
		(hasClass(n, "headerlink", "anchor", "permalink", "header-anchor", "heading-anchor", "hash-link", "anchor-link", "heading-link", "headline-hash") ||
			strings.Contains(attr(n, "aria-label"), "ermalink"))
}

// isPermalinkSign reports whether a link contains only the sign that programs put after a term, a
// caption or a line with an anchor.
func isPermalinkSign(n *html.Node) bool {
	switch t := plainText(n); t {
	case "¶", "#", "§", "🔗", "∞", "◆", "¤", "⚓":
		return true
	case "":
		return hasClass(n, "headerlink", "anchor", "permalink", "header-anchor", "anchor-link", "hash-link", "copiable-anchor", "copiable-link")
	}
	return false
}

// hasTextBefore reports whether text precedes a part of a heading. Comments do not count.
func hasTextBefore(n *html.Node) bool {
	for s := n.PrevSibling; s != nil; s = s.PrevSibling {
		if s.Type == html.ElementNode && !isNothing(s) || s.Type == html.TextNode && strings.TrimSpace(s.Data) != "" {
			return true
		}
	}
	return false
}

// outerAnchor returns the id of the section that starts with a heading, or the id of the empty
// anchor before the heading.
func outerAnchor(n *html.Node) string {
	if s := sibling(n, false); s != nil && s.DataAtom == atom.A && s.FirstChild == nil {
		if id := attr(s, "id"); id != "" {
			return id
		}
		return attr(s, "name")
	}
	for steps := 0; n.Parent != nil && steps < 5 && sibling(n, false) == nil; steps++ {
		n = n.Parent
		if n.DataAtom == atom.Section || n.DataAtom == atom.Div || n.DataAtom == atom.Article || n.DataAtom == atom.Header {
			if id := attr(n, "id"); id != "" {
				return id
			}
		} else {
			return ""
		}
	}
	return ""
}
