package extract

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// inline builds the text of one block with its spans. It collapses white space like HTML. Spans are
// in the order that millrace.Block requires: a span is added when it is opened, and its Start is
// set at its first character.
type inline struct {
	buf    []byte
	spans  []millrace.Span
	open   []int // indexes of the open spans, outermost first; their Start is -1 before the first character
	space  bool  // a space is pending before the next character
	breaks int   // pending line breaks
	pre    bool  // white space is preserved
}

func (in *inline) empty() bool { return len(in.buf) == 0 }

// fork returns an inline for a nested text, with the same open spans. It uses the buffer after this
// inline's text, which must not grow until the nested text is complete.
func (in *inline) fork() inline {
	f := inline{buf: in.buf[len(in.buf):], spans: in.spans[len(in.spans):], open: in.open[len(in.open):]}
	for i, at := range in.open {
		f.spans = append(f.spans, millrace.Span{Type: in.spans[at].Type, Start: -1, URL: in.spans[at].URL})
		f.open = append(f.open, i)
	}
	return f
}

// lead writes pending white space before the next character, and sets the Start of open spans.
func (in *inline) lead() {
	if len(in.buf) > 0 {
		if in.breaks > 0 {
			in.buf = append(in.buf, '\n')
		} else if in.space && in.buf[len(in.buf)-1] != '\n' {
			in.buf = append(in.buf, ' ')
		}
	}
	in.space, in.breaks = false, 0
	for i := len(in.open) - 1; i >= 0 && in.spans[in.open[i]].Start < 0; i-- {
		in.spans[in.open[i]].Start = len(in.buf)
	}
}

// text adds text with its white space collapsed.
func (in *inline) text(s string) {
	if in.pre {
		if s != "" {
			in.lead()
			in.buf = append(in.buf, s...)
		}
		return
	}
	for len(s) > 0 {
		if isSpace(s[0]) {
			in.space = true
			i := 1
			for i < len(s) && isSpace(s[i]) {
				i++
			}
			s = s[i:]
			continue
		}
		// Most texts need no change: words separated by single spaces.
		i := 0
		for i < len(s) {
			c := s[i]
			if c-'!' < utf8.RuneSelf-'!' {
				i++
				continue
			}
			if c > ' ' && c != 0xC2 && c != 0xEF || c == ' ' && i+1 < len(s) && s[i+1] > ' ' ||
				c > ' ' && !isInvisible(s[i:]) {
				i++
				continue
			}
			break
		}
		if i > 0 {
			in.lead()
			in.buf = append(in.buf, s[:i]...)
			if s[i-1] == ' ' { // an invisible character follows the space
				in.buf, in.space = in.buf[:len(in.buf)-1], true
			}
			s = s[i:]
		}
		if len(s) > 0 && !isSpace(s[0]) {
			_, n := utf8.DecodeRuneInString(s)
			s = s[n:]
		}
	}
}

// isBlank reports whether r is invisible at the ends of a text.
func isBlank(r rune) bool { return r == '\u200B' || unicode.IsSpace(r) }

// isInvisible reports whether a text starts with a soft hyphen, a byte order
// mark or a control character.
func isInvisible(s string) bool {
	return s[0] < ' ' && !isSpace(s[0]) || strings.HasPrefix(s, "\u00AD") || strings.HasPrefix(s, "\uFEFF")
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// start opens a span; end closes the last opened span. If a span of this type is already open,
// start returns false and opens nothing.
func (in *inline) start(t millrace.SpanType, url string) bool {
	for _, i := range in.open {
		if in.spans[i].Type == t {
			return false
		}
	}
	in.open = append(in.open, len(in.spans))
	in.spans = append(in.spans, millrace.Span{Type: t, Start: -1, URL: url})
	return true
}

func (in *inline) end() {
	i := in.open[len(in.open)-1]
	in.open = in.open[:len(in.open)-1]
	in.spans[i].End = len(in.buf)
}

// take returns the text and the spans so far, and resets them. Open spans continue in the next
// text.
func (in *inline) take() (string, []millrace.Span) {
	trimmed := bytes.TrimRightFunc(in.buf, isBlank)
	end := len(trimmed)
	begin := end - len(bytes.TrimLeftFunc(trimmed, isBlank))
	text := string(in.buf[begin:end])
	for _, i := range in.open {
		in.spans[i].End = len(in.buf)
	}
	var spans []millrace.Span
	if text != "" && len(in.spans) > 0 {
		spans = make([]millrace.Span, 0, len(in.spans))
		for _, s := range in.spans {
			if s.Start < 0 {
				continue // a span without characters
			}
			s.Start, s.End = max(s.Start-begin, 0), min(s.End, end)-begin
			if s.Start < s.End {
				spans = append(spans, s)
			}
		}
		if len(spans) == 0 {
			spans = nil
		}
	}
	var open []millrace.Span
	if len(in.open) > 0 {
		open = make([]millrace.Span, 0, len(in.open))
		for _, i := range in.open {
			open = append(open, millrace.Span{Type: in.spans[i].Type, Start: -1, URL: in.spans[i].URL})
		}
	}
	in.spans = append(in.spans[:0], open...)
	for i := range in.open {
		in.open[i] = i
	}
	in.buf, in.space, in.breaks = in.buf[:0], false, 0
	return text, spans
}
