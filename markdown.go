package millrace

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Markdown returns blocks as CommonMark with GitHub's tables. Text never turns
// into markup: what Markdown or HTML would read as such is escaped, and links
// that are neither http, https nor mailto become their text. What has no form
// of its own, such as what stands above the line, or asterisks that would not
// be read as marks, is written as HTML's elements. The same blocks always give
// the same bytes, ending in one line end unless there are none.
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
		line := oneLine(inline(label, nil))
		if dest, ok := destination(b.URL); ok {
			line = "[" + line + "](" + dest + ")"
		}
		if b.Type == VideoBlock || b.Type == AudioBlock {
			caption := b.Caption
			if label == caption {
				caption = ""
			}
			line = joinLines("\n\n", line, inline(caption, nil), blocksMarkdown(TextBlocks(b.transcript())))
		}
		return line
	case FootnoteBlock:
		body := blocksMarkdown(b.Blocks)
		if len(b.Blocks) > 0 && b.Blocks[0].Type != TextBlock {
			// After the colon, readers disagree on how far it is indented.
			return "[^" + footnoteLabel(b.Text) + "]:" + indentLines("\n"+body, "    ")
		}
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
		between := "\n\n"
		if len(it.Blocks) > 0 && it.Text != "" && interrupts(&it.Blocks[0]) {
			between = "\n"
		}
		body := joinLines(between, inline(it.Text, it.Spans), blocksMarkdown(it.Blocks))
		lines = append(lines, strings.TrimRight(mark+indentLines(body, indent), " "))
	}
	return strings.Join(lines, "\n")
}

// interrupts reports whether a block is a list that needs no empty line before
// it: CommonMark lets one follow a text if it counts from 1 and does not start
// with an empty item.
func interrupts(b *Block) bool {
	return b.Type == ListBlock && len(b.Items) > 0 && (!b.Ordered || b.Number(0) == 1) && strings.TrimSpace(b.Items[0].Text) != ""
}

// lineEnds makes every line end "\n": to Markdown a lone "\r" is one too, and
// what follows it would leave the quote or the code that it stands in.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// fence returns a fenced code block, byte for byte but for its line ends, with
// a fence that the code does not contain.
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

// tableMarkdown returns a GitHub table. Spans become empty cells; a table
// without a header row gets an empty one, because the format wants one. Only
// the header is as wide as the widest row, so that the whole grows with the
// table's cells and not with rows times columns.
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
			cells = append(cells, oneLine(inlineCell(c.Text, c.Spans)))
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

var destinationEscapes = strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", `\`, "%5C", "\n", "", "\t", "", "\r", "")

// destination returns a URL as a link destination in angle brackets' stead:
// escaped so that it cannot end early. Only http, https and mailto pass.
func destination(raw string) (string, bool) {
	if !SafeURL(raw) {
		return "", false
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", false
	}
	return destinationEscapes.Replace(u.String()), true
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
