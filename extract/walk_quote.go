package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

func (w *walker) quote(n *html.Node) {
	if w.tooDeep(n) {
		return
	}
	w.flush()
	b := millrace.Block{Type: millrace.QuoteBlock, URL: w.resolve(attr(n, "cite"))}
	by := citation(n)
	if by != nil && w.l.skip[by] {
		by = nil
	}
	b.Blocks = w.inside(func() { w.except(n, by) })
	if by != nil {
		b.Cite = strings.TrimSpace(strings.TrimLeft(plainText(by), "—–- \u00a0"))
	}
	if len(b.Blocks) == 0 && b.Cite == "" {
		return
	}
	w.out = append(w.out, b)
}

// citation returns the element of a quote that names the source: its footer, or a cite element on a
// separate last line.
func citation(n *html.Node) *html.Node {
	var last *html.Node
	for c := range children(n) {
		if c.DataAtom == atom.Footer || c.DataAtom == atom.Figcaption {
			return c
		}
		last = c
	}
	if last == nil || sibling(last, false) == nil && last.DataAtom != atom.Cite {
		return nil
	}
	if last.DataAtom == atom.Cite {
		return last
	}
	if last.DataAtom == atom.P && last.FirstChild != nil {
		for c := last.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode && strings.Trim(c.Data, " \n\t—–-\u00a0") != "" || c.Type == html.ElementNode && c.DataAtom != atom.Cite {
				return nil
			}
		}
		return last
	}
	return nil
}
