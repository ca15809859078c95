package extract

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

func (w *walker) list(n *html.Node) {
	if w.tooDeep(n) {
		return
	}
	w.flush()
	if li := firstChild(n); li != nil {
		if c := firstChild(li); c != nil && c.DataAtom == atom.Section { // Javadoc: the items are sections of the page
			w.children(n)
			return
		}
	}
	b := millrace.Block{Type: millrace.ListBlock, Ordered: n.DataAtom == atom.Ol}
	if b.Ordered {
		b.Reversed = hasAttr(n, "reversed")
		if start, err := strconv.Atoi(attr(n, "start")); err == nil && start != 1 {
			b.Start = start
		}
	}
	w.items(n, &b, 0)
	if len(b.Items) > 0 {
		w.out = append(w.out, b)
	}
}

// items adds the items of a list. An item with a number out of sequence begins another list.
func (w *walker) items(n *html.Node, b *millrace.Block, depth int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && w.notes.defs[c] != nil && !w.l.skip[c] {
			w.element(c)
			continue
		}
		if c.Type != html.ElementNode || c.DataAtom != atom.Li {
			if depth < 3 && (c.DataAtom == atom.Div || c.Type == html.ElementNode && c.DataAtom == 0) && !w.l.skip[c] && holdsItems(c) {
				w.items(c, b, depth+1)
				continue
			}
			w.stray(c, b)
			continue
		}
		if w.l.skip[c] || isHidden(c) == "hidden" {
			continue
		}
		it, ok := w.listItem(c)
		if !ok {
			continue
		}
		if s := attr(c, "value"); s != "" && b.Ordered {
			if v, err := strconv.Atoi(s); err == nil && v > 0 && v != b.Number(len(b.Items)) {
				if len(b.Items) > 0 {
					w.out = append(w.out, *b)
				}
				*b = millrace.Block{Type: b.Type, Ordered: true, Reversed: b.Reversed, Start: v}
			}
		}
		b.Items = append(b.Items, it)
	}
}

// holdsItems reports whether an element that is not allowed in a list groups items of the list.
func holdsItems(n *html.Node) bool {
	for c := range children(n) {
		if c.DataAtom == atom.Li {
			return true
		}
	}
	return false
}

// stray adds list content outside of items. It becomes part of the previous item, or an item of its
// own.
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

// checkbox returns the checkbox at the beginning of an item.
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

// isContents reports whether a definition list is a nested list of links, as in tables of contents:
// every term contains a link, and every definition is such a list.
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

// contents emits a definition list of links as a list.
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
	if w.tooDeep(n) {
		return
	}
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
			case w.notes.defs[c] != nil:
				terms = nil
				w.footnote(c, w.notes.defs[c])
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

// except walks the children of n except one subtree.
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
