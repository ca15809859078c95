package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// label is the text that a page shows next to a code block: the file name, the name of a tab, or
// the language.
type label struct {
	caption, language string
}

// findLabels finds listings without a pre, and reads the bars above and below code blocks and their
// tabs. The walk skips these elements.
func (w *walker) findLabels() {
	var pres []*html.Node
	for i := int32(0); i < int32(len(w.c.boxes)); i++ {
		b := &w.c.boxes[i]
		if b.drop != "" {
			continue
		}
		switch b.tag {
		case atom.Pre:
			pres = append(pres, b.n)
		case atom.Table, atom.Div, atom.Ol:
			if text, ok := linesText(b.n); ok && strings.TrimSpace(text) != "" {
				if w.listings == nil {
					w.listings = map[*html.Node]string{}
				}
				w.listings[b.n] = text
				pres = append(pres, b.n)
				i = b.end - 1
			}
		}
	}
	if len(pres) == 0 || len(pres) > 2000 {
		return
	}
	w.labels = map[*html.Node]label{}
	w.findTabs(pres)
	for _, n := range pres {
		if n.DataAtom == atom.Table {
			find(n, func(c *html.Node) bool {
				if c.DataAtom == atom.Caption || c.DataAtom == atom.Tr && isTitleRow(c) {
					w.readBar(c, n)
				}
				return c.DataAtom == atom.Td
			})
		}
		w.codeBars(n)
	}
}

// codeBars climbs from a code block through the ancestors that contain no other block, and reads
// the other elements in them.
func (w *walker) codeBars(pre *html.Node) {
	n := pre
	for range 6 {
		if n.Parent == nil || n.Parent.Type != html.ElementNode {
			return
		}
		switch n.DataAtom {
		case atom.Div, atom.Figure, atom.Pre, atom.Table, atom.Ol, atom.Code, 0:
		default:
			return
		}
		// All siblings must be bars, because other text next to the block is content.
		var bars []*html.Node
		steps := 0
		for s := n.Parent.FirstChild; s != nil; s = s.NextSibling {
			if steps++; steps > 40 {
				return
			}
			switch {
			case s == n || s.Type == html.TextNode && strings.TrimSpace(s.Data) == "" || s.Type == html.CommentNode || w.l.skip[s]:
			case s.Type != html.ElementNode || len(bars) == 4:
				return
			case s.DataAtom == atom.Figcaption && !w.isBar(s) || isNothing(s) && s.DataAtom != atom.Label:
			case !w.isBar(s):
				return
			default:
				bars = append(bars, s)
			}
		}
		for _, s := range bars {
			w.readBar(s, pre)
		}
		n = n.Parent
	}
}

// barClasses are parts of the class names of bars.
var barClasses = []string{"title", "filename", "file-name", "caption", "head", "lang", "label", "toolbar", "info", "src-name", "button", "copy"}

// isBar reports whether an element next to a code block describes it or contains controls. The text
// of a bar is short, and its class or its text identifies it.
func (w *walker) isBar(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Div, atom.Span, atom.Label, atom.A, atom.Tr, atom.Th, atom.Td, atom.Header, atom.Footer, atom.Figcaption, 0:
	default:
		return false
	}
	steps := 0
	if find(n, func(e *html.Node) bool {
		if steps++; steps > 100 {
			return true
		}
		switch e.DataAtom {
		case atom.P, atom.Pre, atom.Img, atom.Ul, atom.Ol, atom.Dl, atom.Iframe, atom.Video, atom.Blockquote, atom.Math:
			return true
		}
		return headingLevel(e) > 0
	}) != nil {
		return false
	}
	parts := barParts(n, nil)
	if len(strings.Join(parts, " ")) > 100 {
		return false
	}
	plain, files := true, 0
	for _, t := range parts {
		if fileLanguage(t) != "" {
			files++
		} else if !isControl(t) && spokenLanguage(t) == "" {
			plain = false
		}
	}
	plain = plain && files < 2
	if plain || n.DataAtom == atom.Figcaption {
		return plain
	}
	for _, e := range []*html.Node{n, n.FirstChild} {
		class := strings.ToLower(attr(e, "class"))
		for _, c := range barClasses {
			if strings.Contains(class, c) {
				return true
			}
		}
	}
	return false
}

// barParts appends the texts of a bar to parts, one per text node.
func barParts(n *html.Node, parts []string) []string {
	for c := n.FirstChild; c != nil && len(parts) < 20; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			if t := folded(c.Data); t != "" {
				parts = append(parts, t)
			}
		case c.Type != html.ElementNode || c.DataAtom != atom.Label && isNothing(c) || isHidden(c) != "" || isLineNumber(strings.TrimSpace(leadText(c))) && len(counted(plainLines(c))) > 0 ||
			hasClass(c, "sr-only", "visually-hidden", "screen-reader-text"):
		default:
			parts = barParts(c, parts)
		}
	}
	return parts
}

func (w *walker) readBar(n, pre *html.Node) {
	w.l.skip[n] = true
	at := w.labels[pre]
	var caption []string
	for _, t := range barParts(n, nil) {
		switch lang := spokenLanguage(t); {
		case isControl(t):
		case lang != "" && (at.language == "" || at.language == lang):
			at.language = lang
		default:
			caption = append(caption, t)
		}
	}
	at.addCaption(strings.Join(caption, " "))
	w.labels[pre] = at
}

func (l *label) addCaption(s string) {
	switch {
	case s == "" || s == l.caption:
	case l.caption == "":
		l.caption = s
	default:
		l.caption += ": " + s
	}
}

// isControl reports whether a text is the label of a button next to code.
func isControl(t string) bool {
	switch strings.ToLower(strings.Trim(t, "!.… ")) {
	case "copy", "copied", "copy code", "copy to clipboard", "run", "run code", "try it", "raw", "view raw", "wrap", "toggle word wrap", "expand", "collapse",
		"?", "code", "play", "edit", "download", "view plain", "[docs]", "[source]", "show hidden lines":
		return true
	}
	return false
}

// spokenLanguage returns the language that a label names by its usual name, or "".
func spokenLanguage(t string) string {
	t = strings.ToLower(strings.TrimSpace(t))
	switch t {
	case "text", "plain text", "plaintext", "txt":
		return "text"
	case "shell session", "terminal":
		return "console"
	case "visual basic":
		return "vb"
	}
	if languages[t] {
		return t
	}
	return ""
}

// findTabs finds the tabs above code blocks and their panels by ARIA attributes.
func (w *walker) findTabs(pres []*html.Node) {
	panels := map[string]*html.Node{} // ARIA panels, by their id and by the id of their tab
	var lists []*html.Node
	find(w.c.body, func(n *html.Node) bool {
		switch attr(n, "role") {
		case "tablist":
			if len(lists) < 200 {
				lists = append(lists, n)
			}
		case "tabpanel":
			panels[attr(n, "id")] = n
			panels[" "+attr(n, "aria-labelledby")] = n
		}
		return false
	})
	holds := map[*html.Node]*html.Node{} // the only code block inside each panel; the panel itself = several
	for _, p := range pres {
		for n, steps := p.Parent, 0; n != nil && steps < 12; n, steps = n.Parent, steps+1 {
			if other := holds[n]; other != nil && other != p {
				holds[n] = n // it contains several
			} else {
				holds[n] = p
			}
		}
	}
	for _, list := range lists {
		w.ariaTabs(list, panels, holds)
	}
}

// ariaTabs handles one list of tabs.
func (w *walker) ariaTabs(list *html.Node, panels map[string]*html.Node, holds map[*html.Node]*html.Node) {
	var tabs, tabPanels []*html.Node
	steps := 0 // limits the work: lists may be nested and numerous
	find(list, func(n *html.Node) bool {
		if attr(n, "role") == "tab" && len(tabs) < 100 {
			tabs = append(tabs, n)
		}
		steps++
		return steps > 1000
	})
	for _, t := range tabs {
		id := attr(t, "aria-controls")
		if id == "" {
			id = fragment(t)
		}
		p := panels[id]
		if p == nil || id == "" {
			if p = panels[" "+attr(t, "id")]; attr(t, "id") == "" {
				p = nil
			}
		}
		if p != nil {
			tabPanels = append(tabPanels, p)
		}
	}
	for up, levels := list.Parent, 0; len(tabPanels) < len(tabs) && up != nil && levels < 3; up, levels = up.Parent, levels+1 {
		tabPanels, steps = tabPanels[:0], 0
		find(up, func(n *html.Node) bool {
			if attr(n, "role") == "tabpanel" && len(tabPanels) <= len(tabs) {
				tabPanels = append(tabPanels, n)
			}
			steps++
			return steps > 5000
		})
		if len(tabPanels) > 0 {
			break
		}
	}
	if w.pairTabs(tabs, tabPanels, holds) {
		w.l.skip[list] = true
	}
}

// pairTabs assigns the labels of tabs to the panels of a group, if one of the panels contains code
// and each tab has a panel. It reports whether it did so.
func (w *walker) pairTabs(tabs, tabPanels []*html.Node, holds map[*html.Node]*html.Node) bool {
	code := false
	for _, p := range tabPanels {
		code = code || holds[p] != nil
	}
	if !code || len(tabs) < 2 || len(tabs) != len(tabPanels) {
		return false
	}
	for i, p := range tabPanels {
		t := strings.Join(barParts(tabs[i], nil), " ")
		if t == "" || len(t) > 100 {
			continue
		}
		if pre := holds[p]; pre != nil && pre != p && wordCount(plainText(p)) <= wordCount(plainText(pre))+4 {
			at := w.labels[pre]
			at.addCaption(t)
			w.labels[pre] = at
			continue
		}
		if w.panels == nil {
			w.panels = map[*html.Node]string{}
		}
		w.panels[p] = t
	}
	return true
}
