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
	for name, in := range map[string]string{"table": table.String(), "code": code, "prose": strings.Repeat("Some *words* and [a link](b_c).\n\n", 20_000)} {
		if string(escapeMarks([]byte(in))) != in {
			t.Errorf("the %s was changed", name)
		}
	}
}
