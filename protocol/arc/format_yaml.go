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

// appendYAMLEntry appends one element of pages to a list in YAML: entry is an
// object as [entry.append] writes it.
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

// endOfValue gives the length of the compact JSON value that b starts with.
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

// appendFlow appends compact JSON in the flow style of YAML 1.2. Strings stay
// in double quotes, so that none of them is taken for something else; what YAML
// does not let stand is escaped, and every name and element has a space
// after it.
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
		if c == 'e' && !quoted && json[i-2] >= '0' && json[i-2] <= '9' && wholeNumber(json[:i-1]) {
			dst = append(dst, ".0"...) // else YAML 1.1 takes it for a string
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

// wholeNumber reports whether JSON ends in a number without a fraction.
func wholeNumber(json []byte) bool {
	i := len(json)
	for i > 0 && json[i-1] >= '0' && json[i-1] <= '9' {
		i--
	}
	return i == 0 || json[i-1] != '.'
}

// printable reports whether a character from U+007F on may stand in YAML as it
// is (1.2, section 5.1), and ends no line in YAML 1.1 either.
func printable(r rune) bool {
	return r >= 0xa0 && r != 0x2028 && r != 0x2029 && r != 0xfeff && r != 0xfffe && r != 0xffff
}
