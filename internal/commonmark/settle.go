package commonmark

import (
	"bytes"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// rounds is how often a text is read back before another form is tried.
const rounds = 8

// Settle returns what a page is once its text says just that, and the text: reading it
// gives the same page again. It makes a page of blocks, writes it, and reads it until
// nothing changes; most pages are there after one reading. Where text keeps turning
// into something else, or read reports false because nothing is left, the content is
// plain text, then code, then nothing.
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
	// Nothing but its fields, of which the first reading is the last.
	body := write(page(nil))
	p, _ := read(body)
	return p, body
}

// withoutOrphans returns blocks with the content of the footnotes that nothing
// refers to in their place: readers leave such notes out.
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

// Texts calls f with every text of blocks.
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

// label returns what tells a footnote from others in Markdown.
func label(s string) string { return strings.Trim(s, "[]^ ") }
