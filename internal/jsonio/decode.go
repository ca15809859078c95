package jsonio

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw contains the unchanged bytes of one JSON value. As the type of a struct field, it keeps a
// member of unknown structure.
type Raw = jsontext.Value

// Decode reads all of r, which must contain one JSON value, into v, a pointer. After an error
// v may be partly filled.
func Decode(r io.Reader, limits *Limits, v any) error {
	l := limits.resolve(16 << 20)
	src := newSource(r, l.Size)
	data, err := io.ReadAll(src)
	if errors.Is(err, errSize) {
		return limitError(position{line: src.lines + 1, offset: src.n}, "json-size", "the input is longer than %d bytes", l.Size)
	}
	if err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return unmarshal(position{line: 1}, data, l.Depth, v)
}

// Unmarshal reads data, one JSON value, into v like [Decode].
func Unmarshal(data []byte, limits *Limits, v any) error {
	l := limits.resolve(16 << 20)
	if int64(len(data)) > l.Size {
		return limitError(position{line: 1}, "json-size", "the input is longer than %d bytes", l.Size)
	}
	return unmarshal(position{line: 1}, data, l.Depth, v)
}

func unmarshal(base position, data []byte, depth int, v any) error {
	if at := tooDeep(data, depth); at >= 0 {
		return limitError(base.in(data, int64(at), ""), "json-depth", "nesting is deeper than %d levels", depth)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return decodeError(base, data, err)
	}
	return nil
}

// validated holds the options for values that the decoder has already validated.
var validated = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Canonical returns the canonical form (RFC 8785) of one JSON value. It rejects
// ambiguous values: everything that [Unmarshal] rejects, and numbers outside IEEE 754
// doubles. The limits are those of Unmarshal.
func Canonical(data []byte, limits *Limits) (Raw, error) {
	var v Raw
	if err := Unmarshal(data, limits, &v); err != nil {
		return nil, err
	}
	if err := v.Canonicalize(); err != nil {
		return nil, decodeError(position{line: 1}, data, err)
	}
	// Instead of a number that is too large, the decoder returns the largest double.
	if bytes.Contains(v, []byte("1.7976931348623157e+308")) {
		var numbers any
		if err := stdjson.Unmarshal(data, &numbers); err != nil {
			return nil, formatError(position{line: 1}, "json-syntax", "", err)
		}
	}
	return v, nil
}
