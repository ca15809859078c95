package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// Rule is the ID of a lint rule.
type Rule string

// The lint rules.
const (
	OnePage          Rule = "one-page"          // more than one page element
	GroupInSection   Rule = "group-in-section"  // a group outside of a section
	SubgroupInGroup  Rule = "subgroup-in-group" // a subgroup outside of a group
	Depth            Rule = "depth"             // containers nest deeper than 3 below the page
	AttributeName    Rule = "attribute-name"    // an unknown attribute
	EmptyValue       Rule = "empty-value"       // an attribute without a value
	InputField       Rule = "input-field"       // an input without data-ai-field
	FieldLabel       Rule = "field-label"       // a field without a label
	Unresolved       Rule = "unresolved"        // a link, ref or depends without a target
	SensitiveContext Rule = "sensitive-context" // an input for personal or secret data without context
	EventAction      Rule = "event-action"      // an event without an action
	OutputShape      Rule = "shape"             // an invalid snapshot
)

// Finding is one violation of a lint rule.
type Finding struct {
	Rule    Rule   `json:"rule"`             // ID of the rule
	Path    string `json:"path"`             // CSS selector of the element, or JSON Pointer
	Line    int    `json:"line,omitempty"`   // line of the tag, from 1
	Column  int    `json:"column,omitempty"` // column in characters, from 1
	Message string `json:"message"`          // description of the fault and of its correction
}

// maxFindings limits the findings of Lint for one document.
const maxFindings = 1000

// linter checks one document.
type linter struct {
	*document
	page     *html.Node      // the first page element
	names    map[string]bool // names of all parts
	findings []Finding
}

// around describes the ancestors of an element.
type around struct {
	section, group bool
	depth          int  // number of containers below the page
	context        bool // one of the ancestors has a context attribute
}

// Lint checks the attributes of an HTML document. It returns at most 1,000 findings, in
// document order. pageURL is absolute. A document without attributes can only have findings
// for inputs that are not fields.
//
// The errors are those of [extract.HTML], and [millrace.ErrInvalid] for UTF-16.
func Lint(ctx context.Context, data []byte, pageURL string) ([]Finding, error) {
	d, err := read(ctx, data, pageURL)
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	return d.lint(), nil
}

func (d *document) lint() []Finding {
	l := &linter{document: d, names: map[string]bool{}}
	l.name(d.Tree)
	l.visit(d.Tree, around{})
	l.snapshot()
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	// Remove duplicate findings, because the parser duplicates elements that are not closed.
	return slices.CompactFunc(l.findings, func(a, b Finding) bool {
		return a.Rule == b.Rule && a.Line == b.Line && a.Column == b.Column && a.Message == b.Message && a.Line > 0
	})
}

func (l *linter) report(r Rule, n *html.Node, format string, args ...any) {
	if len(l.findings) >= maxFindings {
		return
	}
	f := Finding{Rule: r, Path: l.path(n), Message: fmt.Sprintf(format, args...)}
	f.Line, f.Column = l.position(n)
	l.findings = append(l.findings, f)
}

// name records the names to which link, ref and depends may refer.
func (l *linter) name(n *html.Node) {
	a := attributesOf(n)
	for _, k := range []string{"page", "section", "group", "subgroup", "block", "heading", "summary", "content", "field", "label", "media"} {
		if a[k] != "" {
			l.names[a[k]] = true
		}
	}
	if _, leads := lookup(n, "href"); leads && a["link"] != "" {
		l.names[a["link"]] = true
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom != atom.Template {
			l.name(c)
		}
	}
}

func (l *linter) visit(n *html.Node, at around) {
	var a attributes
	if n.Type == html.ElementNode {
		if n.DataAtom == atom.Template {
			return
		}
		a = attributesOf(n)
		l.attributes(n)
		l.containers(n, a, &at)
		at.context = at.context || a["context"] != ""
		l.input(n, a, at)
		l.references(n, a)
		if a.has("event") && !a.has("action") {
			l.report(EventAction, n, "%sevent=%q has no %saction; add the action", Prefix, a["event"], Prefix)
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		l.visit(c, at)
	}
}

// attributes checks the names and values of attributes.
func (l *linter) attributes(n *html.Node) {
	for i := range n.Attr {
		key := n.Attr[i].Key
		rest, ok := strings.CutPrefix(key, "data-ai")
		if !ok || rest != "" && (rest[0] >= 'a' && rest[0] <= 'z' || rest[0] >= '0' && rest[0] <= '9') {
			continue // another attribute, such as "data-aim"
		}
		name := strings.TrimPrefix(rest, "-")
		switch {
		case classOf[name] != "" && rest == "-"+name:
			if strings.TrimSpace(n.Attr[i].Val) == "" {
				l.report(EmptyValue, n, "%s has no value", key)
			}
		case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" || name == "" || rest[0] != '-':
			l.report(AttributeName, n, "%q is malformed%s", key, meant(name))
		default:
			l.report(AttributeName, n, "unknown attribute %s%s", key, meant(name))
		}
	}
}

// meant returns a hint that names the probably intended attribute for a misspelled name, or "".
func meant(name string) string {
	name = strings.ToLower(strings.Trim(name, "-_.:"))
	best, least := "", 3
	for _, c := range classes {
		for _, known := range c.names {
			if d := distance(name, known); d < least {
				best, least = known, d
			}
		}
	}
	if best == "" || least >= len(best) {
		return ""
	}
	return "; " + Prefix + best + " is similar"
}

// distance returns the Levenshtein distance of two names, or a large number for long names.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// containers checks the nesting of containers.
func (l *linter) containers(n *html.Node, a attributes, at *around) {
	if a.has("page") {
		if l.page != nil {
			l.report(OnePage, n, "%spage=%q is a second page element; the first one is %s", Prefix, a["page"], l.path(l.page))
		} else {
			l.page = n
		}
	}
	depth := at.depth
	if a.has("section") {
		at.section, at.group = true, false
		depth++
	}
	if a.has("group") {
		if !at.section {
			l.report(GroupInSection, n, "%sgroup=%q is not inside a section", Prefix, a["group"])
		}
		at.group = true
		depth++
	}
	if a.has("subgroup") {
		if !at.group {
			l.report(SubgroupInGroup, n, "%ssubgroup=%q is not inside a group", Prefix, a["subgroup"])
		}
		depth++
	}
	if a.has("block") {
		depth++
	}
	if depth > at.depth && depth > maxDepth {
		l.report(Depth, n, "%d nested containers below the page; at most %d are allowed", depth, maxDepth)
	}
	at.depth = depth
}

// maxDepth limits the nesting of containers below the page.
const maxDepth = 3

// input checks a control.
func (l *linter) input(n *html.Node, a attributes, at around) {
	if !a.has("field") && asks(n) {
		l.report(InputField, n, "%s has no %sfield", describe(n), Prefix)
	}
	if why := private(n); why != "" && !at.context {
		l.report(SensitiveContext, n, "%s has no %scontext", why, Prefix)
	}
}

// describe names an input in messages.
func describe(n *html.Node) string {
	s := n.Data
	if n.DataAtom == atom.Input {
		s += " of type " + inputType(n)
	}
	if name := attr(n, "name"); name != "" {
		s += fmt.Sprintf(" %q", name)
	}
	return s
}

// private returns the reason why an input is personal or secret, or "" if it is neither.
func private(n *html.Node) string {
	if !asks(n) {
		return ""
	}
	switch t := inputType(n); t {
	case "password", "email", "tel":
		return "an input of type " + t
	}
	for word := range strings.FieldsSeq(strings.ToLower(attr(n, "autocomplete"))) {
		if strings.HasPrefix(word, "cc-") || strings.HasSuffix(word, "-password") || strings.HasPrefix(word, "bday") || strings.HasPrefix(word, "street-address") ||
			word == "one-time-code" || word == "email" || word == "tel" {
			return "an input for " + word
		}
	}
	return ""
}

// references checks the targets of link, ref and depends.
func (l *linter) references(n *html.Node, a attributes) {
	for _, kind := range []string{"link", "ref", "depends"} {
		v := a[kind]
		if v == "" {
			continue
		}
		if href, has := lookup(n, "href"); kind == "link" && has {
			if why := l.leads(strings.TrimSpace(href)); why != "" {
				l.report(Unresolved, n, "%slink=%q: the href %s", Prefix, v, why)
			}
			continue
		}
		for to := range strings.SplitSeq(v, ",") {
			if to = strings.TrimSpace(to); to == "" || l.known(to) {
				continue
			}
			some := words(to)
			for _, w := range some {
				if len(some) == 1 || !l.known(w) {
					l.report(Unresolved, n, "%s%s=%q has no target: no part of the page has the name or id %q", Prefix, kind, v, w)
				}
			}
		}
	}
}

// known reports whether a reference names a part of the page, or another page.
func (l *linter) known(to string) bool {
	switch {
	case l.names[to], l.ids[to]:
		return true
	case strings.HasPrefix(to, "#"):
		return l.leads(to) == ""
	}
	return strings.HasPrefix(to, "/") || strings.HasPrefix(to, "./") || strings.HasPrefix(to, "../") || strings.HasPrefix(to, "?") ||
		strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") || strings.HasPrefix(to, "tel:")
}

// leads returns the reason why a URL has no target, or "" if it may have one.
func (l *linter) leads(href string) string {
	id, within := strings.CutPrefix(href, "#")
	switch {
	case href == "":
		return "is empty"
	case within && id == "":
		return "has no target"
	case within && id != "top" && !l.ids[id]:
		return fmt.Sprintf("has the target %q, which is not on the page", href)
	}
	return ""
}

// snapshot checks the snapshot built from the attributes.
func (l *linter) snapshot() {
	at := l.page
	if at == nil {
		at = l.root()
	}
	b := newBuilder(l.Tree, l.options())
	s, err := b.run()
	for _, n := range b.unlabeled {
		if inputType(n) != "hidden" {
			l.report(FieldLabel, n, "field %q has no label: neither %slabel before it nor a label element", attributesOf(n)["field"], Prefix)
		}
	}
	if err == nil && s == nil || err == nil && s.Page == nil {
		return
	}
	var data []byte
	if err == nil {
		data, err = s.JSON()
	}
	if err != nil {
		l.report(OutputShape, at, "invalid snapshot: %v", strings.TrimPrefix(err.Error(), "snapshot: "))
		return
	}
	for _, f := range Validate(data) {
		l.report(OutputShape, at, "%s: %s", cmp.Or(f.Pointer, "the snapshot"), f.Message)
	}
}

// root returns the outermost element.
func (l *linter) root() *html.Node {
	for c := l.Tree.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode {
			return c
		}
	}
	return l.Tree
}

// LintJSON checks the shape of a snapshot in JSON. Above [MaxJSON], the error is
// [millrace.ErrTooLarge].
func LintJSON(data []byte) ([]Finding, error) {
	if len(data) > MaxJSON {
		return nil, fmt.Errorf("lint: %w: the snapshot has %d bytes, limit %d", millrace.ErrTooLarge, len(data), MaxJSON)
	}
	var list []Finding
	for _, f := range Validate(data) {
		list = append(list, Finding{Rule: OutputShape, Path: f.Pointer, Message: f.Message})
	}
	return list, nil
}
