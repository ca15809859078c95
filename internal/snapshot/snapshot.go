package snapshot

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

// Snapshot is what the attributes of a page say, in the shape that the ARC
// convention gives it.
type Snapshot struct {
	// Page is the root; nil = the document has no attributes, and only Fields.
	Page *Node
	// Fields are those of the forms of a document without attributes.
	Fields []Field
	// Relations are who leads to whom, in document order.
	Relations []Relation
	// Marks are "personal" and "sensitive", as far as a part is, in this order.
	Marks []string
}

// Level is how far in a container stands.
type Level int

// The levels of containers, outside in.
const (
	PageLevel Level = iota
	SectionLevel
	GroupLevel
	SubgroupLevel
	BlockLevel
)

// levels has the attributes that make containers, and the arrays these go to.
var levels = [...]struct{ attribute, array string }{
	{"page", ""}, {"section", "sections"}, {"group", "groups"}, {"subgroup", "subgroups"}, {"block", "blocks"},
}

// Node is a container with what it holds.
type Node struct {
	Level   Level
	Name    string
	Values  map[string]string // attributes by their names, and texts by their keys
	Texts   []Text            // those whose key was taken
	Fields  []Field
	Actions []Action
	Links   []Link
	Media   []Media
	Inner   []*Node // of any deeper level, in document order
}

// Text is one whose key another member has.
type Text struct {
	Attr string `json:"attr"` // heading, summary or content
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Field is something to fill in.
type Field struct {
	Field    string `json:"field"`
	Label    string `json:"label,omitempty"`
	Type     string `json:"type,omitempty"` // as data-ai-type or the input says, or "select", "textarea"
	Context  string `json:"context,omitempty"`
	Behavior string `json:"behavior,omitempty"`
}

// Action is something that can be done.
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

// Link leads somewhere.
type Link struct {
	Link  string `json:"link"`
	Title string `json:"title,omitempty"`
	Href  string `json:"href,omitempty"` // absolute
}

// Media is an image, a video or a sound.
type Media struct {
	Name string `json:"name"`
	Src  string `json:"src,omitempty"` // absolute
	Alt  string `json:"alt,omitempty"`
}

// Relation says that one part leads to another.
type Relation struct {
	From string `json:"from"` // name of the container
	To   string `json:"to"`
	Kind string `json:"kind"` // link, ref or depends
}

// reserved are the members that the shape uses for something else than text.
var reserved = map[string]bool{
	"page": true, "name": true, "sections": true, "groups": true, "subgroups": true, "blocks": true, "fields": true, "actions": true, "links": true,
	"media": true, "media_items": true, "texts": true, "relations": true, "ai_context": true, "ai_tags": true,
}

// MaxJSON is the most bytes that a snapshot has as JSON.
const MaxJSON = 1 << 20

// limits bound what is made canonical.
var limits = jsonio.Limits{Size: 64 << 20, Depth: 256}

// JSON gives the canonical form of a snapshot (RFC 8785). Beyond [MaxJSON] the
// error is [millrace.ErrTooLarge].
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

// object gives the members of a node.
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
	for _, in := range n.Inner {
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
