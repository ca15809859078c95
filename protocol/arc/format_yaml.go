package arc

import (
	"fmt"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/canon"
)

// appendYAML appends the head as YAML, up to the value of pages.
func (h *head) appendYAML(dst []byte) []byte {
	dst = appendFlow(append(dst, "arc_sitemap_version: "...), canon.AppendString(nil, h.Version))
	for _, m := range h.members() {
		dst = append(append(append(dst, '\n'), m[0]...), ": "...)
		dst = appendFlow(dst, canon.AppendString(nil, m[1]))
	}
	return append(dst, "\npages:"...)
}

// appendYAMLEntry appends one element of pages to a list in YAML. entry is an object in the form of
// [entry.append].
func appendYAMLEntry(dst, entry []byte) []byte {
	indent := "  - "
	for rest := entry[1 : len(entry)-1]; len(rest) > 0; {
		name := endOfValue(rest)
		value := name + 1 + endOfValue(rest[name+1:])
		dst = append(append(dst, indent...), rest[1:name-1]...)
		dst = append(appendFlow(append(dst, ": "...), rest[name+1:value]), '\n')
		if rest = rest[value:]; len(rest) > 0 {
			rest = rest[1:] // the comma
		}
		indent = "    "
	}
	return dst
}

// endOfValue returns the length of the compact JSON value at the beginning of b.
func endOfValue(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case (c == ',' || c == ':') && depth == 0:
			return i
		}
	}
	return len(b)
}

// appendFlow appends compact JSON in the flow style of YAML 1.2. Strings keep their double quotes,
// so no string is parsed as another type. Characters that YAML forbids are escaped, and a space
// follows every name and element.
func appendFlow(dst, json []byte) []byte {
	quoted := false
	for i := 0; i < len(json); {
		c := json[i]
		if c >= 0x7f {
			r, n := utf8.DecodeRune(json[i:])
			if printable(r) {
				dst = append(dst, json[i:i+n]...)
			} else {
				dst = fmt.Appendf(dst, `\u%04x`, r)
			}
			i += n
			continue
		}
		i++
		if c == 'e' && !quoted && json[i-2] >= '0' && json[i-2] <= '9' && isInteger(json[:i-1]) {
			dst = append(dst, ".0"...) // otherwise, YAML 1.1 parses the number as a string
		}
		dst = append(dst, c)
		switch {
		case quoted && c == '\\':
			dst = append(dst, json[i])
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			dst = append(dst, ' ')
		}
	}
	return dst
}

// isInteger reports whether JSON ends with a number without a fraction.
func isInteger(json []byte) bool {
	i := len(json)
	for i > 0 && json[i-1] >= '0' && json[i-1] <= '9' {
		i--
	}
	return i == 0 || json[i-1] != '.'
}

// printable reports whether YAML allows a character from U+007F on unescaped (1.2, section
// 5.1), and YAML 1.1 does not treat it as a line break.
func printable(r rune) bool {
	return r >= 0xa0 && r != 0x2028 && r != 0x2029 && r != 0xfeff && r != 0xfffe && r != 0xffff
}
