package kit

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// Kind is what a member of a JSON object should be.
type Kind struct {
	Want string
	OK   func(raw json.RawMessage) bool // raw is nil for a member that is not there
}

// TextKind returns a kind of strings.
func TextKind(want string, ok func(s string) bool) Kind {
	return Kind{want, func(raw json.RawMessage) bool {
		var s *string
		return raw != nil && json.Unmarshal(raw, &s) == nil && s != nil && ok(*s)
	}}
}

// OneOf returns the kind of some strings.
func OneOf(values ...string) Kind {
	return TextKind(strings.Join(values, " or "), func(s string) bool { return slices.Contains(values, s) })
}

// NumberKind returns a kind of numbers.
func NumberKind(want string, ok func(f float64) bool) Kind {
	return Kind{want, func(raw json.RawMessage) bool {
		f, is := Number(raw)
		return is && ok(f)
	}}
}

// Number returns a JSON number, false for anything else.
func Number(raw json.RawMessage) (float64, bool) {
	var f *float64
	if json.Unmarshal(raw, &f) != nil || f == nil {
		return 0, false
	}
	return *f, true
}

// OrNull returns the kind that null is of as well.
func (k Kind) OrNull() Kind {
	return Kind{k.Want + " or null", func(raw json.RawMessage) bool { return string(raw) == "null" || k.OK(raw) }}
}

// Optional returns the kind of what is not there or null as well.
func (k Kind) Optional() Kind {
	return Kind{k.Want + ", or nothing", func(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" || k.OK(raw) }}
}

// The kinds that several protocols have.
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
