package export

import (
	"fmt"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/policy"
)

// appendMarkdown appends a page as Markdown: front matter in YAML, then its
// content. Absent fields are omitted.
func appendMarkdown(b []byte, base string, p *millrace.Page, m *policy.Merged) []byte {
	b = append(b, "---\n"...)
	for _, f := range [][2]string{
		{"title", p.Title},
		{"url", p.URL},
		{"site", base},
		{"description", p.Description},
		{"summary", p.Summary},
		{"author", p.Author},
	} {
		b = appendField(b, f[0], f[1])
	}
	b = appendDate(b, "published", p.Published)
	b = appendDate(b, "modified", p.Modified)
	b = appendField(b, "language", p.Language)
	b = appendField(b, "section", p.Section)
	b = appendList(b, "tags", p.Tags)
	b = appendField(b, "kind", string(p.Kind))
	b = appendField(b, "revision", p.Version)
	if p.Unconfirmed {
		b = append(b, "unconfirmed: true\n"...)
	}
	b = appendTerms(b, m)
	b = append(b, "---\n"...)
	if text := canon.Visible(p.Markdown()); text != "" {
		b = append(b, '\n')
		b = append(b, text...)
		if text[len(text)-1] != '\n' {
			b = append(b, '\n')
		}
	}
	return b
}

// appendTerms appends the terms of use.
func appendTerms(b []byte, m *policy.Merged) []byte {
	b = appendField(b, "license", m.Terms)
	for _, r := range []struct {
		name string
		yes  bool
	}{
		{"attribution", m.Requirements.Attribution},
		{"link_back", m.Requirements.LinkBack},
		{"notice", m.Requirements.Notice},
	} {
		if r.yes {
			b = append(b, r.name+": true\n"...)
		}
	}
	if len(m.Purposes) > 0 {
		b = append(b, "purposes:\n"...)
		for _, p := range purposes {
			if yes, ok := m.Purposes[p]; ok {
				b = fmt.Appendf(b, "  %s: %t\n", p, yes)
			}
		}
	}
	if m.Retention > 0 {
		b = append(b, "retention_seconds: "...)
		b = strconv.AppendInt(b, int64(m.Retention/time.Second), 10)
		b = append(b, '\n')
	}
	b = appendField(b, "access", m.Access)
	b = appendField(b, "contact", m.Contact)
	b = appendField(b, "payment", m.Payment)
	return appendList(b, "terms", m.Documents)
}

func appendField(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	b = append(b, name+": "...)
	b = appendQuoted(b, s)
	return append(b, '\n')
}

func appendDate(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return append(b, name+": "+date(t)+"\n"...)
}

func appendList(b []byte, name string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, name+": ["...)
	for i, s := range list {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendQuoted(b, s)
	}
	return append(b, "]\n"...)
}

// appendQuoted appends a text as a double-quoted scalar on one line (YAML 1.2.2, section
// 7.3.1). The text cannot end the scalar, the line or the front matter.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range valid(s) {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f || r == 0xfeff || r > 0x7f && r <= 0xffff && !unicode.IsGraphic(r):
			b = fmt.Appendf(b, `\u%04X`, r)
		case r > 0xffff && !unicode.IsGraphic(r):
			b = fmt.Appendf(b, `\U%08X`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
