package markdown

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// component replaces the tag of a component and returns the length of the tag. It returns 0 if the
// text at i is not a component.
func (c *cleaner) component(s string, i int) int {
	end := tagEnd(s[i:])
	if end == 0 {
		return 0
	}
	inner := strings.TrimSuffix(strings.Trim(s[i:i+end], "<>"), "/")
	name := tagName.FindString(strings.TrimPrefix(inner, "/"))
	switch {
	case strings.HasPrefix(inner, "/"):
		c.close(name)
	case name == "TabItem" || name == "Tab":
		a := arguments(strings.TrimPrefix(inner, name))
		c.label(cmp.Or(a["label"], a["title"], a["value"]))
	case name == "Admonition":
		c.callout(name, arguments(strings.TrimPrefix(inner, name)), s, i)
	case strings.HasSuffix(s[i:i+end], "/>") && name != "":
		c.omitValue(s, i, i+end, false)
	}
	return end
}

// tagEnd returns the length of the tag at the start of a text, including quotes and braces. It
// returns 0 if the tag does not end within 5,000 bytes.
func tagEnd(s string) int {
	var quote byte
	depth := 0
	for i := 1; i < len(s) && i < 5000; i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`' && depth > 0:
			quote = c
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '>' && depth <= 0:
			return i + 1
		}
	}
	return 0
}

// balanced returns the length of the balanced braces at the start of a text, or 0 if they do not
// end within 2,000 bytes.
func balanced(s string) int {
	depth := 0
	for i := 0; i < len(s) && i < 2000; i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

func line(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// module returns the length of imports and exports. They end at an empty line outside of
// brackets.
func module(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '(', '[':
			depth++
		case '}', ')', ']':
			depth--
		case '\n':
			if depth <= 0 && i+1 < len(s) && s[i+1] == '\n' {
				return i
			}
		}
	}
	return len(s)
}

// args are the arguments of a tag. Arguments without a name have the keys "0", "1" and so on.
type args map[string]string

// first returns the first of some named arguments, else the first one without a name.
func (a args) first(names ...string) string {
	for _, n := range names {
		if v := a[n]; v != "" {
			return v
		}
	}
	return a["0"]
}

var argument = regexp.MustCompile("([\\w-]+)\\s*=\\s*(?:\"((?:[^\"\\\\]|\\\\.)*)\"|'([^']*)'|`([^`]*)`|\\{\\s*[\"'`]([^\"'`]*)[\"'`]\\s*\\}|([^\\s\"'{}]+))|\"((?:[^\"\\\\]|\\\\.)*)\"|'([^']*)'|`([^`]*)`|([^\\s\"']+)")

func arguments(s string) args {
	a := args{}
	position := 0
	for _, m := range argument.FindAllStringSubmatch(s, 50) {
		if m[1] != "" {
			a[m[1]] = unquoted(m[2] + m[3] + m[4] + m[5] + m[6])
			continue
		}
		a[fmt.Sprint(position)] = unquoted(m[7] + m[8] + m[9] + m[10])
		position++
	}
	return a
}

func unquoted(s string) string { return strings.ReplaceAll(s, `\"`, `"`) }
