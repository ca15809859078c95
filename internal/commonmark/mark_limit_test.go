package commonmark

import (
	"strings"
	"testing"
)

// TestMarkLimit checks that ordinary texts are not escaped.
func TestMarkLimit(t *testing.T) {
	var table strings.Builder
	table.WriteString("| a | b | c |\n|---|---|---|\n")
	for range 2000 {
		table.WriteString("| *x* | [y](z_z) | `__w__` |\n")
	}
	code := "```\n" + strings.Repeat("a_b_c[d]\n", 50_000) + "```\n"
	list := strings.Repeat("- [Chapter](a_b.html)\n  - [Section](a_b.html#s_1)\n    - [Part](a_b.html#s_2)\n      - [Point](a_b.html#s_3)\n", 3000)
	for name, in := range map[string]string{"list": list, "table": table.String(), "code": code, "prose": strings.Repeat("Some *words* and [a link](b_c).\n\n", 20_000)} {
		if string(escapeMarks([]byte(in))) != in {
			t.Errorf("the %s was changed", name)
		}
	}
}

// The items of a list are separate paragraphs. A line that only looks like an item is not.
func TestListItems(t *testing.T) {
	for in, want := range map[string]int{
		"- a\n- b\n* c\n":                     3,
		"- a\n  - b\n    - c\n      - d\n- e": 5,
		"text\n- a\n   + b":                   2,
		"text\n    - a\n    - b":              0,
		"- a\n> text\n    - b":                1,
		"- a\ntext\n    - b":                  1,
		"- - -\n  text\n    - b":              0,
		"- a\n  </pre>\n  text\n    - b":      1,
		"- a\n+ + +\n- b":                     2,
		"-a\n1. b\n- ":                        0,
		"-      a\n  - b\n       - c":         3,
	} {
		var r paragraphScanner
		got := 0
		eachLine([]byte(in), func(line []byte, code bool) {
			if r.starts(line, code) {
				got++
			}
			r.ends(line, code)
		})
		if got != want {
			t.Errorf("%q: %d items, want %d", in, got, want)
		}
	}
}
