package markdown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

type (
	block = millrace.Block
	span  = millrace.Span
	item  = millrace.Item
	cell  = millrace.Cell
)

func para(s string, spans ...span) block {
	return block{Type: millrace.TextBlock, Text: s, Spans: spans}
}

func TestBlocks(t *testing.T) {
	const own = noBase + "a/"
	for _, tt := range []struct {
		name, in string
		want     []block
	}{
		{
			"marks to the byte", "Ä *b* **c `d`** [é](b.md#x \"t\") `` a`b  c ``\\\nend",
			[]block{para(
				"Ä b c d é a`b  c\nend",
				span{Type: millrace.EmphasisSpan, Start: 3, End: 4}, span{Type: millrace.StrongSpan, Start: 5, End: 8}, span{Type: millrace.CodeSpan, Start: 7, End: 8},
				span{Type: millrace.LinkSpan, Start: 9, End: 11, URL: noBase + "b/#x"}, span{Type: millrace.CodeSpan, Start: 12, End: 18},
			)},
		},
		{"escapes and references", `\*a\* &amp; &#x41; &nbsp;&copy; \& a&b ~~gone~~`, []block{para("*a* & A \u00a0© & a&b gone")}},
		{
			"headings", "# One\n\nTwo {#too}\n---\n\n## Two {: #three .x}\n\n### A & B!\n\n### A & B!\n\n#### *e* #\n",
			[]block{
				{Type: millrace.HeadingBlock, Text: "One", Level: 1, Anchor: "one"},
				{Type: millrace.HeadingBlock, Text: "Two", Level: 2, Anchor: "too"},
				{Type: millrace.HeadingBlock, Text: "Two", Level: 2, Anchor: "three"},
				{Type: millrace.HeadingBlock, Text: "A & B!", Level: 3, Anchor: "a--b"},
				{Type: millrace.HeadingBlock, Text: "A & B!", Level: 3, Anchor: "a--b-1"},
				{Type: millrace.HeadingBlock, Text: "e", Level: 4, Anchor: "e", Spans: []span{{Type: millrace.EmphasisSpan, Start: 0, End: 1}}},
			},
		},
		{
			"lists", "3. a\n4. b\n\n   more\n\n   - [x] c\n   - [ ] d\n\n* e",
			[]block{
				{Type: millrace.ListBlock, Ordered: true, Start: 3, Items: []item{
					{Text: "a"},
					{Text: "b", Blocks: []block{para("more"), {Type: millrace.ListBlock, Items: []item{{Text: "c", Task: true, Done: true}, {Text: "d", Task: true}}}}},
				}},
				{Type: millrace.ListBlock, Items: []item{{Text: "e"}}},
			},
		},
		{
			"definitions", "a\nb\n: c\n: d\n\n  e\n",
			[]block{{Type: millrace.DefinitionsBlock, Items: []item{{Term: "a\nb", Text: "c"}, {Text: "d", Blocks: []block{para("e")}}}}},
		},
		{
			"code", "```go title=\"a.go\"\n\tx  \n\n{{< y >}}\n```\n\n~~~{.python .n}\n<b>\n~~~\n\n    in\n     dented\n\n```js{1,3}\nz\n```\n\n```math\nx^2\n```\n",
			[]block{
				{Type: millrace.CodeBlock, Text: "\tx  \n\n{{< y >}}\n", Language: "go", Caption: "a.go"},
				{Type: millrace.CodeBlock, Text: "<b>\n", Language: "python"},
				{Type: millrace.CodeBlock, Text: "in\n dented\n"},
				{Type: millrace.CodeBlock, Text: "z\n", Language: "js"},
				{Type: millrace.MathBlock, Text: "x^2", Language: "tex"},
			},
		},
		{
			"tables", "| a | b |\n|:--|---|\n| `c|` \\| | *d* |\n| e |\n",
			[]block{{Type: millrace.TableBlock, Rows: [][]cell{
				{{Text: "a", Header: true}, {Text: "b", Header: true}},
				{{Text: "`c"}, {Text: "` |"}},
				{{Text: "e"}, {}},
			}}},
		},
		{
			"quotes and alerts", "> a\n> > b\n\n> [!Tip]\n> c\n\n> [!danger]- Mind *it*\n>\n> d\n",
			[]block{
				{Type: millrace.QuoteBlock, Blocks: []block{para("a"), {Type: millrace.QuoteBlock, Blocks: []block{para("b")}}}},
				{Type: millrace.CalloutBlock, Kind: "tip", Blocks: []block{para("c")}},
				{Type: millrace.CalloutBlock, Kind: "caution", Title: "Mind *it*", Blocks: []block{para("d")}},
			},
		},
		{
			"call-outs", "!!! note\n    a\n\n    b\n??? warning inline \"T\"\n    c\n\n:::info Title\nd\n::::tip[E]\ne\n::::\n```\n:::\n```\n:::\n\nf\n\n=== \"Tab\"\n    g\n",
			[]block{
				{Type: millrace.CalloutBlock, Kind: "note", Blocks: []block{para("a"), para("b")}},
				{Type: millrace.CalloutBlock, Kind: "warning", Title: "T", Blocks: []block{para("c")}},
				{Type: millrace.CalloutBlock, Kind: "note", Title: "Title", Blocks: []block{
					para("d"), {Type: millrace.CalloutBlock, Kind: "tip", Title: "E", Blocks: []block{para("e")}}, {Type: millrace.CodeBlock, Text: ":::\n"},
				}},
				para("f"), para("Tab", span{Type: millrace.StrongSpan, End: 3}), para("g"),
			},
		},
		{
			"math", "$$\na^2\n\nb\n$$\n\n$$ c_d $$\n\n\\[ e=f \\]\n\n\\[1\\] g $h_i$, $5 to $6, $`j`$ $$k$$ \\$l_m$\n",
			[]block{
				{Type: millrace.MathBlock, Text: "a^2\n\nb", Language: "tex"},
				{Type: millrace.MathBlock, Text: "c_d", Language: "tex"},
				{Type: millrace.MathBlock, Text: "e=f", Language: "tex"},
				para("[1] g h_i, $5 to $6, j k $l_m$", span{Type: millrace.MathSpan, Start: 6, End: 9}, span{Type: millrace.MathSpan, Start: 21, End: 22}, span{Type: millrace.MathSpan, Start: 23, End: 24}),
			},
		},
		{
			"footnotes", "a[^x] b[^y]\n\n[^y]: Y\n\n    y\n\n[^x]: *X*\n[^z]: unused\n",
			[]block{
				para("a[1] b[2]", span{Type: millrace.FootnoteSpan, Start: 1, End: 4, URL: "fn:1"}, span{Type: millrace.FootnoteSpan, Start: 6, End: 9, URL: "fn:2"}),
				{Type: millrace.FootnoteBlock, Anchor: "fn:1", Text: "1", Blocks: []block{para("X", span{Type: millrace.EmphasisSpan, End: 1})}},
				{Type: millrace.FootnoteBlock, Anchor: "fn:2", Text: "2", Blocks: []block{para("Y"), para("y")}},
			},
		},
		{
			"media and links alone", "![A *b*](dir/x.png \"Cap\")\n\n[![i](y.svg)](z)\n\n![](v.mp4)\n\n[alone](dir/c.md)\n\nhttps://e.example/x\n\n![in](i.png) text <img src=\"j.png\" alt=\"J\">\n",
			[]block{
				{Type: millrace.ImageBlock, URL: noBase + "dir/x.png", Alt: "A b", Caption: "Cap"},
				{Type: millrace.ImageBlock, URL: noBase + "y.svg", Alt: "i"},
				{Type: millrace.VideoBlock, URL: noBase + "v.mp4"},
				{Type: millrace.LinkBlock, URL: noBase + "dir/other/", Text: "alone"},
				{Type: millrace.LinkBlock, URL: "https://e.example/x", Text: "https://e.example/x"},
				{Type: millrace.ImageBlock, URL: noBase + "i.png", Alt: "in"},
				para("text"),
				{Type: millrace.ImageBlock, URL: noBase + "j.png", Alt: "J"},
			},
		},
		{
			"links", "[a](#x) [b](absent.md) [c](javascript:x) [d](//h.example/) [e](mailto:x@y.example) <f@y.example> [g](../up.html?q#f) [h](B.MD) [i][r]\n\n[r]: b.md 'T'",
			[]block{para(
				"a b c d e f@y.example g h i", span{Type: millrace.LinkSpan, Start: 0, End: 1, URL: own + "#x"},
				span{Type: millrace.LinkSpan, Start: 6, End: 7, URL: "http://h.example/"}, span{Type: millrace.LinkSpan, Start: 8, End: 9, URL: "mailto:x@y.example"},
				span{Type: millrace.LinkSpan, Start: 10, End: 21, URL: "mailto:f@y.example"}, span{Type: millrace.LinkSpan, Start: 22, End: 23, URL: noBase + "up.html?q#f"},
				span{Type: millrace.LinkSpan, Start: 26, End: 27, URL: noBase + "b/"},
			)},
		},
		{
			"raw HTML", "<!-- no -->\n<details><summary>S</summary>\n\n**m**\n\n</details>\n\na <b>b <i>c</i></b> <kbd>d</kbd> <a href=\"b.md\">e</a><br>f <!-- g --> <x-y>h</x-y> <b>i <i>j</b> k</i>\n\n" +
				"<table><tr><th>H</th></tr><tr><td><a href=\"b.md#y\">l</a></td></tr></table>\n\n<iframe src=\"https://www.youtube.com/embed/q\" title=\"V\"></iframe>\n<script>x</script>\n",
			[]block{
				para("S"), para("m", span{Type: millrace.StrongSpan, End: 1}),
				para(
					"a b c d e\nf h i j k", span{Type: millrace.StrongSpan, Start: 2, End: 5}, span{Type: millrace.EmphasisSpan, Start: 4, End: 5},
					span{Type: millrace.CodeSpan, Start: 6, End: 7}, span{Type: millrace.LinkSpan, Start: 8, End: 9, URL: noBase + "b/"}, span{Type: millrace.StrongSpan, Start: 14, End: 17},
				),
				{Type: millrace.TableBlock, Rows: [][]cell{{{Text: "H", Header: true}}, {{Text: "l", Spans: []span{{Type: millrace.LinkSpan, End: 1, URL: noBase + "b/#y"}}}}}},
				{Type: millrace.EmbedBlock, URL: "https://www.youtube.com/embed/q", Kind: "youtube", Title: "V"},
			},
		},
		{
			"shortcodes and tags", "{{< note \"T\" >}}\na {{< x y=\"}\" >}}b{{< /x >}} `{{< c >}}` {{</* d */>}}\n{{< /note >}}\n\n{{% comment %}}no{{% /comment %}}{% if x %}e{% endif %}{% comment %} no\n\nno {% endcomment %}\n\n" +
				"{{< highlight sh >}}\n```\n{{ f }}\n{{< /highlight >}}\n\n{{< youtube abc >}}\n\n{{< figure src=\"/p.png\" alt=\"P\" caption=\"C\" >}}\n\n[g]({{< ref \"b.md#h\" >}}) {{ kept }}\n\n[TOC]\n{: .gone}\n",
			[]block{
				{Type: millrace.CalloutBlock, Kind: "note", Title: "T", Blocks: []block{para("a b {{< c >}} {{< d >}}", span{Type: millrace.CodeSpan, Start: 4, End: 13})}},
				{Type: millrace.CodeBlock, Text: "```\n{{ f }}\n", Language: "sh"},
				{Type: millrace.EmbedBlock, URL: "https://www.youtube.com/embed/abc", Kind: "youtube"},
				{Type: millrace.ImageBlock, URL: noBase + "p.png", Alt: "P", Caption: "C"},
				para("g {{ kept }}", span{Type: millrace.LinkSpan, End: 1, URL: noBase + "b/#h"}),
			},
		},
	} {
		if d := cmp.Diff(tt.want, convert(t, tt.in)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestTitles(t *testing.T) {
	f, _ := made(t, map[string]string{
		"a.md": "---\ntitle: Of the matter\n---\n# A heading\n\nx", "b.md": "x\n\n# *Of* the heading\n\ny", "c.md": "---\ntitle: Same\n---\n# same\n\nx",
		"my-own_file.md": "x", "dir/index.md": "x", "README.md": "x",
	})
	for name, want := range map[string]string{
		"/a.md": "Of the matter 2", "/b.md": "Of the heading 2", "/c.md": "Same 1", "/my-own_file.md": "My own file 1", "/dir/index.md": "Dir 1", "/README.md": "Home 1",
	} {
		p := page(t, f, name)
		if got := p.Title + " " + string(rune('0'+len(p.Blocks))); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestComponents(t *testing.T) {
	f, _ := made(t, map[string]string{"a.mdx": "import A from './a'\nimport {\n  B,\n} from 'b'\n\nexport const c = {\n\n  d: 1,\n}\n\nimport duties were paid.\n\n" +
		"<A x={{y: '>'}} />\n<B>\n  <C label=\"L\">\n\n    ```js\n    x\n      y\n    ```\n\n    * e\n\n  </C>\n</B>\n\nf {'h'} {/* i */}<>j</> $a_{k}$ `{l}`\n\n<Admonition type=\"tip\" title=\"M\">\nn\n</Admonition>\n\n      o\n"})
	want := []block{
		para("import duties were paid."),
		{Type: millrace.CodeBlock, Text: "x\n  y\n", Language: "js"},
		{Type: millrace.ListBlock, Items: []item{{Text: "e"}}},
		para("f h j a_{k} {l}", span{Type: millrace.MathSpan, Start: 6, End: 11}, span{Type: millrace.CodeSpan, Start: 12, End: 15}),
		{Type: millrace.CalloutBlock, Kind: "tip", Title: "M", Blocks: []block{para("n")}},
		para("o"),
	}
	if d := cmp.Diff(want, page(t, f, "/a.mdx").Blocks); d != "" {
		t.Error(d)
	}
}

func TestLineEndsAndMark(t *testing.T) {
	f, _ := made(t, map[string]string{"a.md": "\uFEFF---\r\ntitle: A\r\ntags: [x]\r\n---\r\n# B\r\n\r\n```\r\nc\r\n```\r\n"})
	p := page(t, f, "/a.md")
	want := []block{{Type: millrace.HeadingBlock, Text: "B", Level: 1, Anchor: "b"}, {Type: millrace.CodeBlock, Text: "c\n"}}
	if d := cmp.Diff(want, p.Blocks); d != "" || p.Title != "A" || len(p.Tags) != 1 {
		t.Errorf("title %q, tags %q\n%s", p.Title, p.Tags, d)
	}
}

func TestFields(t *testing.T) {
	f, _ := made(t, map[string]string{
		"a.md": "+++\ntitle = 'T'\ndescription = \"D\"\nsummary = 'S'\ndate = 2024-01-02T03:04:05+01:00\nupdated = 2024-02-03\nlang = 'pt_br'\ntags = ['a', 'b']\n" +
			"categories = 'c, a'\nauthors = [{name = 'N <n@x.example>'}, 'm@x.example', 'O']\nsection = 's'\npassword = 'p'\n[sitemap]\ndisable = true\n+++\nx",
		"b.md": "{\"title\": 2024, \"robots\": \"NoIndex, follow\", \"keywords\": [\"k\"], \"author\": \"Q\", \"date\": \"January 2, 2006\"}\nx",
		"c.md": "---\nlast_update: {date: 2024-05-06, author: x}\nunlisted: yes\n---\nx",
	})
	a, b, c := page(t, f, "/a.md"), page(t, f, "/b.md"), page(t, f, "/c.md")
	got := []string{
		a.Title, a.Description, a.Summary, a.Published.String(), a.Modified.String(), a.Language, strings.Join(a.Tags, "|"), a.Author, a.Section,
		b.Title, strings.Join(b.Tags, "|"), b.Author, b.Published.String(), c.Modified.String(),
	}
	want := []string{
		"T", "D", "S", "2024-01-02 02:04:05 +0000 UTC", "2024-02-03 00:00:00 +0000 UTC", "pt-BR", "a|b|c", "N, O", "s",
		"2024", "k", "Q", "2006-01-02 00:00:00 +0000 UTC", "2024-05-06 00:00:00 +0000 UTC",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if a.Access != (millrace.Access{NoIndex: true, Auth: true}) || !b.Access.NoIndex || !c.Access.NoIndex || b.Access.Auth {
		t.Errorf("access %+v %+v %+v", a.Access, b.Access, c.Access)
	}
	if !a.Known.Has(millrace.FieldModified) || b.Known.Has(millrace.FieldModified) {
		t.Error("only the first page has a modification time")
	}
}
