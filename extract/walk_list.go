package extract

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

func (w *walker) list(n *html.Node) {
	w.flush()
	b := millrace.Block{Type: millrace.ListBlock, Ordered: n.DataAtom == atom.Ol}
	if b.Ordered {
		if start, err := strconv.Atoi(attr(n, "start")); err == nil && start != 1 {
			b.Start = start
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && w.notes.defs[c] != nil && !w.l.skip[c] {
			w.element(c)
			continue
		}
		if c.Type != html.ElementNode || c.DataAtom != atom.Li {
			w.stray(c, &b)
			continue
		}
		if w.l.skip[c] || isHidden(c) == "hidden" {
			continue
		}
		if it, ok := w.listItem(c); ok {
			b.Items = append(b.Items, it)
		}
	}
	if len(b.Items) > 0 {
		w.out = append(w.out, b)
	}
}

// stray is what stands in a list outside of its items: it belongs to the item
// before, or is one.
func (w *walker) stray(n *html.Node, b *millrace.Block) {
	if n.Type != html.ElementNode && strings.TrimSpace(n.Data) == "" {
		return
	}
	it := w.item(func() { w.node(n) })
	if it.Text == "" && len(it.Blocks) == 0 {
		return
	}
	if len(b.Items) == 0 || it.Text != "" {
		b.Items = append(b.Items, it)
		return
	}
	last := &b.Items[len(b.Items)-1]
	last.Blocks = append(last.Blocks, it.Blocks...)
}

func (w *walker) listItem(n *html.Node) (millrace.Item, bool) {
	it := w.item(func() { w.children(n) })
	if box := checkbox(n); box != nil {
		it.Task, it.Done = true, hasAttr(box, "checked")
	}
	return it, it.Text != "" || len(it.Blocks) > 0
}

// checkbox gives the checkbox that an item starts with.
func checkbox(n *html.Node) *html.Node {
	for c, steps := n.FirstChild, 0; c != nil && steps < 8; steps++ {
		switch {
		case c.Type == html.TextNode && strings.TrimSpace(c.Data) != "":
			return nil
		case c.Type != html.ElementNode:
			c = c.NextSibling
		case c.DataAtom == atom.Input:
			if strings.EqualFold(attr(c, "type"), "checkbox") {
				return c
			}
			return nil
		case c.DataAtom == atom.P || c.DataAtom == atom.Label || c.DataAtom == atom.Span || c.DataAtom == atom.Div:
			c = c.FirstChild
		default:
			return nil
		}
	}
	return nil
}

// isContents reports whether a definition list is a list of links in truth, as
// tools make tables of contents: a link in every term, and nothing but such
// lists as definitions.
func isContents(n *html.Node) bool {
	terms := 0
	for c := range children(n) {
		switch c.DataAtom {
		case atom.Dt:
			if a := findTag(c, atom.A); a == nil || !hasAttr(a, "href") {
				return false
			}
			terms++
		case atom.Dd:
			for e := c.FirstChild; e != nil; e = e.NextSibling {
				if e.Type == html.TextNode && strings.TrimSpace(e.Data) != "" || e.Type == html.ElementNode && e.DataAtom != atom.Dl && e.DataAtom != atom.Ul && e.DataAtom != atom.Ol {
					return false
				}
			}
		default:
			return false
		}
	}
	return terms > 0
}

// contents makes a list of such a definition list.
func (w *walker) contents(n *html.Node) {
	b := millrace.Block{Type: millrace.ListBlock}
	for c := range children(n) {
		if w.l.skip[c] {
			continue
		}
		it := w.item(func() { w.children(c) })
		if last := len(b.Items) - 1; c.DataAtom == atom.Dd && last >= 0 && it.Text == "" {
			b.Items[last].Blocks = append(b.Items[last].Blocks, it.Blocks...)
		} else if it.Text != "" || len(it.Blocks) > 0 {
			b.Items = append(b.Items, it)
		}
	}
	if len(b.Items) > 0 {
		w.out = append(w.out, b)
	}
}

func (w *walker) definitions(n *html.Node) {
	w.flush()
	if isContents(n) {
		w.contents(n)
		return
	}
	b := millrace.Block{Type: millrace.DefinitionsBlock}
	var terms []string
	var walk func(*html.Node, int)
	walk = func(n *html.Node, depth int) {
		for c := range children(n) {
			switch {
			case w.l.skip[c]:
			case c.DataAtom == atom.Dt:
				if t, _ := w.line(func() { w.children(c) }); t != "" {
					terms = append(terms, strings.ReplaceAll(t, "\n", " "))
				}
			case c.DataAtom == atom.Dd:
				it := w.item(func() { w.children(c) })
				it.Term = strings.Join(terms, "\n")
				terms = nil
				if it.Term != "" || it.Text != "" || len(it.Blocks) > 0 {
					b.Items = append(b.Items, it)
				}
			case c.DataAtom == atom.Div && depth < 3:
				walk(c, depth+1)
			default:
				if blocks := w.inside(func() { w.node(c) }); len(blocks) > 0 {
					if len(b.Items) == 0 {
						b.Items = append(b.Items, millrace.Item{})
					}
					last := &b.Items[len(b.Items)-1]
					last.Blocks = append(last.Blocks, blocks...)
				}
			}
		}
	}
	walk(n, 0)
	if len(terms) > 0 {
		b.Items = append(b.Items, millrace.Item{Term: strings.Join(terms, "\n")})
	}
	if len(b.Items) > 0 {
		w.out = append(w.out, b)
	}
	w.out = append(w.out, w.pending...)
	w.pending = w.pending[:0]
}

func (w *walker) quote(n *html.Node) {
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

// citation gives the element of a quote that names its source: its footer, or
// a cite that ends it on a line of its own.
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

// except walks the children of n without one subtree.
func (w *walker) except(n, without *html.Node) {
	if without == nil {
		w.children(n)
		return
	}
	if w.l.skip == nil {
		w.l.skip = map[*html.Node]bool{}
	}
	had := w.l.skip[without]
	w.l.skip[without] = true
	w.children(n)
	if !had {
		delete(w.l.skip, without)
	}
}

// calloutKinds are the names that tools give to call-outs.
var calloutKinds = map[string]string{
	"note": "note", "info": "note", "information": "note", "seealso": "note", "abstract": "note", "summary": "note", "question": "note",
	"primary": "note", "secondary": "note", "tip": "tip", "hint": "tip", "success": "tip", "example": "tip", "check": "tip",
	"important": "important", "attention": "important", "warning": "warning", "warn": "warning",
	"caution": "caution", "danger": "caution", "error": "caution", "bug": "caution", "failure": "caution",
}

// calloutKind gives the kind of the call-out that an element is, "" if it is
// none. Only the conventions of documentation tools count: a class that says
// call-out with one that names a kind, or the kind alone.
func calloutKind(n *html.Node) string {
	class := attr(n, "class")
	if kind, ok := calloutKinds[strings.ToLower(attr(n, "data-callout"))]; ok {
		return kind
	}
	if strings.EqualFold(attr(n, "role"), "note") && class == "" {
		return "note"
	}
	if class == "" || len(class) > 300 {
		return ""
	}
	kind, named, words := "", false, 0
	for t := range strings.FieldsSeq(strings.ToLower(class)) {
		words++
		switch t {
		case "admonition", "callout", "markdown-alert", "alert", "custom-block", "notice", "admonitionblock", "theme-admonition", "bs-callout", "aside-callout", "message":
			named = true
			continue
		}
		if k := calloutKinds[t]; k != "" {
			kind = k
			continue
		}
		for _, prefix := range []string{"alert-", "callout-", "admonition-", "markdown-alert-", "notice--", "bs-callout-", "alert--", "theme-admonition-"} {
			if rest, ok := strings.CutPrefix(t, prefix); ok {
				if k := calloutKinds[rest]; k != "" {
					kind, named = k, true
				}
			}
		}
	}
	if named || kind != "" && (words == 1 || n.DataAtom == atom.Aside || n.DataAtom == atom.Details) {
		return kind
	}
	return ""
}

func (w *walker) callout(n *html.Node, kind string) {
	w.flush()
	b := millrace.Block{Type: millrace.CalloutBlock, Kind: kind}
	title := calloutTitle(n)
	if title != nil {
		b.Title, _ = w.line(func() { w.children(title) })
		b.Title = strings.ReplaceAll(b.Title, "\n", " ")
		w.pending = w.pending[:0] // icons
	}
	b.Blocks = w.inside(func() { w.except(n, title) })
	if b.Title != "" || len(b.Blocks) > 0 {
		w.out = append(w.out, b)
	}
}

func calloutTitle(n *html.Node) *html.Node {
	for first, steps := n, 0; steps < 3; steps++ {
		var next *html.Node
		for c := range children(first) {
			next = c
			break
		}
		if next == nil {
			return nil
		}
		class := strings.ToLower(attr(next, "class"))
		if headingLevel(next) > 0 || next.DataAtom == atom.Summary || strings.Contains(class, "title") || strings.Contains(class, "heading") {
			return next
		}
		if next.DataAtom != atom.Div {
			return nil
		}
		first = next
	}
	return nil
}
