package millrace_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

const everyBlockMarkdown = `## Gate and wheel

Open the [gate](https://example.com/gate) *slowly*.\
Then wait.

- oak
- elm

  3. wych
  4. field
- [x] ash

**Leat**

A channel to a mill.

**Penstock**

A sluice.

` + "```go\nif open {\n\tflow()\n}\n```" + `

Flow

| Gate | l/s |
| --- | --- |
| main | 1\|2 |

> Water is patient.
>
> — A miller

> **Mind the wheel**
>
> It turns.

![wheel](https://example.com/w.png)

The wheel

[Turning](https://example.com/v.mp4)

[Creaking](https://example.com/a.ogg)

[Where](https://example.com/e)

[^1]: Since 1412.

` + "```math\nP = \\rho g Q h\n```" + `

[Next page](https://example.com/next)
`

func TestMarkdown(t *testing.T) {
	if got := millrace.Markdown(everyBlock()); got != everyBlockMarkdown {
		t.Errorf("Markdown:\n%s", got)
	}
}

func TestMarkdownEscapes(t *testing.T) {
	span := func(typ millrace.SpanType, text, part, url string) millrace.Block {
		i := strings.Index(text, part)
		return millrace.Block{Type: millrace.TextBlock, Text: text, Spans: []millrace.Span{{Type: typ, Start: i, End: i + len(part), URL: url}}}
	}
	text := func(s string) millrace.Block { return millrace.Block{Type: millrace.TextBlock, Text: s} }
	for _, tt := range []struct {
		name  string
		block millrace.Block
		want  string
	}{
		{"HTML", text(`<script>alert("x")</script> &amp;`), `\<script\>alert("x")\</script\> \&amp;`},
		{"emphasis and links", text("*a* [b](c) `d` snake_case _e_"), "\\*a\\* \\[b\\](c) \\`d\\` snake_case \\_e\\_"},
		{"a heading", text("# no heading"), `\# no heading`},
		{"a setext heading", text("a\n==="), "a\\\n\\==="},
		{"items", text("- a\n+ b\n1. c\n2) d"), "\\- a\\\n\\+ b\\\n1\\. c\\\n2\\) d"},
		{"indented code", text("    code\n\tcode"), "code\\\ncode"},
		{"a backslash", text(`C:\*`), `C:\\\*`},
		{"javascript link", span(millrace.LinkSpan, "click me", "me", "javascript:alert(1)"), "click me"},
		{"data link", span(millrace.LinkSpan, "click me", "me", "data:text/html,x"), "click me"},
		{"link with a password", span(millrace.LinkSpan, "click me", "me", "https://u:p@example.com/"), "click me"},
		{"mail link", span(millrace.LinkSpan, "mail me", "me", "mailto:a@example.com"), "mail [me](mailto:a@example.com)"},
		{"link that would end early", span(millrace.LinkSpan, "a b", "b", "https://example.com/(x) y"), "a [b](https://example.com/%28x%29%20y)"},
		{"link after an exclamation mark", span(millrace.LinkSpan, "Stop!here", "here", "https://example.com/"), `Stop\![here](https://example.com/)`},
		{"code with backticks", span(millrace.CodeSpan, "use ``a` now", "``a`", ""), "use ``` ``a` ``` now"},
		{"strong with spaces", span(millrace.StrongSpan, "a b c", " b ", ""), "a **b** c"},
		{"span out of range", millrace.Block{Type: millrace.TextBlock, Text: "ab", Spans: []millrace.Span{{Type: millrace.StrongSpan, Start: 1, End: 9}}}, "ab"},
		{"heading with a closing sequence", millrace.Block{Type: millrace.HeadingBlock, Level: 9, Text: "C #\nnext #"}, `###### C # next \#`},
		{"code that contains a fence", millrace.Block{Type: millrace.CodeBlock, Text: "```\nx\n```", Language: "a`b c"}, "````abc\n```\nx\n```\n````"},
		{"a lone hash as a heading", millrace.Block{Type: millrace.HeadingBlock, Level: 1, Text: "#"}, `# \#`},
		{"a table in a paragraph", text("a | b\n:-- | --\n| c"), "a | b\\\n\\:-- | --\\\n\\| c"},
		{"a line end at the end of a label", millrace.Block{Type: millrace.LinkBlock, Text: "\na\n", URL: "https://example.com/"}, "[a](https://example.com/)"},
		{"line ends of another system in code", span(millrace.CodeSpan, "a\r\r<b>", "a\r\r<b>", ""), "`a  <b>`"},
		{"and in quoted code", millrace.Block{Type: millrace.QuoteBlock, Blocks: []millrace.Block{{Type: millrace.CodeBlock, Text: "a\r<b>\r\nc"}}}, "> ```\n> a\n> <b>\n> c\n> ```"},
		{"HTML as TeX", span(millrace.MathSpan, "so <img src=x> [a](javascript:b)", "<img src=x> [a](javascript:b)", ""), "so $`<img src=x> [a](javascript:b)`$"},
		{"HTML as a formula", millrace.Block{Type: millrace.MathBlock, Text: "x\n\n<script>\n```"}, "````math\nx\n\n<script>\n```\n````"},
		{"a call-out of another alphabet", millrace.Block{Type: millrace.CalloutBlock, Kind: "übung"}, "> **Übung**"},
		{"marks beside letters and punctuation", millrace.Block{Type: millrace.TextBlock, Text: "（水）車", Spans: []millrace.Span{{Type: millrace.StrongSpan, Start: 0, End: 9}}}, "<strong>（水）</strong>車"},
		{"marks that end beside one that starts", millrace.Block{Type: millrace.TextBlock, Text: "abc", Spans: []millrace.Span{{Type: millrace.EmphasisSpan, Start: 0, End: 1}, {Type: millrace.StrongSpan, Start: 1, End: 2}}}, "*a*<strong>b</strong>c"},
		{"code beside code", millrace.Block{Type: millrace.TextBlock, Text: "a<", Spans: []millrace.Span{{Type: millrace.CodeSpan, Start: 0, End: 1}, {Type: millrace.CodeSpan, Start: 1, End: 2}}}, "`a`<code>\\<</code>"},
		{"above and below the line", millrace.Block{Type: millrace.TextBlock, Text: "x2 H2", Spans: []millrace.Span{{Type: millrace.SuperscriptSpan, Start: 1, End: 2}, {Type: millrace.SubscriptSpan, Start: 4, End: 5}}}, "x<sup>2</sup> H<sub>2</sub>"},
		{"a list that counts down", millrace.Block{Type: millrace.ListBlock, Ordered: true, Reversed: true, Items: []millrace.Item{{Text: "a"}, {Text: "b"}}}, "2. a\n1. b"},
		{"numbers that Markdown has not", millrace.Block{Type: millrace.ListBlock, Ordered: true, Start: 1 << 62, Items: []millrace.Item{{Text: "a"}}}, "999999999. a"},
		{"a footnote that starts with code", millrace.Block{Type: millrace.FootnoteBlock, Text: "1", Blocks: []millrace.Block{{Type: millrace.CodeBlock, Text: "a"}}}, "[^1]:\n    ```\n    a\n    ```"},
		{"pipes in the code of a cell", millrace.Block{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: "|a|b", Header: true, Spans: []millrace.Span{{Type: millrace.CodeSpan, Start: 2, End: 4}}}}}}, "| \\|a`\\|b` |\n| --- |"},
		{"image with a bad URL", millrace.Block{Type: millrace.ImageBlock, URL: "javascript:x", Alt: "a", Caption: "c"}, "c"},
		{"table without a header, with spans", millrace.Block{Type: millrace.TableBlock, Rows: [][]millrace.Cell{
			{{Text: "a", Rowspan: 2}, {Text: "b", Colspan: 2}}, {{Text: "c"}, {Text: "d\ne"}},
		}}, "|  |  |  |\n| --- | --- | --- |\n| a | b |  |\n|  | c | d e |"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.TrimSuffix(millrace.Markdown([]millrace.Block{tt.block}), "\n")
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// The size of a table grows with its cells, not with rows times columns.
func TestMarkdownTableSize(t *testing.T) {
	wide := make([]millrace.Cell, 10_000)
	short := []millrace.Cell{{Text: "a"}}
	spanned := slices.Repeat([]millrace.Cell{{Text: "a", Colspan: 1000, Rowspan: 65534}}, 1000)
	for name, first := range map[string][]millrace.Cell{"one wide row": wide, "cells that span everything": spanned} {
		rows := append([][]millrace.Cell{first}, slices.Repeat([][]millrace.Cell{short}, 10_000)...)
		if n := len(millrace.Markdown([]millrace.Block{{Type: millrace.TableBlock, Rows: rows}})); n > 1<<20 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
}

// The size of a nested list grows with its lines: each item is written once, not once per level.
func TestMarkdownDeepList(t *testing.T) {
	var b millrace.Block
	for range 200 {
		item := millrace.Item{Text: "a"}
		if len(b.Items) > 0 {
			item.Blocks = []millrace.Block{b}
		}
		b = millrace.Block{Type: millrace.ListBlock, Items: []millrace.Item{item}}
	}
	md := millrace.Markdown([]millrace.Block{b})
	if got := strings.Count(md, "- a\n"); got != 200 {
		t.Errorf("%d items", got)
	}
	if got := strings.Count(millrace.Text([]millrace.Block{b}), "- a"); got != 200 {
		t.Errorf("%d items in the text", got)
	}
}

func TestMarkdownKeepsListsApart(t *testing.T) {
	list := millrace.Block{Type: millrace.ListBlock, Items: []millrace.Item{{Text: "a"}}}
	if got := millrace.Markdown([]millrace.Block{list, list}); got != "- a\n\n<!-- -->\n\n- a\n" {
		t.Errorf("%q", got)
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("a *b* <c>", 2, 5)
	f.Add("\n# x\n```\n", 0, 3)
	f.Fuzz(func(t *testing.T, s string, from, to int) {
		spans := []millrace.Span{{Type: millrace.LinkSpan, Start: from, End: to, URL: "https://example.com/"}, {Type: millrace.StrongSpan, Start: from, End: to}, {Type: millrace.EmphasisSpan, Start: from, End: to - 1}, {Type: millrace.CodeSpan, Start: from + 1, End: to - 1}}
		for _, typ := range []millrace.BlockType{millrace.TextBlock, millrace.HeadingBlock} {
			got := millrace.Markdown([]millrace.Block{{Type: typ, Text: s, Spans: spans, Level: 1}})
			for l := range strings.SplitSeq(got, "\n") {
				if strings.HasPrefix(l, "#") && typ == millrace.TextBlock || strings.HasPrefix(l, "<") || strings.HasPrefix(l, "    ") || strings.HasPrefix(l, "~~~") {
					t.Errorf("text became markup: %q", got)
				}
			}
		}
	})
}
