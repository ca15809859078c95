package markdown

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// maxMatter is the maximum size of front matter in bytes.
const maxMatter = 64 << 10

// matter is the front matter of a file, or a configuration. Names on the first level are in lower
// case. A value is a string, a bool, nil, a []any or a map[string]any. Numbers and dates are
// unchanged strings.
type matter map[string]any

// head is the front matter of a file and the position of the text after it.
type head struct {
	matter matter
	any    bool // whether the file has front matter, which may be empty
	body   int  // offset of the text in bytes
	line   int  // number of the first line of the text, starting with 0
}

// parseHead parses the front matter at the start of a file. The caller may cut off the file after
// more than maxMatter bytes. The error is [millrace.ErrTooLarge], or a [*millrace.FormatError] with
// the line and the column.
func parseHead(data []byte) (head, error) {
	bom := 0
	if bytes.HasPrefix(data, []byte("\uFEFF")) {
		bom = 3
	}
	text := data[bom:]
	first, _, _ := bytes.Cut(text, []byte("\n"))
	first = bytes.TrimRight(first, " \t\r")
	var decode func([]byte) (matter, error)
	var inner []byte
	var end int
	switch {
	case string(first) == "---":
		inner, end = fenced(text, "---", "...")
		decode = decodeYAML
	case string(first) == "+++":
		inner, end = fenced(text, "+++")
		decode = decodeTOML
	case len(text) > 1 && text[0] == '{' && (bytes.HasPrefix(bytes.TrimLeft(text[1:], " \t\r\n"), []byte(`"`)) || bytes.HasPrefix(bytes.TrimLeft(text[1:], " \t\r\n"), []byte(`}`))):
		end = object(text)
		inner = text[:max(end, 0)]
		decode = decodeJSON
	default:
		return head{body: bom}, nil
	}
	switch {
	case end > maxMatter || end < 0 && len(text) > maxMatter && decodes(text):
		return head{}, millrace.Coded("front-matter-size", fmt.Errorf("%w: more than %d bytes of front matter", millrace.ErrTooLarge, maxMatter))
	case end < 0 && decodes(text):
		return head{}, &millrace.FormatError{Position: "1:1", Code: "front-matter-unclosed", Reason: "the front matter is not closed"}
	case end < 0:
		return head{body: bom}, nil // this is a thematic break
	}
	m, err := decode(inner)
	if err != nil {
		return head{}, err
	}
	return head{matter: m, any: true, body: bom + end, line: bytes.Count(text[:end], []byte("\n"))}, nil
}

// decodes reports whether the text after an opening delimiter without an end is front matter,
// because it contains a name with a value.
func decodes(text []byte) bool {
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	i := bytes.IndexAny(line, ":=")
	return text[0] == '{' || i > 0 && !bytes.ContainsAny(line[:i], " \t#*-")
}

// fenced returns the text between the first line and the next line that is one of ends, and the
// offset after that line. The offset is -1 if no line matches.
func fenced(text []byte, ends ...string) (inner []byte, end int) {
	start := bytes.IndexByte(text, '\n') + 1
	if start == 0 {
		return nil, -1
	}
	for at := start; at < len(text); {
		line, next := text[at:], len(text)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], at+i+1
		}
		if slices.Contains(ends, string(bytes.TrimRight(line, " \t\r"))) {
			return text[start:at], next
		}
		at = next
	}
	return nil, -1
}

// object returns the offset after the JSON object at the start of a text. It returns -1 if the
// object does not end.
func object(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// text returns the first value that is a string with text, in which it collapses white space.
func (m matter) text(names ...string) string {
	for _, n := range names {
		if s, ok := m[n].(string); ok {
			if s = strings.Join(strings.Fields(valid(s)), " "); s != "" {
				return s
			}
		}
	}
	return ""
}

func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// flag returns a boolean value, and whether it exists.
func (m matter) flag(name string) (value, ok bool) {
	switch v := m[name].(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(v) {
		case "true", "yes", "on", "1":
			return true, true
		case "false", "no", "off", "0", "never":
			return false, true
		}
	}
	return false, false
}

// is reports whether a value is true.
func (m matter) is(name string) bool {
	v, _ := m.flag(name)
	return v
}

// isNot reports whether a value is false.
func (m matter) isNot(name string) bool {
	v, ok := m.flag(name)
	return ok && !v
}

// under returns the map with a name, or nil if it is absent.
func (m matter) under(name string) matter {
	v, _ := m[name].(map[string]any)
	return lowered(v)
}

func lowered(v map[string]any) matter {
	if v == nil {
		return nil
	}
	out := make(matter, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) { // if both Title and title exist, title applies
		out[strings.ToLower(k)] = v[k]
	}
	return out
}

// list returns a value as a list of strings. It splits a string at commas, or, if spaces is set and
// the string has no comma, at spaces.
func (m matter) list(name string, spaces bool) []string {
	var out []string
	switch v := m[name].(type) {
	case string:
		if spaces && !strings.Contains(v, ",") {
			out = strings.Fields(v)
		} else {
			out = strings.Split(v, ",")
		}
	case []any:
		for _, e := range v {
			switch e := e.(type) {
			case string:
				out = append(out, e)
			case map[string]any:
				out = append(out, lowered(e).text("label", "name", "title"))
			}
		}
	}
	nonEmpty := out[:0]
	for _, s := range out {
		if s = strings.Join(strings.Fields(valid(s)), " "); s != "" {
			nonEmpty = append(nonEmpty, s)
		}
	}
	return nonEmpty
}

// date returns the first value that is a date. The date keeps its time zone.
func (m matter) date(names ...string) time.Time {
	for _, n := range names {
		if s, ok := m[n].(string); ok {
			if t, ok := parseDate(s); ok {
				return t
			}
		}
	}
	return time.Time{}
}

var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04",
	"2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05",
	"2006-01-02 15:04 -0700", "2006-01-02 15:04", "2006-01-02", "2006-1-2", "2006/01/02", "January 2, 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006",
	time.RFC1123, time.RFC1123Z,
}

func parseDate(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 || len(s) > 60 {
		return time.Time{}, false
	}
	for _, l := range layouts {
		if t, err := time.Parse(l, s); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return t, true
		}
	}
	return time.Time{}, false
}

// plain converts the values of a decoder to values of a matter.
func plain(v any) any {
	switch v := v.(type) {
	case nil, bool, string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Time:
		return v.Format(time.RFC3339)
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
		return v
	}
	return fmt.Sprint(v)
}
