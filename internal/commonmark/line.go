package commonmark

import (
	"bytes"
	"html"
	"strings"
	"unicode"

	"github.com/millrace/millrace"
)

// textLine builds the text of one block with its spans. It collapses white space,
// except in code.
type textLine struct {
	buf    []byte
	spans  []millrace.Span
	open   []int // spans that are open, outermost first
	space  bool  // a space precedes the next character
	breaks bool  // a line break precedes the next character
}

func (t *textLine) empty() bool { return len(t.buf) == 0 }

// lead writes the pending space or line break.
func (t *textLine) lead() {
	if len(t.buf) > 0 {
		if t.breaks {
			t.buf = append(t.buf, '\n')
		} else if t.space && t.buf[len(t.buf)-1] != '\n' {
			t.buf = append(t.buf, ' ')
		}
	}
	t.space, t.breaks = false, false
	for i := len(t.open) - 1; i >= 0 && t.spans[t.open[i]].Start < 0; i-- {
		t.spans[t.open[i]].Start = len(t.buf)
	}
}

// text adds text with collapsed white space.
func (t *textLine) text(s string) {
	for s != "" {
		i := strings.IndexAny(s, " \t\n\r\f")
		switch {
		case i == 0:
			t.space = true
			s = s[1:]
			continue
		case i < 0:
			i = len(s)
		}
		if word := visible(s[:i]); word != "" {
			t.lead()
			t.buf = append(t.buf, word...)
		}
		s = s[i:]
	}
}

// visible removes invisible characters: soft hyphens, byte order marks and control
// characters.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\u00AD' || r == '\uFEFF' || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// exact adds text unchanged.
func (t *textLine) exact(s string) {
	if s != "" {
		t.lead()
		t.buf = append(t.buf, s...)
	}
}

// start opens a span, and reports whether it did: it does not open a span inside one of the same
// type. end closes the innermost span.
func (t *textLine) start(kind millrace.SpanType, url string) bool {
	for _, i := range t.open {
		if t.spans[i].Type == kind {
			return false
		}
	}
	t.open = append(t.open, len(t.spans))
	t.spans = append(t.spans, millrace.Span{Type: kind, Start: -1, URL: url})
	return true
}

func (t *textLine) end() {
	i := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	t.spans[i].End = len(t.buf)
}

// take returns the text and the spans, and resets the line.
func (t *textLine) take() (string, []millrace.Span) {
	for len(t.open) > 0 {
		t.end()
	}
	trimmed := bytes.TrimRightFunc(t.buf, isBlank)
	end := len(trimmed)
	begin := end - len(bytes.TrimLeftFunc(trimmed, isBlank))
	text := string(t.buf[begin:end])
	var spans []millrace.Span
	for _, s := range t.spans {
		if s.Start < 0 {
			continue // an empty span
		}
		if s.Start, s.End = max(s.Start-begin, 0), min(s.End, end)-begin; s.Start < s.End {
			spans = append(spans, s)
		}
	}
	*t = textLine{buf: t.buf[:0], spans: t.spans[:0]}
	return text, spans
}

// isBlank reports whether a character is invisible at the ends of a text.
func isBlank(r rune) bool { return r == '\u200B' || unicode.IsSpace(r) }

// unescaped returns Markdown text without its escapes: backslashes before punctuation,
// and character references.
func unescaped(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 && bytes.IndexByte(s, '&') < 0 {
		return string(s)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) && isSign(s[i+1]) {
			i++
			b.WriteByte(s[i])
			continue
		}
		if c == '&' {
			if end := bytes.IndexByte(s[i:min(len(s), i+34)], ';'); end > 1 {
				ref := string(s[i : i+end+1])
				if u := html.UnescapeString(ref); u != ref {
					b.WriteString(strings.ReplaceAll(u, "\x00", "\uFFFD"))
					i += end
					continue
				}
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

func isSign(c byte) bool {
	return c > ' ' && c < 0x7F && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
}
