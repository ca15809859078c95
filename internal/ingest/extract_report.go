package ingest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// ExtractReport is the report of `millrace extract --json`.
type ExtractReport struct {
	*millrace.Page
	Text      string            `json:"text"`                // plain text of the page
	Sources   map[string]string `json:"sources"`             // where each field was found
	Canonical string            `json:"canonical,omitempty"` // canonical URL that the page names
	Reason    string            `json:"reason,omitempty"`    // why the page has no content
	Code      string            `json:"code,omitempty"`      // code of the reason
	Explained *Explained        `json:"explained,omitempty"` // decisions, with --explain
}

// Explained contains the decisions of an extraction.
type Explained struct {
	Root           string   `json:"root"`                      // selector of the content
	Kept           []Part   `json:"kept"`                      // parts that only a rule kept
	Dropped        []Part   `json:"dropped"`                   // parts that were dropped
	UnmatchedRules []string `json:"unmatched_rules,omitempty"` // rules that match nothing, such as "drop .promo"
}

// Part is a subtree that was kept or dropped.
type Part struct {
	Selector string `json:"selector"` // CSS selector of the part
	Reason   string `json:"reason"`   // why it was kept or dropped
	Words    int    `json:"words"`    // number of words
}

// ReportOf describes the result of an extraction. explain adds its decisions.
func ReportOf(res *extract.Result, explain bool) *ExtractReport {
	r := &ExtractReport{Page: res.Page, Text: res.Page.Text(), Sources: res.Sources, Canonical: res.Canonical}
	if res.Reason != nil {
		r.Reason, r.Code = res.Reason.Error(), millrace.ErrorCode(res.Reason)
	}
	if explain {
		r.Explained = &Explained{Root: res.Root, Kept: []Part{}, Dropped: []Part{}, UnmatchedRules: res.UnmatchedRules}
		for _, k := range res.Kept {
			r.Explained.Kept = append(r.Explained.Kept, Part(k))
		}
		for _, d := range res.Dropped {
			r.Explained.Dropped = append(r.Explained.Dropped, Part(d))
		}
	}
	return r
}

// WriteText writes the report as text. If only is set, it writes only the text of the
// page.
func (r *ExtractReport) WriteText(w *bytes.Buffer, only bool) {
	if only {
		w.WriteString(r.Text)
	} else {
		r.fields(w)
		w.WriteByte('\n')
		w.WriteString(r.Markdown())
	}
	if b := w.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
		w.WriteByte('\n')
	}
	if r.Reason != "" {
		fmt.Fprintf(w, "no content: %s\n", r.Reason)
	}
	if e := r.Explained; e != nil {
		fmt.Fprintf(w, "\nkept     %s\n", e.Root)
		for _, k := range e.Kept {
			fmt.Fprintf(w, "kept     %s: %s, %d words\n", k.Selector, k.Reason, k.Words)
		}
		for _, d := range e.Dropped {
			fmt.Fprintf(w, "dropped  %s: %s, %d words\n", d.Selector, d.Reason, d.Words)
		}
		for _, rule := range e.UnmatchedRules {
			fmt.Fprintf(w, "idle     %s: matches nothing on this page\n", rule)
		}
	}
}

// fields writes the fields of the page with their sources.
func (r *ExtractReport) fields(w *bytes.Buffer) {
	date := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339)
	}
	for _, f := range [][2]string{
		{"url", r.URL},
		{"canonical", r.Canonical},
		{"title", r.Title},
		{"description", r.Description},
		{"author", r.Author},
		{"published", date(r.Published)},
		{"modified", date(r.Modified)},
		{"language", r.Language},
		{"section", r.Section},
		{"tags", strings.Join(r.Tags, ", ")},
		{"kind", string(r.Kind)},
	} {
		if f[1] == "" || f[0] == "canonical" && f[1] == r.URL || strings.HasPrefix(f[1], UnknownBase) {
			continue
		}
		fmt.Fprintf(w, "%-12s %s", f[0], f[1])
		if s := r.Sources[f[0]]; s != "" {
			fmt.Fprintf(w, "  (%s)", s)
		}
		w.WriteByte('\n')
	}
}
