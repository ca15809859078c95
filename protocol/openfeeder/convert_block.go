package openfeeder

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/chunk"
)

// types maps the letters in the member blocks to chunk types.
var types = map[string]string{"p": chunk.Paragraph, "h": chunk.Heading, "l": chunk.List, "c": chunk.Code, "q": chunk.Quote}

// blocksMember returns the member blocks of a passage. For each block in order, it contains the
// letter of the type (with the level of a heading), a colon, and the position in the text at which
// the block starts, in code points: "h2:0 p:12 l:340". A block ends before the white space in front
// of the next block. The member is empty if the text alone gives the same blocks.
func blocksMember(p *chunk.Passage) string {
	if slices.Equal(p.Parts, partsOf(&piece{Type: p.Type, Text: p.Text})) {
		return ""
	}
	var b []byte
	at, size := 0, 0
	for i, part := range p.Parts {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, part.Type[0]) // first letter of the type, as in types
		if part.Level > 0 {
			b = strconv.AppendInt(b, int64(part.Level), 10)
		}
		size += utf8.RuneCountInString(p.Text[at:p.Start[i]])
		at = p.Start[i]
		b = strconv.AppendInt(append(b, ':'), int64(size), 10)
	}
	return string(b)
}

// parseBlocks parses the member blocks. If the member does not match the text, it returns nil.
func parseBlocks(member, text string) (parts []chunk.Part) {
	at := 0
	for token := range strings.FieldsSeq(member) {
		kind, start, _ := strings.Cut(token, ":")
		n, err := strconv.Atoi(start)
		name := types[kind[:min(len(kind), 1)]]
		if last := len(parts) - 1; err != nil || name == "" || n < at || last < 0 && n > 0 {
			return nil
		} else if last >= 0 {
			before := cutRunes(text, n-at)
			parts[last].Text = strings.TrimRightFunc(before, unicode.IsSpace)
			at, text = n, text[len(before):]
		}
		level, _ := strconv.Atoi(kind[1:])
		parts = append(parts, chunk.Part{Type: name, Level: level})
	}
	if len(parts) > 0 {
		parts[len(parts)-1].Text = text
	}
	return parts
}

// partsOf returns the parts of a chunk. Without the member blocks, empty lines separate
// paragraphs.
func partsOf(c *piece) []chunk.Part {
	if parts := parseBlocks(c.Blocks, c.Text); parts != nil {
		return parts
	}
	texts := []string{c.Text}
	if c.Type != chunk.Code && c.Type != chunk.List && c.Type != chunk.Heading {
		texts = emptyLine.Split(c.Text, -1)
	}
	parts := make([]chunk.Part, len(texts))
	for i, text := range texts {
		parts[i] = chunk.Part{Type: c.Type, Text: text}
	}
	return parts
}

var emptyLine = regexp.MustCompile(`\n[ \t\r]*\n\s*`)

// blocksOf converts chunks to blocks, one per part. For a chunk from millrace, these blocks convert
// back to the same parts.
func blocksOf(pieces []piece) []millrace.Block {
	var out []millrace.Block
	for i := range pieces {
		for _, part := range partsOf(&pieces[i]) {
			if !blank(part.Text) {
				out = append(out, blockOf(part))
			}
		}
	}
	return out
}

func blockOf(c chunk.Part) millrace.Block {
	text := millrace.Block{Type: millrace.TextBlock, Text: c.Text}
	var forms []millrace.Block
	switch c.Type {
	case chunk.Heading:
		level := c.Level
		if level < 1 || level > 6 {
			level = 2 // level 1 is the title
		}
		return millrace.Block{Type: millrace.HeadingBlock, Level: level, Text: c.Text}
	case chunk.Code:
		return millrace.Block{Type: millrace.CodeBlock, Text: c.Text}
	case chunk.Quote:
		return millrace.Block{Type: millrace.QuoteBlock, Blocks: []millrace.Block{text}}
	case chunk.List:
		forms = listForms(c.Text)
	}
	for _, b := range forms {
		back := chunk.Parts(&millrace.Page{Blocks: []millrace.Block{b}})
		if len(back) == 1 && back[0].Type == c.Type && canon.ValidUTF8(back[0].Text) == c.Text {
			return b
		}
	}
	return text
}

// listForms returns the blocks that a list chunk may represent: a list, definitions, or a table.
func listForms(text string) []millrace.Block {
	var forms []millrace.Block
	lines := strings.Split(text, "\n")
	if b, rest := parseList(lines, ""); len(rest) == 0 && len(b.Items) > 0 {
		forms = append(forms, b)
	}
	if b := parseDefinitions(lines); slices.ContainsFunc(b.Items, func(it millrace.Item) bool { return it.Text != "" }) {
		forms = append(forms, b)
	}
	if len(lines) > 1 && strings.Contains(text, cellGap) {
		b := millrace.Block{Type: millrace.TableBlock}
		for _, line := range lines {
			var row []millrace.Cell
			for cell := range strings.SplitSeq(line, cellGap) {
				row = append(row, millrace.Cell{Text: cell})
			}
			b.Rows = append(b.Rows, row)
		}
		forms = append(forms, b)
	}
	return forms
}

const cellGap = " | "

// parseList parses the items at an indentation, with nested lists, and returns the remaining lines.
func parseList(lines []string, indent string) (millrace.Block, []string) {
	b := millrace.Block{Type: millrace.ListBlock}
	for n := 0; len(lines) > 0; n++ {
		line, ok := strings.CutPrefix(lines[0], indent)
		if !ok {
			break
		}
		number, text, ok := cutMark(line)
		if !ok || n > 0 && b.Ordered != (number >= 0) {
			break
		}
		if n == 0 && number >= 0 {
			b.Ordered = true
			if number != 1 {
				b.Start = number
			}
		}
		width := len(line) - len(text)
		it := millrace.Item{}
		it.Text, it.Task, it.Done = cutBox(text)
		lines = lines[1:]
		inner := indent + strings.Repeat(" ", min(width, 4))
		for len(lines) > 0 {
			rest, deeper := strings.CutPrefix(lines[0], inner)
			if !deeper {
				break
			}
			if _, _, marked := cutMark(rest); marked && len(inner) < maxIndent {
				var sub millrace.Block
				sub, lines = parseList(lines, inner)
				it.Blocks = append(it.Blocks, sub)
				continue
			}
			if len(it.Blocks) > 0 || strings.HasPrefix(rest, " ") {
				return b, lines
			}
			it.Text += "\n" + rest
			lines = lines[1:]
		}
		b.Items = append(b.Items, it)
	}
	return b, lines
}

// parseDefinitions parses lines as terms, and indented lines as definitions of the preceding terms.
func parseDefinitions(lines []string) millrace.Block {
	b := millrace.Block{Type: millrace.DefinitionsBlock}
	for i, line := range lines {
		text, meant := strings.CutPrefix(line, "  ")
		last := len(b.Items) - 1
		switch {
		case !meant && i > 0 && b.Items[last].Text == "":
			b.Items[last].Term += "\n" + line
		case !meant:
			b.Items = append(b.Items, millrace.Item{Term: line})
		case i == 0:
			return millrace.Block{}
		case b.Items[last].Text == "":
			b.Items[last].Text, b.Items[last].Task, b.Items[last].Done = cutBox(text)
		default:
			b.Items = append(b.Items, millrace.Item{Text: text})
		}
	}
	return b
}

// maxIndent limits the indentation of nested lists in the text of a chunk, in spaces.
const maxIndent = 16

// cutMark removes "- ", or a number and ". ", from a line. number is -1 for "- ".
func cutMark(line string) (number int, text string, ok bool) {
	if text, ok := strings.CutPrefix(line, "- "); ok {
		return -1, text, true
	}
	digits, text, ok := strings.Cut(line, ". ")
	if !ok || digits == "" || len(digits) > 9 || strings.Trim(digits, "0123456789") != "" {
		return 0, "", false
	}
	number, err := strconv.Atoi(digits)
	return number, text, err == nil
}

func cutBox(text string) (rest string, task, done bool) {
	if rest, ok := strings.CutPrefix(text, "[x] "); ok {
		return rest, true, true
	}
	if rest, ok := strings.CutPrefix(text, "[ ] "); ok {
		return rest, true, false
	}
	return text, false, false
}
