package commonmark

import (
	"bytes"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// rounds is the number of times that Settle reads a text before it tries another form.
const rounds = 8

// Settle returns a page and its text, such that reading the text returns the same page. It builds
// a page from blocks, and writes and reads it until nothing changes; for most pages, once is
// enough. If the text keeps changing, or read returns false because nothing is left, the content
// becomes plain text, then code, then empty.
func Settle[P any](blocks []millrace.Block, page func([]millrace.Block) P, write func(P) []byte, read func([]byte) (P, bool)) (P, []byte) {
	text := millrace.Text(blocks)
	for _, form := range [][]millrace.Block{withoutOrphans(blocks), millrace.TextBlocks(text), {{Type: millrace.CodeBlock, Text: text}}} {
		was := write(page(form))
		for range rounds {
			p, ok := read(was)
			if !ok {
				break
			}
			now := write(p)
			if bytes.Equal(now, was) {
				return p, now
			}
			was = now
		}
	}
	// Without content, only the page's fields remain, and reading them back does not change them.
	body := write(page(nil))
	p, _ := read(body)
	return p, body
}

// withoutOrphans moves the content of unreferenced footnotes into the text, because readers drop
// such notes.
func withoutOrphans(blocks []millrace.Block) []millrace.Block {
	if !slices.ContainsFunc(blocks, func(b millrace.Block) bool { return b.Type == millrace.FootnoteBlock }) {
		return blocks
	}
	referred := map[string]bool{}
	Texts(blocks, func(text string, spans []millrace.Span) {
		for _, s := range spans {
			if s.Type == millrace.FootnoteSpan && s.Start >= 0 && s.Start < s.End && s.End <= len(text) {
				referred[label(text[s.Start:s.End])] = true
			}
		}
	})
	var out []millrace.Block
	for _, b := range blocks {
		if b.Type == millrace.FootnoteBlock && !referred[label(b.Text)] {
			out = append(out, b.Blocks...)
			continue
		}
		out = append(out, b)
	}
	return out
}

// Texts calls f with every text in blocks that may have spans.
func Texts(blocks []millrace.Block, f func(text string, spans []millrace.Span)) {
	for i := range blocks {
		b := &blocks[i]
		f(b.Text, b.Spans)
		Texts(b.Blocks, f)
		for _, it := range b.Items {
			f(it.Text, it.Spans)
			Texts(it.Blocks, f)
		}
		for _, row := range b.Rows {
			for _, c := range row {
				f(c.Text, c.Spans)
			}
		}
	}
}

// label returns the Markdown label of a footnote.
func label(s string) string { return strings.Trim(s, "[]^ ") }
