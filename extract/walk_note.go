package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// notes are the footnotes of a page: the references to them, their definitions, and the links back
// to the references.
type notes struct {
	refs map[*html.Node]string // links in the text, with the anchors of their notes
	defs map[*html.Node]*note  // elements that contain a note
	back map[*html.Node]bool   // links of notes back to the text, and labels of notes
}

type note struct {
	anchor, label string
}

// findNotes pairs links with a short text with their targets. A pair is a footnote if the target
// comes later and links back, or is named like a footnote.
func findNotes(c *collected, root *html.Node) notes {
	if len(c.refs) == 0 {
		return notes{}
	}
	wanted := map[string]bool{}
	order := map[*html.Node]int{}
	for _, a := range c.refs {
		order[a] = -1
		wanted[fragment(a)] = true
	}
	targets := map[string]*html.Node{}
	at, position := 0, map[*html.Node]int{}
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for e := range children(n) {
			at++
			if e.DataAtom == atom.A && order[e] != 0 {
				order[e] = at
			}
			for i := range e.Attr {
				if k := e.Attr[i].Key; k == "id" || k == "name" && e.DataAtom == atom.A {
					if id := e.Attr[i].Val; wanted[id] && targets[id] == nil {
						targets[id] = e
						position[e] = at
					}
				}
			}
			walk(e)
		}
	}
	walk(root)
	found := notes{refs: map[*html.Node]string{}, defs: map[*html.Node]*note{}, back: map[*html.Node]bool{}}
	for _, a := range c.refs {
		id := fragment(a)
		t := targets[id]
		if t == nil || order[a] < 0 || position[t] <= order[a] {
			continue
		}
		label := noteLabel(plainText(a))
		if label == "" {
			continue
		}
		def := noteElement(t)
		if def == nil || isAncestor(def, a) {
			continue
		}
		if found.defs[def] == nil {
			links := backLinks(def, a)
			if !isNoteName(id) && len(links) == 0 && !inNotes(def) {
				continue
			}
			found.defs[def] = &note{anchor: id, label: label}
			for _, l := range links {
				found.back[l] = true
			}
		} else {
			for _, l := range backLinks(def, a) {
				found.back[l] = true
			}
		}
		found.refs[a] = found.defs[def].anchor
	}
	if len(found.defs) == 0 {
		return notes{}
	}
	return found
}

// trimBrackets removes the brackets around a reference, because the output adds its own.
func trimBrackets(a *html.Node) {
	before, after := a.PrevSibling, a.NextSibling
	if before != nil && after != nil && before.Type == html.TextNode && after.Type == html.TextNode &&
		strings.HasSuffix(before.Data, "[") && strings.HasPrefix(after.Data, "]") {
		before.Data, after.Data = before.Data[:len(before.Data)-1], after.Data[1:]
	}
}

func fragment(a *html.Node) string {
	_, f, _ := strings.Cut(attr(a, "href"), "#")
	return f
}

// noteLabel returns the mark of a note without brackets.
func noteLabel(s string) string { return strings.Trim(s, " []()^.:\u00a0") }

// noteElement returns the block element of the note that a link target belongs to, or nil.
func noteElement(n *html.Node) *html.Node {
	for steps := 0; n != nil && steps < 5; n, steps = n.Parent, steps+1 {
		switch n.DataAtom {
		case atom.Li, atom.P, atom.Dd, atom.Aside:
			return n
		case atom.Dt: // the mark of the note; the note follows
			if s := sibling(n, true); s != nil && s.DataAtom == atom.Dd {
				return s
			}
			return nil
		case atom.Table:
			if hasClass(n, "footnote", "citation") {
				return n
			}
			return nil
		case atom.Div:
			if steps == 0 || hasClass(n, "footnote") {
				if find(n, func(e *html.Node) bool { return headingLevel(e) > 0 }) != nil {
					return nil
				}
				return n
			}
			return nil
		case atom.Span, atom.A, atom.Sup, atom.Strong, atom.B, atom.Cite, atom.Small:
		default:
			return nil
		}
	}
	return nil
}

// isNoteName reports whether an anchor is named like a footnote of a common tool.
func isNoteName(id string) bool {
	id = strings.ToLower(strings.TrimPrefix(id, "_"))
	if rest, ok := strings.CutPrefix(id, "fn"); ok && rest != "" && strings.ContainsRune("0123456789:-_", rune(rest[0])) {
		return true // not fnmatch
	}
	for _, p := range []string{"footnote", "ftn", "cite_note", "cite-note", "endnote", "sdfootnote"} {
		if rest, ok := strings.CutPrefix(id, p); ok && rest != "" {
			return true
		}
	}
	return false
}

func inNotes(n *html.Node) bool {
	for steps := 0; n != nil && steps < 4; n, steps = n.Parent, steps+1 {
		if hasClass(n, "footnotes", "footnote", "endnotes", "references", "reflist") || strings.HasPrefix(attr(n, "role"), "doc-endnote") ||
			attr(n, "role") == "doc-footnote" {
			return true
		}
	}
	return false
}

// backLinks returns the links of a note back to the reference a.
func backLinks(def, a *html.Node) []*html.Node {
	var ids []string
	for n, steps := a, 0; n != nil && steps < 3; n, steps = n.Parent, steps+1 {
		if !isInline(n.DataAtom) && n.DataAtom != atom.P && n.DataAtom != atom.Li {
			break // entries of an API reference also link to each other
		}
		for _, k := range []string{"id", "name"} {
			if id := attr(n, k); id != "" {
				ids = append(ids, id)
			}
		}
	}
	var links []*html.Node
	steps := 0
	find(def, func(n *html.Node) bool {
		if steps++; steps > 500 {
			return true
		}
		if n.DataAtom == atom.A {
			f := fragment(n)
			for _, id := range ids {
				if f == id {
					links = append(links, n)
					return false
				}
			}
			if (f != "" && hasClass(n, "footnote-backref", "footnote-back", "reversefootnote", "backlink") || attr(n, "role") == "doc-backlink") && !inNestedNote(n, def) {
				links = append(links, n)
			}
		}
		return false
	})
	return links
}

// inNestedNote reports whether a node is part of a note that is nested in the element def.
func inNestedNote(n, def *html.Node) bool {
	for n = n.Parent; n != nil && n != def; n = n.Parent {
		if attr(n, "id") != "" && (hasClass(n, "footnote") || attr(n, "role") == "doc-footnote") {
			return true
		}
	}
	return false
}

// footnote emits the element of a note.
func (w *walker) footnote(n *html.Node, note *note) {
	w.flush()
	delete(w.notes.defs, n)
	w.inner++
	led := w.startsWithBack(n)
	blocks := w.inside(func() {
		if n.DataAtom == atom.Table {
			w.layout(n)
		} else {
			w.element(n)
		}
	})
	w.inner--
	if len(blocks) > 0 && blocks[0].Type == millrace.TextBlock {
		b := &blocks[0]
		if b.Text == note.label { // the label is in a separate cell
			b.Text = ""
		}
		marks := []string{"[]", "^"}
		if n.DataAtom != atom.Li || n.Parent.DataAtom != atom.Ol { // in ordered lists, the numbers are not part of the text
			marks = append(marks, note.label, "["+note.label+"]", "("+note.label+")", note.label+".", note.label+":")
		}
		if led { // remove the remains around the label
			marks = append(marks, ".", ")", ":")
		}
		for _, mark := range marks {
			rest, ok := strings.CutPrefix(b.Text, mark)
			if ok && (rest == "" || rest[0] == ' ' || strings.HasPrefix(rest, "\u00a0")) {
				rest = strings.TrimLeft(rest, " \u00a0")
				cut := len(b.Text) - len(rest)
				b.Text = rest
				b.Spans = shift(b.Spans, cut)
				break
			}
		}
	}
	if len(blocks) > 0 && blocks[0].Type == millrace.TextBlock && blocks[0].Text == "" {
		blocks = blocks[1:]
	}
	if len(blocks) > 0 {
		w.out = append(w.out, millrace.Block{Type: millrace.FootnoteBlock, Anchor: note.anchor, Text: note.label, Blocks: blocks})
	}
}

// startsWithBack reports whether a note starts with its link back, which then serves as its mark.
func (w *walker) startsWithBack(n *html.Node) bool {
	for c := n.FirstChild; c != nil; {
		switch {
		case w.notes.back[c]:
			return true
		case c.Type == html.TextNode && strings.Trim(c.Data, " \n\t[(") == "":
			c = c.NextSibling
		case c.Type == html.ElementNode:
			c = c.FirstChild
		default:
			return false
		}
	}
	return false
}

// shift moves spans to the left after the beginning of their text was removed.
func shift(spans []millrace.Span, cut int) []millrace.Span {
	var shifted []millrace.Span
	for _, s := range spans {
		s.Start, s.End = max(s.Start-cut, 0), s.End-cut
		if s.Start < s.End {
			shifted = append(shifted, s)
		}
	}
	return shifted
}
