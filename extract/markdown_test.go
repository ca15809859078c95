package extract

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/millrace/millrace"
)

// blockMaker generates blocks that Markdown can represent.
type blockMaker struct {
	r     *rand.Rand
	notes int
}

// pieces are the parts of generated texts: words in several scripts, and syntax of Markdown and
// HTML.
var pieces = []string{
	"word", "mill", "a", "Ünder", "水車", "です。", "עברית", "1.", "2)", "-", "+", "*", "**", "_", "__", "snake_case", "#", "##", "=", "==", "---", ">", "<b>", "</b>", "&amp;",
	"&", "[x]", "[", "]", "(y)", "![", "`", "``", "|", "||", "\\", "~~", "$", "!", ":", "\"", "'", "http", "{", "}", "😀", "<!--", ".", ",", "(", ")",
}

func (m *blockMaker) text(most int) string {
	var b strings.Builder
	for i := range 1 + m.r.IntN(most) {
		if i > 0 && m.r.IntN(4) > 0 {
			b.WriteByte(' ')
		} else if i > 0 && m.r.IntN(12) == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(pieces[m.r.IntN(len(pieces))])
	}
	return b.String()
}

// spans generates spans for parts of a text. They are properly nested, and no type is inside
// itself.
func (m *blockMaker) spans(text string, from, to int, open []millrace.SpanType) (out []span) {
	types := []millrace.SpanType{millrace.EmphasisSpan, millrace.StrongSpan, millrace.LinkSpan, millrace.CodeSpan, millrace.SuperscriptSpan, millrace.SubscriptSpan}
	for at := from; at < to && len(open) < 3; {
		start := at + m.r.IntN(to-at)
		end := start + 1 + m.r.IntN(min(to-start, 12))
		if m.r.IntN(5) == 0 {
			start = at
		}
		at = end
		t := types[m.r.IntN(len(types))]
		part := text[start:min(end, len(text))]
		if slices.Contains(open, t) || !utf8.ValidString(part) || strings.TrimSpace(part) != part || part == "" || strings.Contains(part, "\n") ||
			t == millrace.CodeSpan && strings.Contains(part, "  ") || isLineText(part) {
			continue
		}
		s := span{Type: t, Start: start, End: end}
		if t == millrace.LinkSpan {
			s.URL = "https://example.com/" + fmt.Sprint(start)
		}
		out = append(out, s)
		if t != millrace.CodeSpan {
			out = append(out, m.spans(text, start, end, append(open, t))...)
		}
	}
	return out
}

func (m *blockMaker) blocks(depth int) (out []block) {
	for range 1 + m.r.IntN(4) {
		out = append(out, m.block(depth))
	}
	return out
}

func (m *blockMaker) block(depth int) block {
	switch n := m.r.IntN(10); {
	case n == 0:
		t := strings.ReplaceAll(m.text(5), "\n", " ")
		return block{Type: "heading", Level: 1 + m.r.IntN(6), Text: t}
	case n == 1:
		return block{Type: "code", Language: []string{"", "go", "c++"}[m.r.IntN(3)], Text: "  " + m.text(9) + "\n\n\t```\n" + m.text(3) + "\n"}
	case n < 4 && depth < 3:
		b := block{Type: "list", Ordered: m.r.IntN(2) == 0}
		if b.Ordered && m.r.IntN(2) == 0 {
			b.Start = 2 + m.r.IntN(200)
		}
		for range 1 + m.r.IntN(3) {
			it := item{Text: m.text(6), Task: !b.Ordered && m.r.IntN(5) == 0}
			it.Done = it.Task && m.r.IntN(2) == 0
			it.Spans = m.spans(it.Text, 0, len(it.Text), nil)
			if m.r.IntN(3) == 0 {
				it.Blocks = m.blocks(depth + 1)
			}
			b.Items = append(b.Items, it)
		}
		return b
	case n == 4:
		b := block{Type: "table"}
		width := 2 + m.r.IntN(3)
		for y := range 2 + m.r.IntN(3) {
			var row []cell
			for range width {
				t := strings.ReplaceAll(m.text(4), "\n", " ")
				row = append(row, cell{Text: t, Spans: m.spans(t, 0, len(t), nil), Header: y == 0})
			}
			b.Rows = append(b.Rows, row)
		}
		return b
	case n == 5 && depth < 3:
		return block{Type: "quote", Blocks: m.blocks(depth + 1)}
	case n == 6:
		return block{Type: "image", URL: "https://example.com/i.png", Alt: strings.ReplaceAll(m.text(3), "\n", " ")}
	case n == 7 && depth == 0:
		m.notes++
		return block{Type: "footnote", Text: fmt.Sprint(m.notes), Blocks: m.blocks(2)}
	}
	t := m.text(14)
	return block{Type: "text", Text: t, Spans: m.spans(t, 0, len(t), nil)}
}

// representable removes what Markdown cannot represent: anchors, and the order of spans that cover
// the same text.
func representable(blocks []block) []block {
	spans := func(list []span) []span {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b span) int {
			return cmp.Or(a.Start-b.Start, b.End-a.End, strings.Compare(string(a.Type), string(b.Type)))
		})
		return list
	}
	var out []block
	for _, b := range blocks {
		b.Anchor = ""
		b.Spans = spans(b.Spans)
		if b.Type == "link" { // in Markdown, a link block is the same as a text that is a link
			b = block{Type: "text", Text: b.Text, Spans: []span{{Type: "link", End: len(b.Text), URL: b.URL}}}
		}
		b.Text = strings.TrimSuffix(b.Text, "\n")
		b.Blocks = representable(b.Blocks)
		items := slices.Clone(b.Items)
		for i := range items {
			items[i].Spans, items[i].Blocks = spans(items[i].Spans), representable(items[i].Blocks)
		}
		b.Items = items
		rows := slices.Clone(b.Rows)
		for i := range rows {
			rows[i] = slices.Clone(rows[i])
			for j := range rows[i] {
				rows[i][j].Spans = spans(rows[i][j].Spans)
			}
		}
		b.Rows = rows
		out = append(out, b)
	}
	return out
}

// Parsing the generated Markdown gives the same blocks.
func TestMarkdownReadBack(t *testing.T) {
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.TaskList, extension.Footnote), goldmark.WithRendererOptions(html.WithUnsafe()))
	failed, seeds := 0, uint64(300)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		m := &blockMaker{r: rand.New(rand.NewPCG(seed, 7))}
		want := m.blocks(0)
		if m.notes > 0 { // the parser returns notes at the end, in the order of their references
			notes := want
			want = nil
			text := block{Type: "text", Text: "See"}
			for i := range notes {
				if notes[i].Type != "footnote" {
					want = append(want, notes[i])
				}
			}
			for i := range m.notes {
				at := len(text.Text)
				text.Text += fmt.Sprintf("[%d]", i+1)
				text.Spans = append(text.Spans, span{Type: "footnote", Start: at, End: len(text.Text), URL: fmt.Sprintf("fn:%d", i+1)})
			}
			want = append(want, text)
			for _, n := range notes {
				if n.Type == "footnote" {
					want = append(want, n)
				}
			}
		}
		source := millrace.Markdown(want)
		var page bytes.Buffer
		if err := md.Convert([]byte(source), &page); err != nil {
			t.Fatal(err)
		}
		got := fragmentOf(t, page.String())
		if d := gocmp.Diff(representable(want), representable(got)); d != "" {
			if failed++; failed > 3 {
				t.Fatal("more than 3 differ")
			}
			t.Errorf("seed %d: (-want +got)\n%s\n%s\n%s", seed, d, source, page.String())
		}
	}
}
