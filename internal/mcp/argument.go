package mcp

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"
)

// argument describes an argument of a tool.
type argument struct {
	name        string
	integer     bool // false = a string
	least, most int  // limits of the value of an integer, or of the number of characters of a string
	usual       int  // default value, or 0
	about       string
}

// required reports whether the argument is required: a string that must not be empty.
func (a argument) required() bool { return !a.integer && a.least > 0 }

// schema returns the JSON Schema of a tool's arguments.
func schema(args []argument) json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for _, a := range args {
		p := map[string]any{"type": "string", "maxLength": a.most, "description": a.about}
		if a.integer {
			p = map[string]any{"type": "integer", "minimum": a.least, "maximum": a.most, "description": a.about}
		}
		if a.usual != 0 {
			p["default"] = a.usual
		}
		if a.required() {
			p["minLength"], required = a.least, append(required, a.name)
		}
		properties[a.name] = p
	}
	b, err := json.Marshal(map[string]any{"type": "object", "additionalProperties": false, "properties": properties, "required": required})
	if err != nil {
		panic("mcp: encode schema: " + err.Error())
	}
	return b
}

// arguments checks the arguments of a call. It returns them with default values and without null
// members, because clients send null for absent arguments. An error names the argument and says
// what is wrong with its value.
func arguments(args []argument, raw json.RawMessage) (json.RawMessage, error) {
	in := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&in); len(raw) > 0 && err != nil {
		return nil, advise("bad-argument", "arguments: want an object, got %s", short(string(raw)))
	}
	out := map[string]any{}
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.name
		v := in[a.name]
		delete(in, a.name)
		switch {
		case v != nil:
			var err error
			if out[a.name], err = a.check(v); err != nil {
				return nil, err
			}
		case a.required():
			return nil, advise("bad-argument", "argument %s: missing", a.name)
		case a.usual != 0:
			out[a.name] = a.usual
		}
	}
	for name := range in {
		return nil, advise("bad-argument", "argument %s: unknown; want %s", short(name), strings.Join(names, ", "))
	}
	return json.Marshal(out)
}

// check returns v as a value of the argument. If v is invalid, it returns an error.
func (a argument) check(v any) (any, error) {
	if text, ok := v.(string); ok && !a.integer {
		switch n := utf8.RuneCountInString(text); {
		case n > a.most:
			return nil, advise("bad-argument", "argument %s: %d characters, the maximum is %d", a.name, n, a.most)
		case n < a.least:
			return nil, advise("bad-argument", "argument %s: %d characters, the minimum is %d", a.name, n, a.least)
		}
		return text, nil
	}
	number, ok := v.(json.Number)
	n, _ := number.Float64() // infinite if out of range
	switch {
	case !ok && a.integer || !a.integer || n != math.Trunc(n):
		b, _ := json.Marshal(v)
		return nil, advise("bad-argument", "argument %s: want %s, got %s", a.name, map[bool]string{true: "an integer", false: "a string"}[a.integer], short(string(b)))
	case n > float64(a.most):
		return nil, advise("bad-argument", "argument %s: %s, the maximum is %d", a.name, short(number.String()), a.most)
	case n < float64(a.least):
		return nil, advise("bad-argument", "argument %s: %s, the minimum is %d", a.name, short(number.String()), a.least)
	}
	return int(n), nil
}
