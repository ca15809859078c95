package millrace

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Markdown gives blocks as CommonMark with GitHub's tables. Text never turns
// into markup: what Markdown or HTML would read as such is escaped, and links
// that are neither http, https nor mailto become their text. The same blocks
// always give the same bytes, ending in one line end unless there are none.
func Markdown(blocks []Block) string {
	s := blocksMarkdown(blocks)
	if s == "" {
		return ""
	}
	return s + "\n"
}

func blocksMarkdown(blocks []Block) string {
	parts := make([]string, 0, len(blocks))
	for i, b := range blocks {
		s := strings.TrimRight(blockMarkdown(b), "\n")
		if s == "" {
			continue
		}
		if i > 0 && len(parts) > 0 && b.Type == ListBlock && blocks[i-1].Type == ListBlock {
			parts = append(parts, "<!-- -->") // else two lists would read as one
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "\n\n")
}

func blockMarkdown(b Block) string {
	switch b.Type {
	case HeadingBlock:
		h := strings.ReplaceAll(inline(b.Text, b.Spans), "\\\n", " ")
		if h == "" {
			return ""
		}
		// A "#" at the end closes a heading only after a space.
		if body := strings.TrimRight(h, "#"); body != h && strings.HasSuffix(body, " ") {
			h = h[:len(h)-1] + `\#`
		}
		return strings.Repeat("#", min(max(b.Level, 1), 6)) + " " + h
	case ListBlock:
		return listMarkdown(b)
	case DefinitionsBlock:
		var parts []string
		for _, it := range b.Items {
			if it.Term != "" {
				parts = append(parts, "**"+strings.ReplaceAll(inline(it.Term, nil), "\\\n", ", ")+"**")
			}
			if body := itemBody(it); body != "" {
				parts = append(parts, body)
			}
		}
		return strings.Join(parts, "\n\n")
	case CodeBlock:
		return joinLines("\n\n", inline(b.Caption, nil), fence(b.Text, b.Language))
	case TableBlock:
		return tableMarkdown(b)
	case QuoteBlock:
		return prefixLines(joinLines("\n\n", inline(b.Text, b.Spans), blocksMarkdown(b.Blocks), inline(dash(b.Cite), nil)), "> ")
	case CalloutBlock:
		head := "**" + inline(cutSpace(b.Title), nil) + "**"
		if b.Title == "" {
			head = "**" + inline(titled(b.Kind, "Note"), nil) + "**"
		}
		return prefixLines(joinLines("\n\n", head, inline(b.Text, b.Spans), blocksMarkdown(b.Blocks)), "> ")
	case ImageBlock:
		dest, ok := destination(b.URL)
		if !ok {
			return inline(b.Caption, nil)
		}
		return joinLines("\n\n", "!["+oneLine(inline(b.Alt, nil))+"]("+dest+")", inline(b.Caption, nil))
	case VideoBlock, AudioBlock, EmbedBlock, LinkBlock:
		label := b.Text
		for _, s := range []string{b.Title, b.Caption, b.Kind, string(b.Type)} {
			if strings.TrimSpace(label) == "" {
				label = s
			}
		}
		dest, ok := destination(b.URL)
		if !ok {
			return oneLine(inline(label, nil))
		}
		return "[" + oneLine(inline(label, nil)) + "](" + dest + ")"
	case FootnoteBlock:
		body := blocksMarkdown(b.Blocks)
		return "[^" + footnoteLabel(b.Text) + "]: " + indentLines(body, "    ")
	case MathBlock:
		if b.Language == "mathml" {
			return fence(b.Text, "xml")
		}
		return fence(b.Text, "math") // between dollars, TeX could turn into markup
	}
	return inline(b.Text, b.Spans)
}

func titled(s, def string) string {
	if s == "" {
		return def
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\\\n", " "), "\n", " ")
}

func footnoteLabel(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' {
			return r
		}
		return -1
	}, s)
	if s == "" {
		return "note"
	}
	return s
}

// prefixLines puts a prefix before every line, trimmed where the line is empty.
func prefixLines(s, prefix string) string {
	if s == "" {
		return ""
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(prefix+l, " ")
	}
	return strings.Join(lines, "\n")
}

// indentLines indents every line but the first, and empty ones.
func indentLines(s, indent string) string {
	lines := strings.Split(s, "\n")
	for i := 1; i < len(lines); i++ {
		if lines[i] != "" {
			lines[i] = indent + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

func itemBody(it Item) string {
	return joinLines("\n\n", inline(it.Text, it.Spans), blocksMarkdown(it.Blocks))
}

func listMarkdown(b Block) string {
	var lines []string
	for i, it := range b.Items {
		mark := "- "
		if b.Ordered {
			mark = strconv.Itoa(b.Number(i)) + ". "
		}
		indent := strings.Repeat(" ", len(mark))
		if it.Task {
			mark += checkbox(it.Done)
		}
		body := itemBody(it)
		if len(it.Blocks) > 0 && it.Blocks[0].Type == ListBlock && it.Text != "" {
			body = inline(it.Text, it.Spans) + "\n" + blocksMarkdown(it.Blocks)
		}
		lines = append(lines, strings.TrimRight(mark+indentLines(body, indent), " "))
	}
	return strings.Join(lines, "\n")
}

// lineEnds makes every line end "\n": to Markdown a lone "\r" is one too, and
// what follows it would leave the quote or the code that it stands in.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// fence gives a fenced code block, byte for byte but for its line ends, with a
// fence that the code does not contain.
func fence(code, language string) string {
	code = lineEnds.Replace(code)
	run, longest := 0, 2
	for _, c := range []byte(code) {
		if c == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	f := strings.Repeat("`", longest+1)
	language = strings.Map(func(r rune) rune {
		if r == '`' || unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, language)
	return f + language + "\n" + strings.TrimSuffix(code, "\n") + "\n" + f
}

// tableMarkdown gives a GitHub table. Spans become empty cells; a table without
// a header row gets an empty one, because the format wants one. Only the header
// is as wide as the widest row, so that the whole grows with the table's cells
// and not with rows times columns.
func tableMarkdown(b Block) string {
	spare := 1000 // empty cells; spans that want more are ignored
	for _, row := range b.Rows {
		spare += 4 * len(row)
	}
	var rows [][]string
	width := 0
	var free []int // by column: the first row that no cell from above reaches into
	for y, row := range b.Rows {
		var cells []string
		empty := func() bool {
			if spare == 0 {
				return false
			}
			spare--
			cells = append(cells, "")
			return true
		}
		for _, c := range row {
			for len(cells) < len(free) && free[len(cells)] > y && empty() {
			}
			x := len(cells)
			cells = append(cells, strings.ReplaceAll(oneLine(inline(c.Text, c.Spans)), "|", `\|`))
			for n := min(c.Colspan, 1000); n > 1 && empty(); n-- { // HTML's own limit
			}
			if c.Rowspan > 1 {
				for len(free) < len(cells) {
					free = append(free, 0)
				}
				for ; x < len(cells); x++ {
					free[x] = y + min(c.Rowspan, len(b.Rows))
				}
			}
		}
		width = max(width, len(cells))
		rows = append(rows, cells)
	}
	if width == 0 {
		return inline(b.Caption, nil)
	}
	header := len(b.Rows[0]) > 0 && !slices.ContainsFunc(b.Rows[0], func(c Cell) bool { return !c.Header })
	if !header {
		rows = append([][]string{nil}, rows...)
	}
	rows[0] = append(rows[0], make([]string, width-len(rows[0]))...)
	var lines []string
	for i, cells := range rows {
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
		if i == 0 {
			lines = append(lines, strings.Repeat("| --- ", width)+"|")
		}
	}
	return joinLines("\n\n", inline(b.Caption, nil), strings.Join(lines, "\n"))
}

// destination gives a URL as a link destination in angle brackets' stead:
// escaped so that it cannot end early. Only http, https and mailto pass.
func destination(raw string) (string, bool) {
	if !SafeURL(raw) {
		return "", false
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", false
	}
	return strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", `\`, "%5C", "\n", "", "\t", "", "\r", "").Replace(u.String()), true
}

// SafeURL reports whether a link may be published: absolute http or https
// with a host, or mailto.
func SafeURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return u.Host != "" && u.User == nil
	case "mailto":
		return true
	}
	return false
}

// inline gives one block's text with its spans as Markdown.
func inline(text string, spans []Span) string {
	var w strings.Builder
	inlineRange(&w, text, spans, 0, len(text))
	s := w.String()
	// No line may start as another block would, or as indented code.
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		l = strings.TrimLeft(l, " \t")
		if i == len(lines)-1 || !strings.HasSuffix(l, `\`) {
			l = strings.TrimRight(l, " \t")
		}
		lines[i] = escapeStart(l)
	}
	// Breaks at the ends break nothing, and the last backslash would escape
	// what comes after the text.
	for len(lines) > 1 && lines[0] == `\` {
		lines = lines[1:]
	}
	s = strings.Join(lines, "\n")
	for strings.HasSuffix(s, "\\\n") {
		s = strings.TrimRight(s[:len(s)-2], " \t")
	}
	return s
}

func inlineRange(w *strings.Builder, text string, spans []Span, pos, end int) {
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
		escape(w, text, pos, s.Start)
		spanMarkdown(w, text, s, spans[i+1:j])
		pos, i = s.End, j
	}
	escape(w, text, pos, end)
}

func spanMarkdown(w *strings.Builder, text string, s Span, inner []Span) {
	content := text[s.Start:s.End]
	switch s.Type {
	case CodeSpan:
		w.WriteString(codeSpan(content))
		return
	case LinkSpan:
		if dest, ok := destination(s.URL); ok {
			w.WriteByte('[')
			inlineRange(w, text, inner, s.Start, s.End)
			w.WriteString("](" + dest + ")")
			return
		}
	case FootnoteSpan:
		w.WriteString("[^" + footnoteLabel(content) + "]")
		return
	case MathSpan:
		if code := codeSpan(content); code != "" {
			w.WriteString("$" + code + "$") // GitHub's form in which TeX stays as it is
		}
		return
	case SubscriptSpan, SuperscriptSpan:
		tag := string(s.Type[:3])
		w.WriteString("<" + tag + ">")
		inlineRange(w, text, inner, s.Start, s.End)
		w.WriteString("</" + tag + ">")
		return
	case EmphasisSpan, StrongSpan:
		mark := "*"
		if s.Type == StrongSpan {
			mark = "**"
		}
		lead := len(content) - len(strings.TrimLeftFunc(content, unicode.IsSpace))
		tail := len(strings.TrimRightFunc(content, unicode.IsSpace))
		if lead >= tail {
			break
		}
		escape(w, text, s.Start, s.Start+lead)
		w.WriteString(mark)
		inlineRange(w, text, inner, s.Start+lead, s.Start+tail)
		w.WriteString(mark)
		escape(w, text, s.Start+tail, s.End)
		return
	}
	inlineRange(w, text, inner, s.Start, s.End)
}

// codeSpan gives code inside a line, "" for nothing but space.
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
func escape(w *strings.Builder, text string, from, to int) {
	for i := from; i < to; i++ {
		switch c := text[i]; c {
		case '\\', '`', '*', '[', ']', '<', '>', '&', '~', '$':
			w.WriteByte('\\')
			w.WriteByte(c)
		case '_':
			before, _ := utf8.DecodeLastRuneInString(text[:i])
			after, _ := utf8.DecodeRuneInString(text[i+1:])
			if !alnum(before) || !alnum(after) {
				w.WriteByte('\\')
			}
			w.WriteByte(c)
		case '!': // before a link it would make an image of it
			if i+1 == to {
				w.WriteByte('\\')
			}
			w.WriteByte(c)
		case '\n':
			w.WriteString("\\\n")
		case '\r', 0:
		default:
			w.WriteByte(c)
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
