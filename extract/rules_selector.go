package extract

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// selector returns a CSS selector that describes an element: its tag with its id or first class,
// preceded by those of its two nearest ancestors with a name.
func selector(n *html.Node) string {
	var parts []string
	for ; n != nil && n.Type == html.ElementNode && len(parts) < 3; n = n.Parent {
		name := ""
		id, hasID := cssName(attr(n, "id"))
		if hasID {
			name = "#" + id
		} else if class := namedClass(n); class != "" {
			name = "." + class
		} else if len(parts) > 0 && n.DataAtom != atom.Body {
			continue
		}
		tag, ok := cssName(n.Data)
		if !ok {
			tag = "*"
		}
		parts = append([]string{tag + name}, parts...)
		if hasID || n.DataAtom == atom.Body {
			break
		}
	}
	return strings.Join(parts, " ")
}

// namedClass returns the first class that needs no escapes, or else the first class.
func namedClass(n *html.Node) string {
	first, tried := "", 0
	for class := range strings.FieldsSeq(attr(n, "class")) {
		if tried++; tried > 20 {
			break
		}
		c, ok := cssName(class)
		if ok && c == class {
			return c
		}
		if ok && first == "" {
			first = c
		}
	}
	return first
}

// cssName returns a name in CSS syntax, with escapes where needed. It rejects empty names, names
// over 80 bytes, and names with spaces or control characters.
func cssName(s string) (string, bool) {
	if s == "" || len(s) > 80 {
		return "", false
	}
	if s[0] != '-' && plainName(s) {
		return s, true
	}
	var b strings.Builder
	start := true
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ' || c == 0x7F:
			return "", false
		case c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80:
			b.WriteByte(c)
		case c == '-' && (!start || strings.Trim(s, "-") != ""):
			b.WriteByte(c)
			continue // after leading dashes, the name has not started yet
		case c >= '0' && c <= '9':
			if start {
				fmt.Fprintf(&b, `\%x `, c)
			} else {
				b.WriteByte(c)
			}
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
		start = false
	}
	return b.String(), true
}
