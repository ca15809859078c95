package snapshot

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isControl reports whether something is filled in or chosen in an element.
func isControl(n *html.Node) bool {
	return n.DataAtom == atom.Select || n.DataAtom == atom.Textarea || n.DataAtom == atom.Input
}

// asks reports whether an element asks for something: it is a control that is
// no button, and that is shown.
func asks(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Select, atom.Textarea:
		return true
	case atom.Input:
		switch inputType(n) {
		case "hidden", "submit", "button", "reset", "image":
			return false
		}
		return true
	}
	return false
}

// inputType gives the type of a control: what an input is, "select" or
// "textarea"; "" for what is no control.
func inputType(n *html.Node) string {
	switch n.DataAtom {
	case atom.Select:
		return "select"
	case atom.Textarea:
		return "textarea"
	case atom.Input:
		if t := strings.ToLower(strings.TrimSpace(attr(n, "type"))); t != "" {
			return t
		}
		return "text"
	}
	return ""
}

// field takes in something to fill in.
func (b *builder) field(n *html.Node, a attributes, in *Node, closed bool) {
	f := Field{Field: b.keep(a["field"]), Type: a["type"], Context: b.keep(a["context"]), Behavior: b.keep(a["behavior"])}
	if f.Type == "" {
		f.Type = inputType(n)
	}
	b.keep(f.Type)
	text := b.labelOf(n, a, in)
	if text == "" {
		b.bare = append(b.bare, n)
	}
	if !closed {
		f.Label = b.keep(text)
	}
	b.part()
	in.Fields = append(in.Fields, f)
}

// labelOf gives the label of a field: its own data-ai-label, else the one
// right before in the same container, else that of HTML.
func (b *builder) labelOf(n *html.Node, a attributes, in *Node) string {
	if l := a["label"]; l != "" {
		return l
	}
	if l := b.label; l != nil && l.in == in {
		if to := attr(l.n, "for"); to == "" || to == attr(n, "id") {
			b.label = nil
			if l.text != "" {
				return l.text
			}
		}
	}
	return b.htmlLabel(n)
}

// htmlLabel gives the text of the label element that is for an element, or
// around it.
func (b *builder) htmlLabel(n *html.Node) string {
	if id := attr(n, "id"); id != "" {
		if b.labels == nil {
			b.labels = map[string]*html.Node{}
			b.gather(b.tree)
		}
		if l := b.labels[id]; l != nil && !isHidden(l) && !attributesOf(l).closed() {
			if t := b.text(l); t != "" {
				return t
			}
		}
	}
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == atom.Label && (attr(p, "for") == "" || attr(p, "for") == attr(n, "id")) && !isHidden(p) && !attributesOf(p).closed() {
			return b.text(p)
		}
	}
	return ""
}

// gather notes the label elements of a document.
func (b *builder) gather(n *html.Node) {
	if n.DataAtom == atom.Label {
		if to := attr(n, "for"); to != "" && b.labels[to] == nil {
			b.labels[to] = n
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.gather(c)
	}
}

// forms takes in the inputs of forms that have no attributes: their fields are
// named as what the form sends. Forms that only search say nothing of the page.
func (b *builder) forms(list []*html.Node) {
	seen := map[string]bool{}
	for _, form := range list {
		var fields []Field
		asking := 0
		b.controls(form, func(n *html.Node) {
			name := fold(attr(n, "name"))
			if name == "" {
				name = fold(attr(n, "id"))
			}
			t := inputType(n)
			if t != "search" {
				asking++
			}
			if name == "" || seen[name] {
				return // the buttons of one choice have one name
			}
			seen[name] = true
			b.part()
			fields = append(fields, Field{Field: b.keep(name), Label: b.keep(b.htmlLabel(n)), Type: b.keep(t)})
		})
		if asking > 0 {
			b.s.Fields = append(b.s.Fields, fields...)
		}
	}
}

// controls calls back for everything in a form that asks and is shown.
func (b *builder) controls(n *html.Node, each func(*html.Node)) {
	for c := n.FirstChild; c != nil && b.err == nil; c = c.NextSibling {
		if c.Type != html.ElementNode || c.DataAtom == atom.Template || isHidden(c) {
			continue
		}
		if asks(c) {
			each(c)
			continue
		}
		b.controls(c, each)
	}
}
