package snapshot

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/jsonio"
)

// Fault is where a snapshot has not the shape of one.
type Fault struct {
	Pointer string // JSON Pointer (RFC 6901); "" = the whole
	Message string
}

// Messages of what says nothing.
const (
	emptyAction = "an action says nothing"
	isEmpty     = " is empty" // after the name
)

// maxFaults is the most faults that are reported for one snapshot.
const maxFaults = 100

// Validate says where JSON is no snapshot, in the order of its members' names.
// Members that the shape does not know are allowed, but no null.
func Validate(data []byte) []Fault {
	clean, err := jsonio.Canonical(data, &limits)
	if err != nil {
		return []Fault{{Message: "JSON " + err.Error()}}
	}
	var v any
	if err := json.Unmarshal(clean, &v); err != nil {
		return []Fault{{Message: err.Error()}}
	}
	root, ok := v.(map[string]any)
	if !ok {
		return []Fault{{Message: "a snapshot is an object, not " + typeName(v)}}
	}
	c := &shape{}
	c.required(root, "page", "")
	c.object(root, "")
	return c.faults
}

type shape struct{ faults []Fault }

func (c *shape) fault(pointer, message string) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, Fault{pointer, message})
	}
}

// arrays are the members that hold objects, and what each of these must have.
var arrays = map[string]string{
	"sections": "name", "groups": "name", "subgroups": "name", "blocks": "name", "fields": "field", "actions": "", "links": "link", "media_items": "name",
	"texts": "text", "relations": "to",
}

// object checks the members of an object that the shape knows.
func (c *shape) object(o map[string]any, at string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		v, p := o[name], at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		needs, array := arrays[name]
		switch {
		case v == nil:
			c.fault(p, "a member that is not there is left out, not null")
		case array:
			c.array(v, name, needs, p)
		case name == "ai_tags" || name == "ai_context":
			if list, ok := v.([]any); ok {
				for i, e := range list {
					c.text(e, p+"/"+strconv.Itoa(i))
				}
			} else if _, ok := v.(string); !ok || name == "ai_tags" {
				c.fault(p, "it is "+typeName(v)+", not an array of strings")
			}
		case isText(name):
			c.text(v, p)
		}
	}
}

// isText reports whether a member of that name is a string, wherever it is.
func isText(name string) bool {
	switch name {
	case "page", "name", "title", "media", "src", "alt", "href", "attr", "key", "text", "from", "to", "kind", "depends_on":
		return true
	}
	return classOf[name] != ""
}

func (c *shape) text(v any, at string) {
	if _, ok := v.(string); !ok {
		c.fault(at, "it is "+typeName(v)+", not a string")
	}
}

func (c *shape) array(v any, name, needs, at string) {
	list, ok := v.([]any)
	if !ok {
		c.fault(at, "it is "+typeName(v)+", not an array")
		return
	}
	for i, e := range list {
		p := at + "/" + strconv.Itoa(i)
		o, ok := e.(map[string]any)
		if _, short := e.(string); short && name == "fields" {
			continue // the specification's own example has the names alone (E.3.1)
		}
		if !ok {
			c.fault(p, "it is "+typeName(e)+", not an object")
			continue
		}
		if needs != "" {
			c.required(o, needs, p)
		}
		if name == "actions" && len(o) == 0 {
			c.fault(p, emptyAction)
		}
		c.object(o, p)
	}
}

// required checks that a member is a string and not empty. Another check reports
// wrong types.
func (c *shape) required(o map[string]any, name, at string) {
	switch v, ok := o[name]; {
	case !ok:
		c.fault(at, name+" is missing")
	case v == "":
		c.fault(at+"/"+name, name+isEmpty)
	}
}

// typeName names what a JSON value is, for people.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
