package snapshot

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/jsonio"
)

// Fault is a value in JSON that does not have the shape of a snapshot.
type Fault struct {
	Pointer string // JSON Pointer (RFC 6901); "" means the root
	Message string
}

// Messages for empty values.
const (
	emptyAction = "an action is empty"
	isEmpty     = " is empty" // follows a name
)

// maxFaults limits the faults that are reported for one snapshot.
const maxFaults = 100

// Validate checks the shape of a snapshot in JSON. It returns the faults in the order of the
// members' names. Unknown members are allowed, but null is not.
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

// arrays maps the members that hold objects to the required member of each.
var arrays = map[string]string{
	"sections": "name", "groups": "name", "subgroups": "name", "blocks": "name", "fields": "field", "actions": "", "links": "link", "media_items": "name",
	"texts": "text", "relations": "to",
}

// object checks the known members of an object.
func (c *shape) object(o map[string]any, at string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		v, p := o[name], at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		needs, array := arrays[name]
		switch {
		case v == nil:
			c.fault(p, "null; omit an absent member")
		case array:
			c.array(v, name, needs, p)
		case name == "ai_tags" || name == "ai_context":
			if list, ok := v.([]any); ok {
				for i, e := range list {
					c.text(e, p+"/"+strconv.Itoa(i))
				}
			} else if _, ok := v.(string); !ok || name == "ai_tags" {
				c.fault(p, "got "+typeName(v)+", want an array of strings")
			}
		case isText(name):
			c.text(v, p)
		}
	}
}

// isText reports whether a member with that name must be a string everywhere.
func isText(name string) bool {
	switch name {
	case "page", "name", "title", "media", "src", "alt", "href", "attr", "key", "text", "from", "to", "kind", "depends_on":
		return true
	}
	return classOf[name] != ""
}

func (c *shape) text(v any, at string) {
	if _, ok := v.(string); !ok {
		c.fault(at, "got "+typeName(v)+", want a string")
	}
}

func (c *shape) array(v any, name, needs, at string) {
	list, ok := v.([]any)
	if !ok {
		c.fault(at, "got "+typeName(v)+", want an array")
		return
	}
	for i, e := range list {
		p := at + "/" + strconv.Itoa(i)
		o, ok := e.(map[string]any)
		if _, short := e.(string); short && name == "fields" {
			continue // an example in the specification contains only names (E.3.1)
		}
		if !ok {
			c.fault(p, "got "+typeName(e)+", want an object")
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

// required checks that a string member is present and not empty. It ignores wrong types, which
// another check reports.
func (c *shape) required(o map[string]any, name, at string) {
	switch v, ok := o[name]; {
	case !ok:
		c.fault(at, name+" is missing")
	case v == "":
		c.fault(at+"/"+name, name+isEmpty)
	}
}

// typeName returns the name of a JSON value's type for messages.
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
