package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// MaxDepth is how deep arrays and objects may nest in a document that [JCS]
// accepts.
const MaxDepth = 256

// SyntaxError says why, and where if that is known, a document has no
// canonical form.
type SyntaxError struct {
	Offset int64 // the byte at which the fault was seen, counted from 0; -1 if not known
	Err    error
}

// Error gives "JSON at byte 17: why".
func (e *SyntaxError) Error() string {
	if e.Offset < 0 {
		return "JSON: " + e.Err.Error()
	}
	return fmt.Sprintf("JSON at byte %d: %v", e.Offset, e.Err)
}

// ErrorCode returns the code of Err, "json-syntax" if it has none.
func (e *SyntaxError) ErrorCode() string {
	if r, ok := errors.AsType[*reason](e.Err); ok {
		return r.code
	}
	return "json-syntax"
}

// Unwrap gives the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

var (
	errBOM       = error(&reason{"json-bom", "it starts with a byte order mark"})
	errSurrogate = error(&reason{"json-surrogate", "it escapes half of a surrogate pair"})
	errDepth     = error(&reason{"json-depth", fmt.Sprintf("it nests deeper than %d levels", MaxDepth)})
)

// JCS gives the canonical form (RFC 8785) of one JSON value from a stranger.
// It refuses, with a [*SyntaxError], what has no canonical form or more than
// one reading: anything outside the grammar of RFC 8259, invalid UTF-8, a byte
// order mark, lone surrogates, duplicate names, numbers outside IEEE 754
// doubles, data after the value, and nesting over [MaxDepth]. The caller
// bounds the size.
func JCS(data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte("\uFEFF")) {
		return nil, &SyntaxError{0, errBOM}
	}
	if !utf8.Valid(data) {
		at := 0
		for r, n := utf8.DecodeRune(data); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(data[at:]) {
			at += n
		}
		return nil, &SyntaxError{int64(at), errUTF8}
	}
	if at := tooDeep(data); at >= 0 {
		return nil, &SyntaxError{int64(at), errDepth}
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, &SyntaxError{max(s.Offset-1, 0), err}
		}
		return nil, &SyntaxError{-1, err}
	}
	if at := loneSurrogate(data); at >= 0 {
		return nil, &SyntaxError{int64(at), errSurrogate}
	}
	// What is left for the library to refuse cannot be pinned to a byte.
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, &SyntaxError{-1, err}
	}
	return out, nil
}

// tooDeep gives the offset of the first bracket over MaxDepth, else -1. It
// needs no valid JSON.
func tooDeep(data []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// loneSurrogate gives the offset of the first escape of half a surrogate pair
// in valid JSON, else -1.
func loneSurrogate(data []byte) int {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		r := escapedRune(data[i:])
		if utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, escapedRune(data[i+6:])) == utf8.RuneError {
				return i
			}
			i += 6
		}
		i++
	}
	return -1
}

// escapedRune gives the code unit of the \u escape that b starts with, else -1.
func escapedRune(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		r = r<<4 | rune(unhex(c))
	}
	return r
}
