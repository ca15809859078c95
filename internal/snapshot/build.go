package snapshot

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Options configure [Of]. The zero value is valid.
type Options struct {
	// URL is the URL of the page, from which its name is derived. It may be nil.
	URL *url.URL
	// Base is the base URL for relative references. If nil, URL.
	Base *url.URL
	// Schema contains the JSON-LD objects of the page, from which its name is derived.
	Schema []json.RawMessage
	// Forms are the forms whose inputs become the fields of a document without attributes.
	Forms []*html.Node
	// MaxNodes limits the parts of a snapshot. If zero, 10,000.
	MaxNodes int
	// MaxBytes limits the bytes of all texts, names and URLs of a snapshot. If zero, 256 KB.
	MaxBytes int
}

// Default limits, and the limit of the work for nested texts.
const (
	defaultMaxNodes = 10_000
	defaultMaxBytes = 256 << 10
	maxWork         = 64 << 20
)

// builder builds one snapshot.
type builder struct {
	o         *Options
	s         *Snapshot
	found     bool // an attribute was found
	named     bool // an element names the page
	ogType    string
	label     *label                // the last data-ai-label, for the next field
	labels    map[string]*html.Node // label elements by the id of their field; nil until they are collected
	tree      *html.Node
	marked    map[string]bool
	unlabeled []*html.Node // fields without a label
	parts     int          // remaining parts
	bytes     int          // remaining bytes
	work      int          // remaining work
	err       error
}

// label is the value of a data-ai-label.
type label struct {
	n    *html.Node
	text string
	in   *Node
}

// spot is the position of an element among the containers.
type spot struct {
	in     [BlockLevel + 1]*Node // the innermost container of each level, or nil
	closed bool                  // texts here must not be published
}

// node returns the innermost container.
func (p *spot) node() *Node {
	for l := BlockLevel; l > PageLevel; l-- {
		if p.in[l] != nil {
			return p.in[l]
		}
	}
	return p.in[PageLevel]
}

// Of returns the snapshot of a document, or nil if it has no attributes and none of the forms has
// an input. It ignores template elements.
//
// For a snapshot above a limit, the error is [millrace.ErrTooLarge]; a truncated snapshot would
// claim that the rest does not exist.
func Of(tree *html.Node, o *Options) (*Snapshot, error) {
	if o == nil {
		o = &Options{}
	}
	return newBuilder(tree, o).run()
}

func (b *builder) run() (*Snapshot, error) {
	at := spot{}
	at.in[PageLevel] = b.s.Page
	b.visit(b.tree, at)
	if b.err == nil && !b.found {
		b.s.Page = nil
		b.forms(b.o.Forms)
	}
	switch {
	case b.err != nil:
		return nil, fmt.Errorf("snapshot: %w", b.err)
	case !b.found && len(b.s.Fields) == 0:
		return nil, nil //nolint:nilnil // no snapshot
	case b.found && b.s.Page.Name == "":
		b.s.Page.Name = b.pageName()
	}
	for _, m := range []string{"personal", "sensitive"} {
		if b.marked[m] {
			b.s.Marks = append(b.s.Marks, m)
		}
	}
	return b.s, nil
}

func newBuilder(tree *html.Node, o *Options) *builder {
	b := &builder{o: o, tree: tree, s: &Snapshot{Page: &Node{}}, marked: map[string]bool{}, parts: o.MaxNodes, bytes: o.MaxBytes, work: maxWork}
	if b.parts <= 0 {
		b.parts = defaultMaxNodes
	}
	if b.bytes <= 0 {
		b.bytes = defaultMaxBytes
	}
	return b
}

// fail ends the work with an error.
func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("%w: "+format, append([]any{millrace.ErrTooLarge}, args...)...)
	}
}

// part counts a part of the snapshot.
func (b *builder) part() {
	if b.parts--; b.parts < 0 {
		b.fail("the page has more parts than a snapshot may have")
	}
}

// keep counts the bytes of a text in the snapshot and returns the text.
func (b *builder) keep(s string) string {
	if b.bytes -= len(s); b.bytes < 0 {
		b.fail("the page has more text than a snapshot may have")
		return ""
	}
	return s
}

// visit adds an element and its descendants.
func (b *builder) visit(n *html.Node, at spot) {
	if b.err != nil {
		return
	}
	if n.Type == html.ElementNode {
		switch n.DataAtom {
		case atom.Template, atom.Script, atom.Style:
			return
		case atom.Meta:
			if b.ogType == "" && strings.EqualFold(attr(n, "property"), "og:type") {
				b.ogType = fold(attr(n, "content"))
			}
		}
		if isHidden(n) {
			at.closed = true
		}
		if a := attributesOf(n); a != nil {
			b.found = true
			b.element(n, a, &at)
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.visit(c, at)
	}
}

// element adds the attributes of one element.
func (b *builder) element(n *html.Node, a attributes, at *spot) {
	for _, m := range a.marks() {
		b.marked[m] = true
	}
	at.closed = at.closed || a.closed()
	container := b.containers(a, at)
	in := at.node()
	b.relations(a, in)
	if container {
		for _, c := range []Class{Meta, Relational, Contextual, Dynamic, Roles} {
			b.values(a, in, c)
		}
	}
	if _, ok := a["label"]; ok && !isControl(n) && !a.has("field", "role", "action", "event") {
		b.label = &label{n: n, text: a["label"], in: in}
		if !at.closed {
			if t := b.text(n); t != "" {
				b.label.text = t
			}
		}
	}
	switch {
	case a.has("heading", "summary", "content"):
		b.texts(n, a, in, at.closed)
	case a.has("field"):
		b.field(n, a, in, at.closed)
	case !container && a.has("role", "action", "event"):
		b.action(n, a, in, at.closed)
	case a.has("media"), !container && a.has("link"):
		b.address(n, a, in, at.closed, container)
	}
}

// containers opens the containers of an element, from the outside in.
func (b *builder) containers(a attributes, at *spot) (any bool) {
	for l := PageLevel; l <= BlockLevel; l++ {
		name, ok := a[levels[l].attribute]
		if !ok {
			continue
		}
		if l == PageLevel {
			if b.named {
				continue // ignore further page elements
			}
			b.named, any = true, true
			b.s.Page.Name = b.keep(name)
			continue
		}
		any = true
		n := &Node{Level: l, Name: b.keep(name)}
		b.part()
		for i := l; i <= BlockLevel; i++ {
			at.in[i] = nil
		}
		out := at.node()
		out.Children = append(out.Children, n)
		at.in[l] = n
	}
	return any
}

// values copies the attributes of a class to a container.
func (b *builder) values(a attributes, in *Node, of Class) {
	for _, c := range classes {
		if c.class != of {
			continue
		}
		for _, name := range c.names {
			v, ok := a[name]
			if !ok || v == "" {
				continue
			}
			if name == "depends" {
				name = "depends_on"
			}
			in.set(name, b.keep(v))
		}
	}
}

// set sets a member unless it is present, and reports whether it did.
func (n *Node) set(key, value string) bool {
	if _, taken := n.Values[key]; taken {
		return false
	}
	if n.Values == nil {
		n.Values = map[string]string{}
	}
	n.Values[key] = value
	return true
}

// relations records the targets that an element names.
func (b *builder) relations(a attributes, in *Node) {
	for _, kind := range []string{"link", "ref", "depends"} {
		for to := range strings.SplitSeq(a[kind], ",") {
			if to = strings.TrimSpace(to); to != "" {
				b.part()
				b.s.Relations = append(b.s.Relations, Relation{From: b.keep(in.Name), To: b.keep(to), Kind: kind})
			}
		}
	}
}

// texts adds the text content of an element.
func (b *builder) texts(n *html.Node, a attributes, in *Node, closed bool) {
	text := ""
	if !closed {
		text = b.text(n)
	}
	for _, kind := range []string{"heading", "summary", "content"} {
		key, ok := a[kind]
		if !ok {
			continue
		}
		if key == "" {
			key = kind
		}
		b.part()
		switch {
		case text == "":
			// Omit a text that must not be published, but keep the part.
			if closed && !reserved[key] {
				in.set(key, "")
			}
		case reserved[key] || !in.set(key, text):
			in.Texts = append(in.Texts, Text{Attr: kind, Key: key, Text: text})
		}
		b.keep(key)
		b.keep(text)
	}
}

// action adds an action.
func (b *builder) action(n *html.Node, a attributes, in *Node, closed bool) {
	act := Action{
		Role: b.keep(a["role"]), Intent: b.keep(a["intent"]), Behavior: b.keep(a["behavior"]), Event: b.keep(a["event"]),
		Trigger: b.keep(a["trigger"]), Action: b.keep(a["action"]), Transition: b.keep(a["transition"]),
	}
	if !closed {
		act.Label = a["label"]
		if t := b.text(n); t != "" && !isControl(n) {
			act.Label = t
		}
		b.keep(act.Label)
	}
	b.part()
	in.Actions = append(in.Actions, act)
}

// address adds a link or a medium.
func (b *builder) address(n *html.Node, a attributes, in *Node, closed, container bool) {
	if name, ok := a["media"]; ok {
		m := Media{Name: b.keep(name)}
		if !closed {
			src, alt := source(n)
			m.Src, m.Alt = b.keep(b.resolve(src)), b.keep(fold(alt))
		}
		b.part()
		in.Media = append(in.Media, m)
	}
	if name, ok := a["link"]; ok && !container {
		l := Link{Link: b.keep(name)}
		if !closed {
			l.Title, l.Href = b.keep(b.text(n)), b.keep(b.resolve(attr(n, "href")))
		}
		b.part()
		in.Links = append(in.Links, l)
	}
}

// nowhere is the top-level domain of hosts that do not exist (RFC 6761, section 6.4). The
// placeholder URL of a page without a URL has such a host.
const nowhere = ".invalid"

// resolve returns the absolute form of a reference, or "" if it is invalid.
func (b *builder) resolve(ref string) string {
	base := b.o.Base
	if base == nil {
		base = b.o.URL
	}
	if strings.TrimSpace(ref) == "" {
		return ""
	}
	abs, err := canon.Resolve(base, ref)
	if err != nil || strings.HasSuffix(canon.Origin(abs), nowhere) {
		return ""
	}
	return abs
}

// source returns the URL of an element's medium and its text alternative.
func source(n *html.Node) (src, alt string) {
	alt = attr(n, "alt")
	for _, key := range []string{"src", "data", "href", "poster"} {
		if src = attr(n, key); strings.TrimSpace(src) != "" && !strings.HasPrefix(src, "data:") {
			return src, alt
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode || isHidden(c) || attributesOf(c).closed() {
			continue
		}
		switch c.DataAtom {
		case atom.Template, atom.Script, atom.Style, atom.A, atom.Input:
			continue
		}
		if s, t := source(c); s != "" {
			if alt == "" {
				alt = t
			}
			return s, alt
		}
	}
	return "", alt
}

// pageName returns the name of a page that no element names.
func (b *builder) pageName() string {
	if b.ogType != "" {
		return b.keep(b.ogType)
	}
	for _, raw := range b.o.Schema {
		if t := schemaType(raw); t != "" {
			return b.keep(t)
		}
	}
	if b.o.URL == nil {
		return "page"
	}
	path := strings.Trim(b.o.URL.Path, "/")
	if path == "" {
		return "home"
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	if name = fold(name); name == "" {
		return "page"
	}
	return b.keep(name)
}

// minorTypes are JSON-LD types that do not describe the page itself.
var minorTypes = []string{"BreadcrumbList", "Organization", "Person", "WebSite", "ImageObject", "SiteNavigationElement", "WPHeader", "WPFooter", "WPSideBar"}

// schemaType returns the type of a JSON-LD object that may describe the page, or "".
func schemaType(raw json.RawMessage) string {
	var o struct {
		Type json.RawMessage `json:"@type"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	var one string
	if json.Unmarshal(o.Type, &one) != nil {
		var some []string
		if json.Unmarshal(o.Type, &some) != nil || len(some) == 0 {
			return ""
		}
		one = some[0]
	}
	one = fold(one[strings.LastIndexAny(one, "/:#")+1:])
	if slices.Contains(minorTypes, one) {
		return ""
	}
	return one
}
