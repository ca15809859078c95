package snapshot

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Prefix is the prefix of all attribute names.
const Prefix = "data-ai-"

// Class groups attributes by their purpose.
type Class string

// The classes of attributes.
const (
	Structural Class = "structural"
	Content    Class = "content"
	Meta       Class = "meta"
	Relational Class = "relational"
	Contextual Class = "contextual"
	Dynamic    Class = "dynamic"
	Roles      Class = "role"
)

// classes lists the attribute names without the prefix, in the order of the specification.
var classes = []struct {
	class Class
	names []string
}{
	{Structural, []string{"page", "section", "group", "subgroup", "block"}},
	{Content, []string{"heading", "summary", "content", "field", "label", "media"}},
	{Meta, []string{"type", "status", "context", "category", "visibility"}},
	{Relational, []string{"link", "ref", "depends", "rel", "source"}},
	{Contextual, []string{"intent", "purpose", "scope", "mode", "behavior"}},
	{Dynamic, []string{"event", "trigger", "state", "action", "transition"}},
	{Roles, []string{"role"}},
}

// classOf maps attribute names without the prefix to their class.
var classOf = func() map[string]Class {
	m := map[string]Class{}
	for _, c := range classes {
		for _, n := range c.names {
			m[n] = c.class
		}
	}
	return m
}()

// attributes are the attributes of one element by name without the prefix.
type attributes map[string]string

// attributesOf returns the attributes of an element, or nil if it has none. If an attribute
// occurs twice, it uses the first one, as browsers do. Values are on one line.
func attributesOf(n *html.Node) attributes {
	var found attributes
	for i := range n.Attr {
		name, ok := strings.CutPrefix(n.Attr[i].Key, Prefix)
		if !ok || n.Attr[i].Namespace != "" || classOf[name] == "" {
			continue
		}
		if found == nil {
			found = attributes{}
		}
		if _, twice := found[name]; !twice {
			found[name] = fold(n.Attr[i].Val)
		}
	}
	return found
}

// has reports whether one of the named attributes is present.
func (a attributes) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { _, ok := a[n]; return ok })
}

// marks returns the restrictions in the context attribute: "personal", "sensitive", or both.
func (a attributes) marks() (list []string) {
	for _, word := range words(a["context"]) {
		if word = strings.ToLower(word); word == "sensitive" || word == "personal" {
			list = append(list, word)
		}
	}
	return list
}

// closed reports whether the text of an element must not be published.
func (a attributes) closed() bool {
	return slices.Contains(a.marks(), "sensitive") || slices.ContainsFunc(words(a["visibility"]), func(w string) bool { return strings.EqualFold(w, "hidden") })
}

// words splits a value that may have several words.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' || r == '|' || r == ' ' })
}

// fold joins a text to one line.
func fold(s string) string { return strings.Join(strings.Fields(s), " ") }

// attr returns an attribute's value by its full name, or "" if it is absent.
func attr(n *html.Node, key string) string {
	v, _ := lookup(n, key)
	return v
}

func lookup(n *html.Node, key string) (string, bool) {
	for i := range n.Attr {
		if n.Attr[i].Key == key && n.Attr[i].Namespace == "" {
			return n.Attr[i].Val, true
		}
	}
	return "", false
}
