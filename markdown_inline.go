package millrace

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// inline returns the text of one block with its spans as Markdown.
func inline(text string, spans []Span) string {
	m := marker{text: text}
	m.write(spans, 0, len(text), 0)
	// No line may look like the start of another block or like indented code.
	lines := m.lines()
	for i := range lines {
		lines[i] = escapeStart(lines[i])
	}
	return joinBreaks(lines)
}

// inlineCell returns the text of a table cell as Markdown. It escapes "|" even in code. It does not
// escape the starts of blocks, because a cell cannot contain blocks.
func inlineCell(text string, spans []Span) string {
	m := marker{text: text, cell: true}
	m.write(spans, 0, len(text), 0)
	return joinBreaks(m.lines())
}

// marker renders one text with its spans as Markdown.
type marker struct {
	strings.Builder
	text   string
	cell   bool
	prev   rune // character before the output, or 0
	inside bool // inside emphasis written with asterisks

	markEnd, codeEnd int // offsets in the output after the last emphasis and the last inline code
}

// lines returns the lines of the output without leading and trailing white space.
func (m *marker) lines() []string {
	lines := strings.Split(m.String(), "\n")
	for i, l := range lines {
		l = strings.TrimLeft(l, " \t")
		if i == len(lines)-1 || !strings.HasSuffix(l, `\`) {
			l = strings.TrimRight(l, " \t")
		}
		lines[i] = l
	}
	return lines
}

// joinBreaks joins lines. It drops hard breaks at both ends, because a final backslash would escape
// the character after the text.
func joinBreaks(lines []string) string {
	for len(lines) > 1 && lines[0] == `\` {
		lines = lines[1:]
	}
	s := strings.Join(lines, "\n")
	for strings.HasSuffix(s, "\\\n") {
		s = strings.TrimRight(s[:len(s)-2], " \t")
	}
	return s
}

// write writes text[pos:end] with its spans. after is the character after the text, or 0.
func (m *marker) write(spans []Span, pos, end int, after rune) {
	for i := 0; i < len(spans); {
		s := spans[i]
		j := i + 1
		for j < len(spans) && spans[j].Start < s.End {
			j++
		}
		if s.Start < pos || s.End > end || s.Start >= s.End {
			i++
			continue
		}
		m.escape(pos, s.Start)
		next := after
		switch {
		case j < len(spans) && spans[j].Start == s.End:
			next = '['
		case s.End < end:
			next, _ = utf8.DecodeRuneInString(m.text[s.End:])
		}
		m.span(s, spans[i+1:j], next)
		pos, i = s.End, j
	}
	m.escape(pos, end)
}

func (m *marker) span(s Span, inner []Span, after rune) {
	content := m.text[s.Start:s.End]
	switch s.Type {
	case CodeSpan:
		m.code(content)
		return
	case LinkSpan:
		if dest, ok := destination(s.URL); ok {
			m.WriteByte('[')
			m.write(inner, s.Start, s.End, ']')
			m.WriteString("](" + m.pipes(dest) + ")")
			return
		}
	case FootnoteSpan:
		m.WriteString("[^" + footnoteLabel(content) + "]")
		return
	case MathSpan:
		if code := codeSpan(content); code != "" {
			m.WriteString("$" + m.pipes(code) + "$") // GitHub's syntax for TeX, which needs no escapes
		}
		return
	case SubscriptSpan:
		m.tagged("sub", inner, s.Start, s.End)
		return
	case SuperscriptSpan:
		m.tagged("sup", inner, s.Start, s.End)
		return
	case EmphasisSpan, StrongSpan:
		from := s.Start + len(content) - len(strings.TrimLeftFunc(content, unicode.IsSpace))
		to := s.Start + len(strings.TrimRightFunc(content, unicode.IsSpace))
		if from >= to {
			break
		}
		m.escape(s.Start, from)
		if to < s.End {
			after = ' '
		}
		mark, tag := "*", "em"
		if s.Type == StrongSpan {
			mark, tag = "**", "strong"
		}
		// Adjacent asterisks form one delimiter run. So an inner span that starts or ends where this
		// span does has the same outer character there.
		in := marker{text: m.text, cell: m.cell, prev: m.before(), inside: true}
		in.write(inner, from, to, after)
		if m.flanks(in.String(), after) {
			m.WriteString(mark + in.String() + mark)
			m.markEnd = m.Len()
		} else {
			m.tagged(tag, inner, from, to)
		}
		m.escape(to, s.End)
		return
	}
	m.write(inner, s.Start, s.End, after)
}

// tagged writes a part of the text inside an HTML element.
func (m *marker) tagged(tag string, inner []Span, from, to int) {
	m.WriteString("<" + tag + ">")
	m.write(inner, from, to, '<')
	m.WriteString("</" + tag + ">")
}

// before returns the character before the current position, or 0.
func (m *marker) before() rune {
	if m.Len() == 0 {
		return m.prev
	}
	r, _ := utf8.DecodeLastRuneInString(m.String())
	return r
}

// flanks reports whether asterisks around a part are read as emphasis (CommonMark 6.2). They are
// not if other asterisks end right before them. If the part starts or ends with punctuation, the
// character outside must be white space or punctuation. Text in languages without spaces between
// words often breaks this rule. Inside other emphasis, the opening asterisks must not be readable
// as closing ones.
func (m *marker) flanks(part string, after rune) bool {
	if m.markEnd > 0 && m.markEnd == m.Len() {
		return false
	}
	part = strings.Trim(part, "*") // inner asterisks join this delimiter run
	first, _ := utf8.DecodeRuneInString(part)
	last, _ := utf8.DecodeLastRuneInString(part)
	opens, closes := !isSign(first), !isSign(last)
	outside := func(r rune) bool {
		return r == 0 || unicode.IsSpace(r) || unicode.IsPunct(r) || r < utf8.RuneSelf && isSign(r)
	}
	before := m.before()
	if m.inside && m.Len() > 0 && before != 0 && !unicode.IsSpace(before) && (!opens || !outside(before)) {
		return false
	}
	return (opens || outside(before)) && (closes || outside(after))
}

// isSign reports whether parsers may treat a character as punctuation.
func isSign(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// pipes escapes "|" in a table cell, because it would end the cell.
func (m *marker) pipes(s string) string {
	if m.cell {
		return strings.ReplaceAll(s, "|", `\|`)
	}
	return s
}

// code writes inline code. Right after other inline code it writes an HTML element, because the
// backticks of the two would merge.
func (m *marker) code(code string) {
	s := codeSpan(code)
	if s != "" && m.codeEnd > 0 && m.codeEnd == m.Len() {
		m.WriteString("<code>")
		in := marker{text: strings.ReplaceAll(lineEnds.Replace(code), "\n", " "), cell: m.cell}
		in.escape(0, len(in.text))
		m.WriteString(in.String() + "</code>")
		return
	}
	m.WriteString(m.pipes(s))
	m.codeEnd = m.Len()
}

// codeSpan returns inline code, or "" if the code is only white space.
func codeSpan(code string) string {
	if strings.TrimSpace(code) == "" {
		return ""
	}
	code = strings.ReplaceAll(lineEnds.Replace(code), "\n", " ")
	run, longest := 0, 0
	for _, c := range []byte(code) {
		if run++; c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	pad := ""
	if strings.HasPrefix(code, "`") || strings.HasSuffix(code, "`") || strings.HasPrefix(code, " ") && strings.HasSuffix(code, " ") {
		pad = " "
	}
	ticks := strings.Repeat("`", longest+1)
	return ticks + pad + code + pad + ticks
}

// escape writes text[from:to] with escapes that make Markdown read it as plain text. A line
// end becomes a hard break.
func (m *marker) escape(from, to int) {
	for i := from; i < to; i++ {
		switch c := m.text[i]; c {
		case '\\':
			if i+1 < len(m.text) && m.text[i+1] == '\n' {
				m.WriteString("&#92;") // a "\\" before the backslash of a hard break is read differently by some parsers
				continue
			}
			m.WriteString(`\\`)
		case '`', '*', '[', ']', '<', '>', '&', '~', '$':
			m.WriteByte('\\')
			m.WriteByte(c)
		case '|':
			if m.cell {
				m.WriteByte('\\')
			}
			m.WriteByte(c)
		case '_':
			before, _ := utf8.DecodeLastRuneInString(m.text[:i])
			after, _ := utf8.DecodeRuneInString(m.text[i+1:])
			if i == from || i+1 == to || !alnum(before) || !alnum(after) {
				m.WriteByte('\\')
			}
			m.WriteByte(c)
		case '!': // "!" before a link would make it an image
			if i+1 == to {
				m.WriteByte('\\')
			}
			m.WriteByte(c)
		case '\n':
			m.WriteString("\\\n")
		case '\r', 0:
		default:
			m.WriteByte(c)
		}
	}
}

func alnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// escapeStart escapes the start of a line that would open another block.
func escapeStart(l string) string {
	if l == "" {
		return l
	}
	if strings.ContainsRune("#+-=:|", rune(l[0])) {
		return `\` + l
	}
	n := 0
	for n < len(l) && l[n] >= '0' && l[n] <= '9' {
		n++
	}
	if n > 0 && n < len(l) && (l[n] == '.' || l[n] == ')') {
		return l[:n] + `\` + l[n:]
	}
	return l
}
