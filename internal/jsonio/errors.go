package jsonio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace"
)

var (
	errSize  = errors.New("the input is too long")
	errValue = errors.New("a value is too long")

	errBOM   = millrace.Coded("json-bom", errors.New("the input starts with a byte order mark"))
	errCut   = millrace.Coded("json-truncated", errors.New("unexpected end of input"))
	errTwice = millrace.Coded("json-duplicate", errors.New("duplicate name"))
)

const bom = "\uFEFF"

// position is a line and an offset in the input.
type position struct {
	line    int64 // line number, from 1
	offset  int64 // number of bytes before the position
	pointer jsontext.Pointer
}

func (p position) String() string {
	s := fmt.Sprintf("line %d, byte %d", p.line, p.offset)
	if p.pointer != "" {
		if len(p.pointer) > 200 {
			p.pointer = p.pointer[:200] + "…"
		}
		s += " (" + string(p.pointer) + ")"
	}
	return s
}

// in returns the position of an offset into data, which itself starts at p.
func (p position) in(data []byte, offset int64, pointer jsontext.Pointer) position {
	offset = min(max(offset, 0), int64(len(data)))
	return position{
		line:    p.line + int64(bytes.Count(data[:offset], []byte("\n"))),
		offset:  p.offset + offset,
		pointer: p.pointer + pointer,
	}
}

func formatError(at position, code, reason string, err error) error {
	return &millrace.FormatError{Position: at.String(), Code: code, Reason: reason, Err: err}
}

func limitError(at position, code, format string, args ...any) error {
	return &overLimit{at.String(), code, fmt.Sprintf(format, args...)}
}

// overLimit is an error for an exceeded limit: ErrTooLarge.
type overLimit struct{ at, code, reason string }

func (e *overLimit) Error() string {
	return fmt.Sprintf("JSON at %s: %s: %v", e.at, e.reason, millrace.ErrTooLarge)
}
func (e *overLimit) ErrorCode() string { return e.code }
func (e *overLimit) Unwrap() error     { return millrace.ErrTooLarge }

// decodeError converts an error of json.Unmarshal over data, which starts at base, to an error
// of this package.
func decodeError(base position, data []byte, err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return formatError(base.in(data, e.ByteOffset, e.JSONPointer), "", "", syntaxCause(e, data))
	}
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		reason := "the value has the wrong type"
		if e.GoType != nil && e.JSONKind != 0 {
			reason = fmt.Sprintf("want %s, got %s", kindOf(e.GoType), kindNames[e.JSONKind])
		}
		return formatError(base.in(data, e.ByteOffset, e.JSONPointer), "json-type", reason, e.Err)
	}
	return formatError(base, "json-syntax", "", err)
}

// syntaxCause returns the cause of a syntax error, with a clearer text for three causes that the
// decoder describes badly.
func syntaxCause(e *jsontext.SyntacticError, head []byte) error {
	switch {
	case e.ByteOffset == 0 && len(head) > 0 && strings.HasPrefix(bom, string(head[:min(len(head), len(bom))])):
		return errBOM
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return errCut
	case errors.Is(e.Err, jsontext.ErrDuplicateName):
		return errTwice
	}
	return millrace.Coded("json-syntax", e.Err)
}

var kindNames = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// kindOf returns the kind of JSON value for a Go type.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case t.PkgPath() == "time" && t.Name() == "Time":
		return "a time"
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.String:
		return "a string"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "a whole number"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.Slice || k == reflect.Array:
		return "an array"
	case k == reflect.Map || k == reflect.Struct:
		return "an object"
	}
	return t.String()
}

// Pointer returns the JSON Pointer of the value that contains a byte of data, which is
// valid JSON up to there.
func Pointer(data []byte, at int) string {
	data = bytes.TrimRight(data[:min(max(at, 0), len(data))], " \t\r\n")
	if n := len(data); n > 0 && strings.IndexByte("[:,", data[n-1]) >= 0 {
		data = append(data[:n:n], '0') // the value that starts there
	}
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		_, err := d.ReadToken()
		if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && len(d.UnreadBuffer()) > 0 {
			return string(e.JSONPointer)
		}
		if err != nil {
			return string(d.StackPointer())
		}
	}
}
