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
	if by == nil {
		if s := sibling(n, true); s != nil && !w.l.skip[s] && sibling(n, false) == nil && sibling(s, true) == nil &&
			hasClass(s, "attribution", "quote-attribution", "quote-author", "citation", "cite") {
			by = s
			w.l.skip[s] = true
		}
	}
	if by != nil {
		b.Cite = strings.TrimSpace(strings.TrimLeft(plainText(by), "—–- \u00a0"))
	} else {
		signature(&b)
	}
	if len(b.Blocks) == 0 && b.Cite == "" {
		return
	}
	w.out = append(w.out, b)
}

// citation returns the element of a quote that names its source: its footer, or a cite element
// on a last line of its own.
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

// signature turns the last line of a quote into its citation if it is the only line that
// starts with a dash.
func signature(b *millrace.Block) {
	if len(b.Blocks) == 0 {
		return
	}
	last := &b.Blocks[len(b.Blocks)-1]
	from := strings.LastIndexByte(last.Text, '\n') + 1
	line := last.Text[from:]
	isDash := func(s string) bool {
		return strings.HasPrefix(s, "—") || strings.HasPrefix(s, "–") || strings.HasPrefix(s, "―") || strings.HasPrefix(s, "-- ")
	}
	if last.Type != millrace.TextBlock || !isDash(line) || len(line) > 200 || from == 0 && len(b.Blocks) == 1 {
		return
	}
	for i := range b.Blocks { // lines of a dialogue also start with a dash
		for l := range strings.SplitSeq(b.Blocks[i].Text, "\n") {
			if isDash(l) && (i < len(b.Blocks)-1 || l != line) {
				return
			}
		}
	}
	cite := strings.TrimSpace(strings.TrimLeft(line, "—–―- \u00a0"))
	if cite == "" {
		return
	}
	b.Cite = cite
	var remaining []millrace.Span
	for _, s := range last.Spans {
		if s.Type == millrace.LinkSpan && s.Start >= from && b.URL == "" {
			b.URL = s.URL
		}
		if s.End = min(s.End, max(from-1, 0)); s.Start < s.End {
			remaining = append(remaining, s)
		}
	}
	if last.Text, last.Spans = strings.TrimSuffix(last.Text[:from], "\n"), remaining; last.Text == "" {
		b.Blocks = b.Blocks[:len(b.Blocks)-1]
	}
}
