package canon

import "testing"

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, visible, line string }{
		{"a\tb\nc", "a\tb\nc", "a b c"},
		{" a\r\n\x1b[31mb\x7f\u009b ", " a\n[31mb ", "a [31mb"},
		{"\u202eevil\u2066\u200f\u061c", "evil", "evil"},
		{"a\u2028b\ufeff", "ab", "a b"},
		{"h\U000e0041i", "hi", "hi"},
		{"水\xffé", "水\ufffdé", "水\ufffdé"},
		{"a \x00 b", "a  b", "a b"},
	} {
		if got := Visible(c.in); got != c.visible {
			t.Errorf("Visible(%q) = %q, want %q", c.in, got, c.visible)
		}
		if got := OneLine(c.in); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.in, got, c.line)
		}
	}
}

func TestCell(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"=1": "'=1", "＝1": "'＝1", "\u202e=1": "'=1", "'=1": "''=1", "a\n=1": "a =1", "": ""} {
		if got := CSVCell(in); got != want {
			t.Errorf("Cell(%q) = %q, want %q", in, got, want)
		}
	}
}
