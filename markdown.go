package millrace

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Markdown returns blocks as CommonMark with GitHub's tables. It escapes text that would be read as
// Markdown or HTML. It replaces a link that is neither http, https nor mailto with the text of the
// link. It writes HTML elements for formatting that Markdown lacks, such as superscript, and for
// emphasis whose asterisks would not be read as emphasis. Equal blocks always give equal bytes. The
// result ends in exactly one line end, unless it is empty.
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
			parts = append(parts, "<!-- -->") // separates two lists, which would otherwise be read as one
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
		// A final "#" closes a heading only after a space.
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
			// Parsers disagree on the indentation of a block that starts after the colon.
			return "[^" + footnoteLabel(b.Text) + "]:" + indentLines("\n"+body, "    ")
		}
		return "[^" + footnoteLabel(b.Text) + "]: " + indentLines(body, "    ")
	case MathBlock:
		if b.Language == "mathml" {
			return fence(b.Text, "xml")
		}
		return fence(b.Text, "math") // between dollars, TeX could be read as markup
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

// prefixLines adds a prefix to every line. On empty lines, it trims trailing space from the prefix.
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

// indentLines indents every line except the first and empty ones.
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

// interrupts reports whether a block is a list that needs no empty line before it. In
// CommonMark, such a list starts with 1, and its first item is not empty.
func interrupts(b *Block) bool {
	return b.Type == ListBlock && len(b.Items) > 0 && (!b.Ordered || b.Number(0) == 1) && strings.TrimSpace(b.Items[0].Text) != ""
}

// lineEnds replaces every line end with "\n". In Markdown, a lone "\r" also ends a line, and the
// text after it would no longer belong to its quote or code block.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// fence returns a fenced code block. It changes only the line ends of the code. The fence is longer
// than any run of the same character in the code.
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

// tableMarkdown returns a GitHub table. Spans become empty cells. GitHub requires a header row, so
// tableMarkdown adds an empty one if the table has none. Only the header is padded to the widest
// row; the output grows with the number of cells, not with rows times columns.
func tableMarkdown(b Block) string {
	spare := 1000 // number of empty cells that may still be added; further spans are ignored
	for _, row := range b.Rows {
		spare += 4 * len(row)
	}
	var rows [][]string
	width := 0
	var free []int // by column: first row below the cells that span down into the column
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
			for n := min(c.Colspan, 1000); n > 1 && empty(); n-- { // HTML limits colspan to 1000
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

// destination returns a URL as the destination of a Markdown link. It escapes characters that
// would end the destination. It reports false unless [SafeURL] allows the URL.
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

// SafeURL reports whether a link may be published. Allowed are absolute http and https URLs
// with a host and without user information, and mailto URLs.
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
