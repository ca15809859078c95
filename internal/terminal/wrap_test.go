package terminal

import (
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		marks [][2]int
		want  string
	}{
		{"one two  three four", [][2]int{{4, 7}}, "one <two>|three|four"},
		{"", nil, ""},
		{" ", nil, ""},
		{"水车的维护。每天 ok", [][2]int{{3, 6}}, "水<车>的维|护。每天|ok"},
		{"a水b「车」", nil, "a水b|「车」"},
		{"abcdefghijkl m", [][2]int{{0, 12}}, "<abcdefghi>|<jkl> m"},
		{"ก็ก็ก็ก็ก็ก็ก็ก็ก็ก็", nil, "ก็ก็ก็ก็ก็ก็ก็ก็ก็|ก็"},
		{"a\x1bb c", nil, "a\x1bb c"},
	} {
		var lines []string
		for _, parts := range Wrap(c.text, c.marks, 9) {
			var line strings.Builder
			for _, p := range parts {
				if p.Strong {
					p.Text = "<" + p.Text + ">"
				}
				line.WriteString(p.Text)
			}
			lines = append(lines, line.String())
		}
		if got := strings.Join(lines, "|"); got != c.want {
			t.Errorf("%q is wrapped as %q, want %q", c.text, got, c.want)
		}
	}
}
