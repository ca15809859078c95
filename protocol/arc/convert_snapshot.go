package arc

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// facts contains the values that an entry takes from its snapshot.
type facts struct {
	Summary   string   // summary of the snapshot's root node
	sensitive []string // "personal" and "sensitive", each if a node is marked with it
}

// Limits of a snapshot that is derived from a page.
const (
	maxSections = 200
	maxTitle    = 1000 // maximum number of characters of a title
)

// Snapshot returns the snapshot of a page in canonical form: the stored one from its data-ai-*
// attributes, or else one of the same shape derived from the page.
func Snapshot(p *millrace.Page) json.RawMessage {
	s, _ := snapshotOf(p)
	return s
}

func snapshotOf(p *millrace.Page) (json.RawMessage, facts) {
	if stored := p.Extra[Name]; len(stored) > 0 && len(stored) <= maxSnapshot {
		if c := canonicalObject(stored); c != nil {
			return completed(p, c)
		}
	}
	summary := summaryOf(p, "")
	return derived(p, summary), facts{Summary: summary}
}

// completed returns the stored snapshot of a page in canonical form, with additions. If the
// snapshot has no title, it gets the page's title. If it has no page name, it gets everything that
// can be derived from the page, because for a page without attributes only the fields of its forms
// are stored.
func completed(p *millrace.Page, stored json.RawMessage) (json.RawMessage, facts) {
	root := parseNode(stored)
	found := facts{root.summary(), root.sensitive()}
	if root.text("page") == "" {
		if found.Summary == "" {
			found.Summary = summaryOf(p, "")
		}
		return merge(derived(p, found.Summary), stored), found
	}
	if title := cut(p.Title); strings.TrimSpace(title) != "" {
		stored = merge(append(canon.AppendMember([]byte{'{'}, "title", title), '}'), stored)
	}
	return stored, found
}

// merge merges the members of two objects. The members of over take precedence.
func merge(object, over json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || json.Unmarshal(over, &members) != nil {
		return over
	}
	dst := []byte{'{'}
	for i, name := range slices.SortedFunc(maps.Keys(members), canon.CompareNames) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(canon.AppendString(dst, name), ':'), members[name]...)
	}
	return append(dst, '}')
}

// derived returns the snapshot of a page without attributes. Its members are in canonical order:
// page, sections (with name, summary, title), summary, title, type.
func derived(p *millrace.Page, summary string) json.RawMessage {
	kind := string(p.Kind)
	if !slices.Contains(kinds, p.Kind) {
		kind = nameOf(p)
	}
	dst := canon.AppendMember(append(make([]byte, 0, 512), '{'), "page", kind)
	dst = appendSections(dst, p.Blocks)
	for _, m := range [][2]string{{"summary", summary}, {"title", cut(p.Title)}, {"type", typeOf(p)}} {
		if strings.TrimSpace(m[1]) != "" {
			dst = canon.AppendMember(append(dst, ','), m[0], m[1])
		}
	}
	return append(dst, '}')
}

// appendSections appends one section per second-level heading.
func appendSections(dst []byte, blocks []millrace.Block) []byte {
	n := 0
	names := map[string]int{}
	for i := range blocks {
		if !opens(&blocks[i]) || n == maxSections {
			continue
		}
		title := cutSpace(cut(blocks[i].Text))
		name := slug(title)
		if name == "" {
			name = "section"
		}
		if names[name]++; names[name] > 1 {
			for base := name; names[name] > 0; {
				names[base]++
				name = base + "-" + strconv.Itoa(names[base]-1)
			}
			names[name]++
		}
		if n++; n == 1 {
			dst = append(dst, `,"sections":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = canon.AppendMember(append(dst, '{'), "name", name)
		if s := beginning(blocks[i+1:]); s != "" {
			dst = canon.AppendMember(append(dst, ','), "summary", s)
		}
		dst = append(canon.AppendMember(append(dst, ','), "title", title), '}')
	}
	if n > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// cut shortens a title to the limit of a snapshot, without cutting a UTF-8 sequence.
func cut(title string) string {
	title = canon.ValidUTF8(title)
	if len(title) > maxTitle {
		if r := []rune(title); len(r) > maxTitle {
			return string(r[:maxTitle])
		}
	}
	return title
}

// opens reports whether a block starts a section.
func opens(b *millrace.Block) bool {
	return b.Type == millrace.HeadingBlock && b.Level == 2 && cutSpace(b.Text) != ""
}

// beginning returns the first sentences of a section, or "". blocks starts after the section's
// heading.
func beginning(blocks []millrace.Block) string {
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case millrace.HeadingBlock:
			if b.Level <= 2 {
				return ""
			}
		case millrace.CodeBlock:
		default:
			if s := sentences(millrace.Text(blocks[i : i+1])); s != "" && !canon.HasEmail(s) {
				return s
			}
		}
	}
	return ""
}

// summary returns the data-ai-summary of the whole page.
func (n node) summary() string {
	if s := n.text("summary"); s != "" {
		return s
	}
	for _, t := range n.children("texts") {
		if s := t.text("text"); s != "" && t.text("attr") == "summary" {
			return s
		}
	}
	return ""
}

// node is one object of a snapshot.
type node map[string]any

// parseNode parses a snapshot. It returns nil if snapshot is not an object.
func parseNode(snapshot []byte) node {
	d := json.NewDecoder(bytes.NewReader(snapshot))
	d.UseNumber()
	var n node
	if d.Decode(&n) != nil {
		return nil
	}
	return n
}

// text returns a member that is a non-empty string, or "" if it is anything else.
func (n node) text(name string) string {
	if s, ok := n[name].(string); ok && strings.TrimSpace(s) != "" {
		return s
	}
	return ""
}

// children returns the nodes of a member that is an array.
func (n node) children(name string) (out []node) {
	list, _ := n[name].([]any)
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// containers lists the members that contain the parts of a node, outermost first.
var containers = []string{"sections", "groups", "subgroups", "blocks"}

// attributes lists the members that describe a node and are not part of its content.
var attributes = map[string]bool{
	"page": true, "name": true, "title": true, "heading": true, "type": true, "status": true, "context": true, "category": true,
	"visibility": true, "link": true, "ref": true, "depends_on": true, "rel": true, "source": true, "intent": true, "purpose": true,
	"scope": true, "mode": true, "behavior": true, "event": true, "trigger": true, "state": true, "action": true, "transition": true,
	"role": true, "media": true, "field": true, "label": true, "ai_context": true, "language": true, "url": true,
}

// blocks appends the content of a node: its heading, its texts, and its parts. The title and the
// summary of the root (level 1) are omitted, because they belong to the page.
func (n node) blocks(dst []millrace.Block, level int) []millrace.Block {
	add := func(s string) {
		dst = append(dst, millrace.TextBlocks(s)...)
	}
	if level > 1 {
		title := n.text("title")
		if title == "" {
			title = n.text("heading")
		}
		if title != "" {
			dst = append(dst, millrace.Block{Type: millrace.HeadingBlock, Level: min(level, 6), Text: cutSpace(title)})
		}
		add(n.text("summary"))
	}
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if !attributes[name] && name != "summary" {
			add(n.text(name))
		}
	}
	for _, t := range n.children("texts") {
		add(t.text("text"))
	}
	for _, name := range containers {
		for _, c := range n.children(name) {
			dst = c.blocks(dst, level+1)
		}
	}
	return dst
}

// sensitive returns the words "personal" and "sensitive" if they occur in the context or ai_context
// of any node, in alphabetical order.
func (n node) sensitive() []string {
	found := map[string]bool{}
	n.contexts(found)
	return slices.Sorted(maps.Keys(found))
}

func (n node) contexts(found map[string]bool) {
	for name, v := range n {
		if name == "context" || name == "ai_context" {
			marks(v, found)
		}
		within(v, found)
	}
}

func within(v any, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		node(v).contexts(found)
	case []any:
		for _, e := range v {
			within(e, found)
		}
	}
}

// marks finds the words that mark a node as sensitive or personal.
func marks(v any, found map[string]bool) {
	switch v := v.(type) {
	case string:
		for _, w := range strings.FieldsFunc(strings.ToLower(v), func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == '|' }) {
			if w == "sensitive" || w == "personal" {
				found[w] = true
			}
		}
	case []any:
		for _, e := range v {
			marks(e, found)
		}
	}
}
