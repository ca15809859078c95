package snapshot

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isControl reports whether users enter or choose a value in an element.
func isControl(n *html.Node) bool {
	return n.DataAtom == atom.Select || n.DataAtom == atom.Textarea || n.DataAtom == atom.Input
}

// asks reports whether an element is a visible control other than a button.
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

// inputType returns the type of a control: the type of an input, "select" or "textarea". It
// returns "" for other elements.
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

// field adds a field.
func (b *builder) field(n *html.Node, a attributes, in *Node, closed bool) {
	f := Field{Field: b.keep(a["field"]), Type: a["type"], Context: b.keep(a["context"]), Behavior: b.keep(a["behavior"])}
	if f.Type == "" {
		f.Type = inputType(n)
	}
	b.keep(f.Type)
	text := b.labelOf(n, a, in)
	if text == "" {
		b.unlabeled = append(b.unlabeled, n)
	}
	if !closed {
		f.Label = b.keep(text)
	}
	b.part()
	in.Fields = append(in.Fields, f)
}

// labelOf returns the label of a field: its own data-ai-label, else the label directly before it in
// the same container, else the HTML label.
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

// htmlLabel returns the text of the label element for an element or around it.
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

// gather collects the label elements of a document.
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

// forms adds the inputs of forms without attributes, by the names that the form sends. It ignores
// search forms, because they do not describe the page.
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
				return // radio buttons of one choice share a name
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

// controls calls each for every visible control of a form.
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
