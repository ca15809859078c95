package kit

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// Kind is the required type of a member of a JSON object.
type Kind struct {
	Want string
	OK   func(raw json.RawMessage) bool // raw is nil if the member is absent
}

// TextKind returns the kind of strings that ok accepts.
func TextKind(want string, ok func(s string) bool) Kind {
	return Kind{want, func(raw json.RawMessage) bool {
		var s *string
		return raw != nil && json.Unmarshal(raw, &s) == nil && s != nil && ok(*s)
	}}
}

// OneOf returns the kind of the given strings.
func OneOf(values ...string) Kind {
	return TextKind(strings.Join(values, " or "), func(s string) bool { return slices.Contains(values, s) })
}

// NumberKind returns the kind of numbers that ok accepts.
func NumberKind(want string, ok func(f float64) bool) Kind {
	return Kind{want, func(raw json.RawMessage) bool {
		f, is := Number(raw)
		return is && ok(f)
	}}
}

// Number returns the value of a JSON number, or false for anything else.
func Number(raw json.RawMessage) (float64, bool) {
	var f *float64
	if json.Unmarshal(raw, &f) != nil || f == nil {
		return 0, false
	}
	return *f, true
}

// OrNull returns the kind that also allows null.
func (k Kind) OrNull() Kind {
	return Kind{k.Want + " or null", func(raw json.RawMessage) bool { return string(raw) == "null" || k.OK(raw) }}
}

// Optional returns the kind that also allows null and an absent member.
func (k Kind) Optional() Kind {
	return Kind{k.Want + ", or absent", func(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" || k.OK(raw) }}
}

// Kinds that several protocols use.
var (
	IsText   = TextKind("a string", func(string) bool { return true })
	IsNumber = NumberKind("a whole number", func(f float64) bool { return f >= 0 && f == math.Trunc(f) })
	IsBool   = Kind{"true or false", func(raw json.RawMessage) bool { return string(raw) == "true" || string(raw) == "false" }}
	IsTexts  = Kind{"an array of strings", func(raw json.RawMessage) bool {
		var list []*string
		return json.Unmarshal(raw, &list) == nil && list != nil && !slices.Contains(list, nil)
	}}
	IsObject = Kind{"an object", func(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }}
)
