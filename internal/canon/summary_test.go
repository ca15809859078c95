package canon

import (
	"slices"
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 30)
	for _, c := range []struct{ texts, want string }{
		{"", ""},
		{"By Ada Miller|12 Mill Lane, Hamburg|5 January 2026|The mill turns.", "The mill turns."},
		{"By Ada Miller|Flour", "By Ada Miller Flour"},
		{"Author: A. Miller <a.miller@mill.example>|Write to us at mill@mill.example.|It turns.", "It turns."},
		{"Write to mill@mill.example.", ""},
		{"The mill turns.|Its \"stones\" too.|By A. M.", "The mill turns. Its \"stones\" too. By A. M."},
		{long + "|The mill turns.", strings.TrimSpace(long)},
		{"水車。|By A", "水車。"},
		{"It has an @ sign and a user@host. Really.", "It has an @ sign and a user@host. Really."},
	} {
		if got := Summary(slices.Values(strings.Split(c.texts, "|")), 3, 400); got != c.want {
			t.Errorf("%q: %q, want %q", c.texts, got, c.want)
		}
	}
}
