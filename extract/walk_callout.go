package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// calloutKinds maps the names that tools use for callouts to kinds.
var calloutKinds = map[string]string{
	"note": "note", "info": "note", "information": "note", "seealso": "note", "abstract": "note", "summary": "note", "question": "note",
	"primary": "note", "secondary": "note", "tip": "tip", "hint": "tip", "success": "tip", "example": "tip", "check": "tip",
	"important": "important", "attention": "important", "warning": "warning", "warn": "warning",
	"caution": "caution", "danger": "caution", "error": "caution", "bug": "caution", "failure": "caution",
}

// loneKinds are the class names that mark a callout without another class, as in DocBook, docutils
// and handwritten manuals. Other kinds have further meanings, such as the summary of an interface,
// or an example.
var loneKinds = map[string]bool{
	"note": true, "tip": true, "important": true, "warning": true, "caution": true, "danger": true, "attention": true, "hint": true, "seealso": true,
	"is-info": true, "is-success": true, "is-warning": true, "is-danger": true,
}

// calloutKind returns the kind of a callout element, or "" for other elements. It accepts only the
// conventions of documentation tools: a class for callouts together with a class that names a kind,
// or the kind alone.
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
	if isTextBox(n) {
		return "note"
	}
	kind, named, words := "", false, 0
	for t := range strings.FieldsSeq(strings.ToLower(class)) {
		words++
		switch t {
		case "admonition", "callout", "markdown-alert", "alert", "custom-block", "notice", "admonitionblock", "theme-admonition", "bs-callout", "aside-callout",
			"message", "notecard", "hint", "book-hint", "nextra-callout":
			named = true
			if k := calloutKinds[strings.ToLower(attr(n, "data-type"))]; k != "" {
				kind = k
			}
			continue
		}
		if k := calloutKinds[t]; k != "" {
			kind = k
			continue
		}
		// alert-info, callout_tip, starlight-aside--note, prompt-warning
		if i := strings.LastIndexAny(t, "-_"); i > 0 {
			if k := calloutKinds[t[i+1:]]; k != "" {
				switch name := strings.TrimRight(t[:i], "-_"); {
				case name == "is":
					kind = k
				case name == "prompt", strings.HasSuffix(name, "admonition"), strings.HasSuffix(name, "callout"), strings.HasSuffix(name, "alert"),
					strings.HasSuffix(name, "notice"), strings.HasSuffix(name, "aside"), strings.HasSuffix(name, "hint"):
					kind, named = k, true
				}
			}
		}
	}
	if named || kind != "" && (words == 1 && loneKinds[strings.TrimSpace(strings.ToLower(class))] || n.DataAtom == atom.Aside || n.DataAtom == atom.Details) {
		return kind
	}
	return ""
}

// isTextBox reports whether an element is a box with a title next to the text, as DocBook and
// docutils generate for a sidebar or a topic. Such a box is not a sidebar of the page.
func isTextBox(n *html.Node) bool {
	if !hasClass(n, "sidebar", "topic") || hasClass(n, "contents") {
		return false
	}
	for c := range children(n) {
		if c.DataAtom == atom.A && c.FirstChild == nil {
			continue // an anchor
		}
		return c.DataAtom == atom.P && hasClass(c, "sidebar-title", "topic-title", "title") || hasClass(c, "titlepage")
	}
	return false
}

func (w *walker) callout(n *html.Node, kind string) {
	if w.tooDeep(n) {
		return
	}
	w.flush()
	b := millrace.Block{Type: millrace.CalloutBlock, Kind: kind}
	table := w.calloutTable(n)
	title := calloutTitle(n)
	if table != nil {
		title = find(table, func(e *html.Node) bool { return e.DataAtom == atom.Th || hasClass(e, "title") })
	}
	if title != nil {
		b.Title, _ = w.line(func() { w.children(title) })
		b.Title = strings.ReplaceAll(b.Title, "\n", " ")
		w.pending = w.pending[:0] // drop icons
	}
	b.Blocks = w.inside(func() {
		if table == nil {
			w.except(n, title)
			return
		}
		if title != nil {
			w.l.skip[title] = true
		}
		w.layout(table)
	})
	if b.Title != "" || len(b.Blocks) > 0 {
		w.out = append(w.out, b)
	}
}

// calloutTable returns the table that lays out a callout, with an icon, an optional title, and the
// text.
func (w *walker) calloutTable(n *html.Node) *html.Node {
	var table *html.Node
	for c := range children(n) {
		if table != nil || c.DataAtom != atom.Table {
			return nil
		}
		table = c
	}
	if table == nil {
		return nil
	}
	rows := 0
	for tr := range rowsOf(table) {
		cells := 0
		for td := range children(tr) {
			if img := findTag(td, atom.Img); cells == 0 && rows == 0 && plainText(td) == "" && img != nil {
				w.l.skip[img] = true // an icon
			}
			cells++
		}
		if rows++; cells > 2 || rows > 2 {
			return nil
		}
	}
	return table
}

// calloutTitle returns the first element of a callout if it is marked as the title or only names
// the kind.
func calloutTitle(n *html.Node) *html.Node {
	for first, steps := n, 0; steps < 3; steps++ {
		var next *html.Node
		for c := range children(first) {
			if c.DataAtom == atom.A && c.FirstChild == nil {
				continue // an anchor
			}
			next = c
			break
		}
		if next == nil {
			return nil
		}
		class := strings.ToLower(attr(next, "class"))
		if next.DataAtom == atom.P && calloutKinds[strings.ToLower(strings.TrimRight(plainText(next), ":"))] != "" && sibling(next, true) != nil {
			return next
		}
		if headingLevel(next) > 0 || next.DataAtom == atom.Summary || strings.Contains(class, "title") || strings.Contains(class, "heading") || strings.Contains(class, "header") {
			return next
		}
		if next.DataAtom != atom.Div {
			return nil
		}
		first = next
	}
	return nil
}
