package snapshot

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// LintReport is the report of `millrace arc lint --json` for a page.
type LintReport struct {
	Page     string    `json:"page"`
	Findings []Finding `json:"findings"` // violations of rules
	Error    string    `json:"error,omitempty"`
	Code     string    `json:"code,omitempty"`
}

// WriteText writes the findings as text, one line each, in the format of compilers.
func (v *LintReport) WriteText(w io.Writer) {
	switch {
	case strings.Contains(v.Error, v.Page):
		fmt.Fprintln(w, v.Error)
		return
	case v.Error != "":
		fmt.Fprintf(w, "%s: %s\n", v.Page, v.Error)
		return
	case len(v.Findings) == 0:
		fmt.Fprintf(w, "%s: no findings\n", v.Page)
	}
	for _, f := range v.Findings {
		fmt.Fprint(w, v.Page)
		if f.Line > 0 {
			fmt.Fprintf(w, ":%d:%d", f.Line, f.Column)
		}
		fmt.Fprintf(w, ": %s: %s (%s)\n", f.Rule, f.Message, cmp.Or(f.Path, "the whole"))
	}
}
