package millrace

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// inline returns one block's text with its spans as Markdown.
func inline(text string, spans []Span) string {
	m := marker{text: text}
	m.write(spans, 0, len(text), 0)
	// No line may start as another block would, or as indented code.
	lines := m.lines()
	for i := range lines {
		lines[i] = escapeStart(lines[i])
	}
	return joinBreaks(lines)
}

// inlineCell returns the text of a table's cell: what ends a cell is escaped
// even in code, and no block can start.
func inlineCell(text string, spans []Span) string {
	m := marker{text: text, cell: true}
	m.write(spans, 0, len(text), 0)
	return joinBreaks(m.lines())
}

// marker writes one text with its marks.
type marker struct {
	strings.Builder
	text   string
	cell   bool
	prev   rune // what stands before all of it; 0 = nothing
	inside bool // asterisks are open around it

	markEnd, codeEnd int // where the last asterisks and the last ticks ended
}

// lines returns what was written without white space at the ends of lines.
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

// joinBreaks joins lines. Breaks at the ends break nothing, and the last
// backslash would escape what comes after the text.
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

// write writes text[pos:end] with its spans. after is what follows, 0 for
// nothing.
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
			m.WriteString("$" + m.pipes(code) + "$") // GitHub's form in which TeX stays as it is
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
		// Marks that start or end together make one run, so what is around
		// this one is around those inside.
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

// tagged marks a part as HTML does.
func (m *marker) tagged(tag string, inner []Span, from, to int) {
	m.WriteString("<" + tag + ">")
	m.write(inner, from, to, '<')
	m.WriteString("</" + tag + ">")
}

// before returns what stands before the next character, 0 for nothing.
func (m *marker) before() rune {
	if m.Len() == 0 {
		return m.prev
	}
	r, _ := utf8.DecodeLastRuneInString(m.String())
	return r
}

// flanks reports whether asterisks around a part are read as marks: beside
// punctuation inside there must be no letter outside, which is common where no
// spaces part the words, no other mark may end right before, and inside of
// others the first must not look like their last (CommonMark 6.2).
func (m *marker) flanks(part string, after rune) bool {
	if m.markEnd > 0 && m.markEnd == m.Len() {
		return false
	}
	part = strings.Trim(part, "*") // marks inside that make one run with it
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

// isSign reports whether a character may count as punctuation.
func isSign(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// pipes escapes what would end a cell.
func (m *marker) pipes(s string) string {
	if m.cell {
		return strings.ReplaceAll(s, "|", `\|`)
	}
	return s
}

// code writes code inside a line. Right after other code, its ticks would be
// taken for that one's.
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

// codeSpan returns code inside a line, "" for nothing but space.
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

// escape writes text[from:to] so that Markdown reads it as text. A line end
// becomes a hard break.
func (m *marker) escape(from, to int) {
	for i := from; i < to; i++ {
		switch c := m.text[i]; c {
		case '\\':
			if i+1 < len(m.text) && m.text[i+1] == '\n' {
				m.WriteString("&#92;") // with the break's own they would be three, which not all readers count
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
		case '!': // before a link it would make an image of it
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

// escapeStart escapes what would open another block at the start of a line.
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
