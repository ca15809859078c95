package millrace

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns blocks as plain text. An empty line separates blocks, a line end separates rows and
// items, and " | " separates cells. The only added markup is "- ", "1. ", "[ ] " and "[x] " before
// items, "— " before the source of a quote, and brackets around the label of a footnote. A line of
// white space counts as empty. The result neither starts nor ends with an empty line, and never
// contains two in a row. So Text(TextBlocks(Text(b))) == Text(b).
func Text(blocks []Block) string {
	texts := make([]string, 0, len(blocks))
	for i := range blocks {
		if t := foldLines(blockText(&blocks[i])); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n\n")
}

// TextBlocks returns plain text as one text block per paragraph, for content of [DetailText]. Empty
// lines separate paragraphs.
func TextBlocks(text string) []Block {
	if text = foldLines(text); text == "" {
		return nil
	}
	var out []Block
	for p := range strings.SplitSeq(text, "\n\n") {
		out = append(out, Block{Type: TextBlock, Text: p})
	}
	return out
}

// foldLines replaces each run of empty lines with one, and removes empty lines at the ends. A line of
// white space counts as empty, and every line end becomes "\n".
func foldLines(s string) string {
	if folded(s) {
		return s
	}
	var w strings.Builder
	w.Grow(len(s))
	gap := false
	for line := range strings.SplitSeq(lineEnds.Replace(s), "\n") {
		if strings.TrimSpace(line) == "" {
			gap = true
			continue
		}
		if w.Len() > 0 {
			w.WriteByte('\n')
			if gap {
				w.WriteByte('\n')
			}
		}
		gap = false
		w.WriteString(line)
	}
	return w.String()
}

// folded reports whether foldLines leaves a text unchanged. It may return false for a text that
// foldLines does not change.
func folded(s string) bool {
	if s == "" {
		return true
	}
	gap := true // an empty line would be removed
	for rest, more := s, true; more; {
		var line string
		line, rest, more = strings.Cut(rest, "\n")
		switch {
		case line == "":
			if gap {
				return false
			}
			gap = true
			continue
		case line[0] <= ' ' || line[0] >= utf8.RuneSelf:
			if strings.TrimSpace(line) == "" {
				return false
			}
		}
		gap = false
	}
	return !gap && strings.IndexByte(s, '\r') < 0
}

func blockText(b *Block) string {
	switch b.Type {
	case ListBlock, DefinitionsBlock:
		return listText(b)
	case TableBlock:
		return tableText(b)
	case QuoteBlock:
		return joinLines("\n\n", Text(b.Blocks), b.Text, dash(b.Cite))
	case CalloutBlock:
		return joinLines("\n\n", b.Title, b.Text, Text(b.Blocks))
	case FootnoteBlock:
		return strings.TrimSpace("[" + b.Text + "] " + Text(b.Blocks))
	case ImageBlock:
		return b.Caption
	case VideoBlock, AudioBlock:
		return joinLines("\n\n", joinLines("\n", b.Title, b.Caption), b.transcript())
	case EmbedBlock:
		return joinLines("\n", b.Title, b.Caption)
	case CodeBlock:
		return joinLines("\n", b.Caption, b.Text)
	}
	return b.Text
}

// transcript returns the transcript of a video or an audio recording.
func (b *Block) transcript() string {
	if b.Media == nil {
		return ""
	}
	return b.Media.Transcript
}

func dash(cite string) string {
	if cite == "" {
		return ""
	}
	return "— " + cite
}

func joinLines(sep string, parts ...string) string {
	nonEmpty := parts[:0]
	for _, p := range parts {
		if strings.TrimSpace(p) != "" {
			nonEmpty = append(nonEmpty, p)
		}
	}
	return strings.Join(nonEmpty, sep)
}

func listText(b *Block) string {
	var lines []string
	for i, it := range b.Items {
		mark := "- "
		switch {
		case b.Type == DefinitionsBlock:
			mark = "  "
		case b.Ordered:
			mark = strconv.Itoa(b.Number(i)) + ". "
		}
		if it.Task {
			mark += checkbox(it.Done)
		}
		if it.Term != "" {
			lines = append(lines, it.Term)
		}
		body := joinLines("\n", it.Text, strings.ReplaceAll(Text(it.Blocks), "\n\n", "\n"))
		if body == "" {
			continue
		}
		lines = append(lines, mark+strings.ReplaceAll(body, "\n", "\n"+strings.Repeat(" ", min(len(mark), 4))))
	}
	return strings.Join(lines, "\n")
}

func checkbox(done bool) string {
	if done {
		return "[x] "
	}
	return "[ ] "
}

func tableText(b *Block) string {
	var lines []string
	if b.Caption != "" {
		lines = append(lines, b.Caption)
	}
	for _, row := range b.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = cutSpace(c.Text)
		}
		if line := strings.Join(cells, " | "); strings.Trim(line, " |") != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
