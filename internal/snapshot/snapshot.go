package snapshot

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

// Snapshot is the description of a page by its attributes, in the format of the ARC convention.
type Snapshot struct {
	// Page is the root. It is nil if the document has no attributes; then only Fields is set.
	Page *Node
	// Fields are the form fields of a document without attributes.
	Fields []Field
	// Relations are the links between parts, in document order.
	Relations []Relation
	// Marks contains "personal" and "sensitive", in this order, if a part has that context.
	Marks []string
}

// Level is the nesting level of a container.
type Level int

// The levels of containers, from the outside in.
const (
	PageLevel Level = iota
	SectionLevel
	GroupLevel
	SubgroupLevel
	BlockLevel
)

// levels lists the attribute of each level and the array of its containers.
var levels = [...]struct{ attribute, array string }{
	{"page", ""}, {"section", "sections"}, {"group", "groups"}, {"subgroup", "subgroups"}, {"block", "blocks"},
}

// Node is a container with its contents.
type Node struct {
	Level    Level
	Name     string
	Values   map[string]string // attributes by name, and texts by key
	Texts    []Text            // texts whose key is already in Values
	Fields   []Field
	Actions  []Action
	Links    []Link
	Media    []Media
	Children []*Node // containers of any deeper level, in document order
}

// Text is a text whose key another member already has.
type Text struct {
	Attr string `json:"attr"` // heading, summary or content
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Field is a form field.
type Field struct {
	Field    string `json:"field"`
	Label    string `json:"label,omitempty"`
	Type     string `json:"type,omitempty"` // data-ai-type or the input's type, or "select", "textarea"
	Context  string `json:"context,omitempty"`
	Behavior string `json:"behavior,omitempty"`
}

// Action is an action that a user can take.
type Action struct {
	Role       string `json:"role,omitempty"`
	Intent     string `json:"intent,omitempty"`
	Behavior   string `json:"behavior,omitempty"`
	Event      string `json:"event,omitempty"`
	Trigger    string `json:"trigger,omitempty"`
	Action     string `json:"action,omitempty"`
	Transition string `json:"transition,omitempty"`
	Label      string `json:"label,omitempty"`
}

// Link is a link to another part or page.
type Link struct {
	Link  string `json:"link"`
	Title string `json:"title,omitempty"`
	Href  string `json:"href,omitempty"` // absolute URL
}

// Media is an image, a video or a sound.
type Media struct {
	Name string `json:"name"`
	Src  string `json:"src,omitempty"` // absolute URL
	Alt  string `json:"alt,omitempty"`
}

// Relation is a reference from one part to another.
type Relation struct {
	From string `json:"from"` // name of the container
	To   string `json:"to"`
	Kind string `json:"kind"` // link, ref or depends
}

// reserved lists the names of members that cannot hold a text.
var reserved = map[string]bool{
	"page": true, "name": true, "sections": true, "groups": true, "subgroups": true, "blocks": true, "fields": true, "actions": true, "links": true,
	"media": true, "media_items": true, "texts": true, "relations": true, "ai_context": true, "ai_tags": true,
}

// MaxJSON limits the bytes of a snapshot as JSON.
const MaxJSON = 1 << 20

// limits are the limits of canonicalization.
var limits = jsonio.Limits{Size: 64 << 20, Depth: 256}

// JSON returns the canonical form of a snapshot (RFC 8785). Above [MaxJSON], the error is
// [millrace.ErrTooLarge].
func (s *Snapshot) JSON() (json.RawMessage, error) {
	var root map[string]any
	if s.Page == nil {
		root = map[string]any{"fields": s.Fields}
	} else {
		root = s.Page.object()
		if len(s.Relations) > 0 {
			root["relations"] = s.Relations
		}
		if len(s.Marks) > 0 {
			root["ai_context"], root["ai_tags"] = s.Marks[len(s.Marks)-1], s.Marks
		}
	}
	data, err := json.Marshal(root)
	if err == nil {
		data, err = jsonio.Canonical(data, &limits)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w: %w", millrace.ErrInvalid, err)
	}
	if len(data) > MaxJSON {
		return nil, fmt.Errorf("snapshot: %w: %d bytes, the limit is %d", millrace.ErrTooLarge, len(data), MaxJSON)
	}
	return data, nil
}

// object returns the members of a node.
func (n *Node) object() map[string]any {
	m := make(map[string]any, len(n.Values)+4)
	for k, v := range n.Values {
		m[k] = v
	}
	if n.Level == PageLevel {
		m["page"] = n.Name
	} else {
		m["name"] = n.Name
	}
	for _, in := range n.Children {
		array := levels[in.Level].array
		list, _ := m[array].([]any)
		m[array] = append(list, in.object())
	}
	if len(n.Texts) > 0 {
		m["texts"] = n.Texts
	}
	if len(n.Fields) > 0 {
		m["fields"] = n.Fields
	}
	if len(n.Actions) > 0 {
		m["actions"] = n.Actions
	}
	if len(n.Links) > 0 {
		m["links"] = n.Links
	}
	if len(n.Media) > 0 {
		m["media_items"] = n.Media
		for _, e := range n.Media {
			if e.Src != "" {
				m["media"] = e.Src
				break
			}
		}
	}
	return m
}
