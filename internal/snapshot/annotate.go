package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	dom "golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// Addition is an attribute proposed for an element.
type Addition struct {
	Path      string `json:"path"`      // CSS selector of the element
	Line      int    `json:"line"`      // line of the tag, from 1
	Column    int    `json:"column"`    // column in characters, from 1
	Attribute string `json:"attribute"` // name of the attribute
	Value     string `json:"value"`     // value of the attribute
	Offset    int    `json:"-"`         // offset in the page at which to insert Text
	Text      string `json:"-"`         // the attribute in HTML, with a leading space
}

// annotator proposes attributes for one document.
type annotator struct {
	*document
	added    []Addition
	at       []*dom.Node     // element of each addition
	taken    map[string]bool // proposed attributes, by offset and name
	names    map[string]bool // names of the page's parts
	sections map[*dom.Node]bool
	labeled  bool // the page has data-ai-label attributes, which must not become labels of new fields
	many     bool // more than maxAdditions were found
	unicode  bool // the document is in UTF-8
}

// maxAdditions limits the attributes proposed for one document. A part needs at most four, so a
// document that needs more has more parts than a snapshot may have.
const maxAdditions = 4 * defaultMaxNodes

// Annotate proposes attributes for an HTML document. It returns the document with the additions,
// and the additions in document order. All other bytes are unchanged. pageURL is the absolute URL
// of the page.
//
// For a page without attributes, or with only field, label and context attributes, it proposes
// attributes for the page, its title and summaries, its sections by their headings, its images, and
// its forms with their fields. For other pages, it proposes only the missing attributes of inputs.
// Annotating the result again adds nothing. [Lint] has no findings about the additions, but may
// have some about existing attributes.
//
// The errors are those of [Lint], and [millrace.ErrTooLarge] for a page with more parts than a
// snapshot may have.
func Annotate(ctx context.Context, data []byte, pageURL string) ([]byte, []Addition, error) {
	d, err := read(ctx, data, pageURL)
	if err != nil {
		return nil, nil, fmt.Errorf("annotate: %w", err)
	}
	a := &annotator{document: d, taken: map[string]bool{}, names: map[string]bool{}, sections: map[*dom.Node]bool{}, unicode: utf8.Valid(data)}
	if !a.structured(d.Tree) {
		a.structure()
	}
	a.inputs(d.Tree)
	if a.many {
		return nil, nil, millrace.Coded("snapshot-attributes", fmt.Errorf("annotate: %w: more than %d attributes", millrace.ErrTooLarge, maxAdditions))
	}
	for i, n := range a.at {
		add := &a.added[i]
		add.Path = a.path(n)
		add.Line, add.Column = a.position(n)
	}
	slices.SortStableFunc(a.added, func(x, y Addition) int { return cmp.Compare(x.Offset, y.Offset) })
	out := make([]byte, 0, len(data)+64*len(a.added))
	done := 0
	for i := range a.added {
		add := &a.added[i]
		out = append(append(out, data[done:add.Offset]...), add.Text...)
		done = add.Offset
	}
	out = append(out, data[done:]...)
	if d, err = read(ctx, out, pageURL); err == nil {
		_, err = Of(d.Tree, d.options())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("annotate: check the result: %w", err)
	}
	return out, a.added, nil
}

// structured reports whether a document already has attributes other than field, label and context,
// and records the names of its parts.
func (a *annotator) structured(n *dom.Node) bool {
	found := false
	for name, v := range attributesOf(n) {
		found = found || !slices.Contains([]string{"field", "label", "context"}, name)
		a.names[v] = true
		a.labeled = a.labeled || name == "label"
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Template && a.structured(c) {
			found = true
		}
	}
	return found
}

// add proposes an attribute if the element has a tag in the source and no attribute of that
// name.
func (a *annotator) add(n *dom.Node, name, value string) bool {
	at, ok := a.offset(n)
	if value == "" || !ok || a.many || attributesOf(n).has(name) {
		return false
	}
	key := strconv.Itoa(at) + name
	if a.taken[key] {
		return false // the parser has duplicated the element
	}
	a.taken[key] = true
	if a.many = len(a.added) == maxAdditions; a.many {
		return false
	}
	add := Addition{Attribute: Prefix + name, Value: value, Offset: a.ends[at]}
	add.Text = " " + add.Attribute + `="` + a.escape(value) + `"`
	a.added, a.at = append(a.added, add), append(a.at, n)
	return true
}

// escape encodes a value for the document: as numeric references outside ASCII unless the
// document is in UTF-8.
func (a *annotator) escape(value string) string {
	value = html.EscapeString(value)
	if a.unicode {
		return value
	}
	var b strings.Builder
	for _, r := range value {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "&#x%X;", r)
		}
	}
	return b.String()
}

// fresh returns an unused name derived from text, or from otherwise if text has no letters or
// digits.
func (a *annotator) fresh(text, otherwise string) string {
	base := slug(text)
	if base == "" {
		base = otherwise
	}
	name := base
	for i := 2; a.names[name] || reserved[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	a.names[name] = true
	return name
}

// slug derives a name from a text: its letters and digits in lower case.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
	name := ""
	for _, w := range words[:min(len(words), 8)] {
		if len(name)+len(w) > 80 {
			break
		}
		name += "-" + w
	}
	return strings.TrimPrefix(name, "-")
}

// structure proposes the attributes of the page and its parts.
func (a *annotator) structure() {
	var page *dom.Node
	for _, tag := range []atom.Atom{atom.Body, atom.Main, atom.Html} {
		if page = a.written(tag); page != nil {
			break
		}
	}
	if page != nil {
		b := newBuilder(a.Tree, a.options())
		a.add(page, "page", a.fresh(clean(b.pageName()), "page"))
		a.add(page, "type", string(a.Page.Kind))
	}
	if a.Content == nil {
		return
	}
	var heads []*dom.Node
	titled := false
	a.each(a.Content, func(n *dom.Node) {
		switch {
		case n.DataAtom == atom.H1 && !titled && visible(n) != "":
			titled = a.add(n, "heading", "title")
			a.names["title"] = true
			a.summary(n)
		case n.DataAtom == atom.H2 && visible(n) != "":
			heads = append(heads, n)
		case n.DataAtom == atom.Img && strings.TrimSpace(attr(n, "alt")) != "" && strings.TrimSpace(attr(n, "src")) != "":
			a.add(n, "media", a.fresh(attr(n, "alt"), "image"))
		}
	})
	for _, h := range heads {
		a.section(h, heads)
	}
	for _, f := range a.Forms {
		a.form(f)
	}
}

// written returns the first element of a kind that has a tag in the source.
func (a *annotator) written(tag atom.Atom) *dom.Node {
	for n := range a.Tree.Descendants() {
		if _, ok := a.offset(n); ok && n.DataAtom == tag {
			return n
		}
	}
	return nil
}

// each calls f for every visible element of the content below n.
func (a *annotator) each(n *dom.Node, f func(*dom.Node)) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != dom.ElementNode || a.Skipped(c) || isHidden(c) || isSilent(c) {
			continue
		}
		f(c)
		a.each(c, f)
	}
}

// visible returns the visible text of an element.
func visible(n *dom.Node) string {
	b := newBuilder(n, &Options{})
	return b.text(n)
}

// section proposes the part of a heading: the largest element around it without another heading.
// If there is no such element, the text of the heading becomes a member of the part around it.
func (a *annotator) section(h *dom.Node, heads []*dom.Node) {
	title := visible(h)
	var part *dom.Node
	for p := h.Parent; p != nil && p != a.Content; p = p.Parent {
		if isPart(p) && !containsOther(p, h) {
			part = p
		} else if isPart(p) {
			break
		}
	}
	if part == nil || a.sections[part] || len(heads) == 1 && part.DataAtom != atom.Section && part.DataAtom != atom.Article {
		a.add(h, "heading", a.fresh(title, "section"))
		return
	}
	if _, ok := a.offset(part); !ok {
		return
	}
	a.sections[part] = true
	a.add(part, "section", a.fresh(title, "section"))
	a.add(h, "heading", "title")
	a.summary(h)
}

// isPart reports whether an element can be a section.
func isPart(n *dom.Node) bool {
	switch n.DataAtom {
	case atom.Section, atom.Article, atom.Div, atom.Details, atom.Li, atom.Fieldset, atom.Form:
		return true
	}
	return false
}

// containsOther reports whether n contains an h1 or h2 other than h.
func containsOther(n, h *dom.Node) bool {
	for c := range n.Descendants() {
		if c != h && (c.DataAtom == atom.H1 || c.DataAtom == atom.H2) {
			return true
		}
	}
	return false
}

// summary proposes the paragraph directly after a heading as the summary.
func (a *annotator) summary(h *dom.Node) {
	for s := h.NextSibling; s != nil; s = s.NextSibling {
		if s.Type != dom.ElementNode {
			continue
		}
		if s.DataAtom == atom.P && !a.Skipped(s) && !isHidden(s) && len(visible(s)) >= 20 {
			a.add(s, "summary", "summary")
		}
		return
	}
}

// form proposes a form as a group within a section, or else as a section. It proposes the form's
// submit buttons as actions.
func (a *annotator) form(f *dom.Node) {
	name := a.fresh(cmp.Or(attr(f, "aria-label"), attr(f, "name"), attr(f, "id")), "form")
	within := false
	for p := f.Parent; p != nil; p = p.Parent {
		within = within || a.sections[p]
	}
	switch {
	case a.sections[f]: // named by a heading in it
	case within:
		a.add(f, "group", name)
	default:
		a.add(f, "section", name)
	}
	for b := range f.Descendants() {
		if b.DataAtom == atom.Button && (attr(b, "type") == "" || strings.EqualFold(attr(b, "type"), "submit")) || b.DataAtom == atom.Input && inputType(b) == "submit" {
			a.add(b, "role", "button")
			a.add(b, "event", "click")
			a.add(b, "action", "submit")
		}
	}
}

// clean returns a text as a valid value: on one line, without control characters, and not longer
// than a label.
func clean(s string) string {
	s = fold(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s))
	if len(s) > 200 {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:200], ""))
	}
	return s
}

// inputs proposes the missing attributes of all inputs of the document.
func (a *annotator) inputs(tree *dom.Node) {
	b := newBuilder(tree, a.options())
	_, _ = b.run() // fills b.unlabeled; the error for a document that is too large is reported by Lint
	unlabeled := map[*dom.Node]bool{}
	for _, n := range b.unlabeled {
		unlabeled[n] = true
	}
	var visit func(n *dom.Node, context bool)
	visit = func(n *dom.Node, context bool) {
		if n.DataAtom == atom.Template {
			return
		}
		at := attributesOf(n)
		context = context || at["context"] != ""
		if asks(n) || at.has("field") && inputType(n) != "hidden" {
			name := cmp.Or(clean(attr(n, "name")), clean(attr(n, "id")), slug(attr(n, "placeholder")), slug(attr(n, "aria-label")))
			a.add(n, "field", cmp.Or(name, inputType(n)))
			labelText := b.htmlLabel(n)
			if unlabeled[n] || !at.has("field") && at["label"] == "" && (labelText == "" || a.labeled) {
				a.add(n, "label", cmp.Or(clean(labelText), clean(attr(n, "aria-label")), clean(attr(n, "placeholder")), clean(attr(n, "title")), name, clean(at["field"]), inputType(n), "field"))
			}
			if private(n) != "" && !context {
				if inputType(n) == "password" || strings.Contains(attr(n, "autocomplete"), "cc-") {
					a.add(n, "context", "sensitive")
				} else {
					a.add(n, "context", "personal")
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			visit(c, context)
		}
	}
	visit(tree, false)
}
