package scp

import (
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// contentOf converts blocks to content blocks, at most maxBlocks.
func contentOf(blocks []millrace.Block) []block {
	out := make([]block, 0, len(blocks))
	for i := range blocks {
		out = appendContent(out, &blocks[i])
	}
	return fit(out, maxBlocks)
}

// appendContent appends the content blocks of a block, or none if the block is empty. Converting
// the result to blocks and back does not change it.
func appendContent(out []block, b *millrace.Block) []block {
	switch b.Type {
	case millrace.HeadingBlock:
		if t := canon.ValidUTF8(b.Text); !blank(t) {
			out = append(out, block{Type: headingBlock, Level: min(max(b.Level, 1), 6), Text: t})
		}
		return out
	case millrace.TextBlock:
		return text(out, b.Text)
	case millrace.ListBlock, millrace.DefinitionsBlock:
		return list(out, b)
	case millrace.CodeBlock, millrace.MathBlock:
		out = text(out, b.Caption)
		if t := canon.ValidUTF8(b.Text); !blank(t) {
			out = append(out, block{Type: codeBlock, Language: canon.ValidUTF8(b.Language), Text: t})
		}
		return out
	case millrace.TableBlock:
		out = text(out, b.Caption)
		if rows := rowsOf(b.Rows); len(rows) > 0 {
			out = append(out, block{Type: tableBlock, Rows: rows})
		}
		return out
	case millrace.QuoteBlock:
		q := *b
		q.Cite = ""
		return quote(out, &q, b.Cite)
	case millrace.CalloutBlock:
		return quote(out, b, "")
	case millrace.ImageBlock:
		if u := webURL(b.URL); u != "" {
			out = append(out, block{Type: imageBlock, URL: u, Text: canon.ValidUTF8(b.Alt)})
		} else if blank(b.Caption) {
			return text(out, b.Alt)
		}
		return text(out, b.Caption)
	case millrace.VideoBlock, millrace.AudioBlock:
		return appendMedia(out, b)
	case millrace.EmbedBlock:
		if videoProviders[b.Kind] && webURL(b.URL) != "" {
			v := millrace.Block{Type: millrace.VideoBlock, URL: b.URL, Title: b.Title, Caption: b.Caption}
			v.Sources = []millrace.MediaSource{{URL: b.URL, Type: "text/html"}}
			return appendMedia(out, &v)
		}
		if blank(b.Title) || blank(b.Caption) || b.Title == b.Caption {
			return link(out, b.URL, firstOf(canon.ValidUTF8(b.Title), canon.ValidUTF8(b.Caption)), nil)
		}
		return text(link(out, b.URL, canon.ValidUTF8(b.Title), nil), b.Caption)
	case millrace.LinkBlock:
		return link(out, b.URL, canon.ValidUTF8(b.Text), b.Rel)
	}
	return text(out, millrace.Text([]millrace.Block{*b})) // footnotes, and types that are added later
}

func text(out []block, s string) []block {
	if s = canon.ValidUTF8(s); blank(s) {
		return out
	}
	return append(out, block{Type: textBlock, Text: s})
}

// list appends a list block whose items are plain text. The text of blocks inside an item follows
// on separate lines, with markers for nested lists.
func list(out []block, b *millrace.Block) []block {
	l := block{Type: listBlock, Ordered: b.Ordered && b.Type == millrace.ListBlock}
	hasText := false
	for i := range b.Items {
		it := &b.Items[i]
		t := canon.ValidUTF8(it.Text)
		if it.Task {
			t = checkbox(it.Done) + t
		}
		inside := ""
		if len(it.Blocks) > 0 {
			inside = strings.ReplaceAll(canon.ValidUTF8(millrace.Text(it.Blocks)), "\n\n", "\n")
		}
		if b.Type == millrace.DefinitionsBlock {
			t = joined("\n", canon.ValidUTF8(it.Term), joined("\n", t, inside))
		} else {
			t = joined("\n", t, inside)
		}
		hasText = hasText || !blank(t)
		l.Items = append(l.Items, t)
	}
	if !hasText {
		return out
	}
	return append(out, l)
}

func checkbox(done bool) string {
	if done {
		return "[x] "
	}
	return "[ ] "
}

// quote appends a quote block with the text of b. If b has no text, it appends cite as text.
func quote(out []block, b *millrace.Block, cite string) []block {
	t := canon.ValidUTF8(millrace.Text([]millrace.Block{*b}))
	if cite = canon.ValidUTF8(cite); blank(cite) {
		cite = ""
	}
	if t == "" {
		return text(out, cite)
	}
	return append(out, block{Type: quoteBlock, Text: t, Citation: cite})
}

// link appends a link block, or the text of the link if the URL cannot be used.
func link(out []block, to, label string, rel []string) []block {
	u := webURL(to)
	if u == "" {
		return text(out, label)
	}
	if blank(label) {
		label = u
	}
	b := block{Type: linkBlock, URL: u, Text: label}
	for _, r := range rel {
		b.Rel = append(b.Rel, canon.ValidUTF8(r))
	}
	return append(out, b)
}

// joined joins the strings that are not blank.
func joined(sep, a, b string) string {
	switch {
	case blank(b):
		return a
	case blank(a):
		return b
	}
	return a + sep + b
}

// maxGrowth limits how much spans enlarge a table: to maxGrowth times its number of cells, plus 64.
const maxGrowth = 4

// rowsOf converts a table to rows of text. The text of a cell that spans several columns or rows is
// written once. The other positions get empty cells, so columns stay aligned. If this would add too
// many cells, rowsOf ignores spans.
func rowsOf(rows [][]millrace.Cell) [][]string {
	var cells, spread int64
	for _, row := range rows {
		for i := range row {
			cells++
			spread += int64(max(1, row[i].Colspan)) * int64(min(max(1, row[i].Rowspan), len(rows)))
			spread = min(spread, 1<<40)
		}
	}
	spans := spread > cells && spread <= maxGrowth*cells+64
	var out [][]string
	var down []int // by column, the number of further rows that a cell above covers
	hasText := false
	for _, row := range rows {
		var line []string
		covered := func() {
			for spans && len(line) < len(down) && down[len(line)] > 0 {
				down[len(line)]--
				line = append(line, "")
			}
		}
		for i := range row {
			c := &row[i]
			covered()
			t := canon.ValidUTF8(c.Text)
			hasText = hasText || !blank(t)
			for n := range max(1, c.Colspan) {
				if n > 0 && !spans {
					break
				}
				if spans && c.Rowspan > 1 {
					down = append(down, make([]int, max(0, len(line)+1-len(down)))...)
					down[len(line)] = min(c.Rowspan, len(rows)) - 1
				}
				line = append(line, t)
				t = ""
			}
		}
		covered()
		out = append(out, line)
	}
	if !hasText {
		return nil
	}
	return out
}

// fit reduces blocks to at most n, starting at the end. It first joins adjacent texts, then
// converts lists, quotes, links and headings to text, one type after the other. Finally, it joins
// the nth block and all later ones into one text. All text is kept.
func fit(blocks []block, n int) []block {
	if len(blocks) <= n {
		return blocks
	}
	blocks = mergeTexts(blocks, n)
	for _, t := range []blockType{listBlock, quoteBlock, linkBlock, headingBlock} {
		if len(blocks) <= n {
			return blocks
		}
		for i := range blocks {
			if b := &blocks[i]; b.Type == t {
				*b = block{Type: textBlock, Text: b.plain()}
			}
		}
		blocks = mergeTexts(blocks, n)
	}
	if len(blocks) <= n {
		return blocks
	}
	rest := make([]string, 0, len(blocks)-n+1)
	for i := range blocks[n-1:] {
		if t := blocks[n-1+i].plain(); !blank(t) {
			rest = append(rest, t)
		}
	}
	return append(blocks[:n-1], block{Type: textBlock, Text: strings.Join(rest, "\n\n")})
}

// mergeTexts joins adjacent text blocks, starting at the end, until n blocks remain or no text
// blocks are adjacent.
func mergeTexts(blocks []block, n int) []block {
	excess := len(blocks) - n
	var out []block // in reverse order
	var run []string
	flush := func() {
		if len(run) == 0 {
			return
		}
		slices.Reverse(run)
		out = append(out, block{Type: textBlock, Text: strings.Join(run, "\n\n")})
		run = run[:0]
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		b := &blocks[i]
		if b.Type != textBlock {
			flush()
			out = append(out, *b)
			continue
		}
		if len(run) > 0 {
			if excess == 0 {
				flush()
			} else {
				excess--
			}
		}
		run = append(run, b.Text)
	}
	flush()
	slices.Reverse(out)
	return out
}

// plain returns the text of a block, with the URL of a link, an image or a recording.
func (b *block) plain() string {
	switch b.Type {
	case linkBlock, imageBlock:
		if b.Text == b.URL {
			return b.URL
		}
		return joined(" ", b.Text, "("+b.URL+")")
	case videoBlock, audioBlock:
		u := b.Media.URL
		if u == "" {
			u = b.Media.Sources[0].Href
		}
		return joined("\n\n", joined("\n", b.Media.Name+" ("+u+")", b.Media.Summary), b.Media.Transcript)
	}
	return millrace.Text(blocksOf([]block{*b}))
}
