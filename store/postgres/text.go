package postgres

import (
	"reflect"
	"strings"
	"unicode/utf8"
)

// A text in PostgreSQL is valid UTF-8 without NUL. Texts of sources, such as an ETag, may contain
// any bytes. Each invalid byte is stored as a private code point, and so is each byte of such a
// code point in the text itself.
const (
	escapes = 0x10FF00 // the code point of byte 0
	prefix  = "\xf4\x8f"
)

func encodeText(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.Contains(s, prefix) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == 0 || r >= escapes || r == utf8.RuneError && n == 1 {
			for _, c := range []byte(s[:n]) {
				b.WriteRune(escapes + rune(c))
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func decodeText(s string) string {
	if !strings.Contains(s, prefix) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r >= escapes {
			b.WriteByte(byte(r - escapes))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// encodeAll returns the arguments of a statement with their texts encoded.
func encodeAll(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = a
		switch v := a.(type) {
		case string:
			out[i] = encodeText(v)
		case []string:
			list := make([]string, len(v))
			for j, s := range v {
				list[j] = encodeText(s)
			}
			out[i] = list
		case nil, []byte, bool, int, int64:
		default:
			if r := reflect.ValueOf(a); r.Kind() == reflect.String {
				out[i] = encodeText(r.String())
			}
		}
	}
	return out
}

// decodeAll decodes the texts in the results of a query.
func decodeAll(dest []any) {
	for _, d := range dest {
		switch v := d.(type) {
		case *string:
			*v = decodeText(*v)
		case *[]byte, *bool, *int, *int64:
		default:
			if r := reflect.ValueOf(d).Elem(); r.Kind() == reflect.String {
				r.SetString(decodeText(r.String()))
			}
		}
	}
}
