package markdown

import (
	"context"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/commonmark"
)

// words returns only the letters and digits of a text.
func words(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
}

// check reports invalid blocks.
func check(t *testing.T, blocks []millrace.Block, depth int) {
	t.Helper()
	if depth > 2*commonmark.MaxDepth+10 {
		t.Fatal("blocks are nested too deeply")
	}
	spans := func(text string, list []millrace.Span) {
		if !utf8.ValidString(text) {
			t.Errorf("%q is not UTF-8", text)
		}
		for i, s := range list {
			if s.Start < 0 || s.Start >= s.End || s.End > len(text) || !utf8.RuneStart((text + " ")[s.Start]) || !utf8.RuneStart((text + " ")[s.End]) {
				t.Errorf("span %+v of %q", s, text)
			}
			if s.Type == millrace.LinkSpan && !millrace.SafeURL(s.URL) {
				t.Errorf("link to %q", s.URL)
			}
			for _, o := range list[:i] {
				if o.Start > s.Start || o.Start == s.Start && o.End < s.End || o.End > s.Start && o.End < s.End {
					t.Errorf("spans %+v, %+v of %q", o, s, text)
				}
			}
		}
	}
	for _, b := range blocks {
		spans(b.Text, b.Spans)
		for _, u := range []string{b.URL, b.Poster} {
			if u != "" && !millrace.SafeURL(u) {
				t.Errorf("%s with URL %q", b.Type, u)
			}
		}
		check(t, b.Blocks, depth+1)
		for _, it := range b.Items {
			spans(it.Text, it.Spans)
			check(t, it.Blocks, depth+1)
		}
		for _, row := range b.Rows {
			for _, c := range row {
				spans(c.Text, c.Spans)
			}
		}
	}
}

// dialects returns a snapshot of each kind, over one folder.
func dialects(t testing.TB) []*snapshot {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "x", "b.md": "# B", "a.mdx": "x"})
	var out []*snapshot
	for _, k := range []Kind{Plain, Hugo, Jekyll, MkDocs, Docusaurus} {
		s, err := open(t, dir, &Options{Kind: k}).state(context.Background())
		must(t, err)
		out = append(out, s)
	}
	return out
}

// convertIn converts a text in the dialect of a site.
func convertIn(t testing.TB, s *snapshot, file, in string) ([]millrace.Block, error) {
	l, err := s.linker(path.Join(s.roots()[0], file), "/a/")
	must(t, err)
	blocks, _, err := s.blocks(context.Background(), lineEnds([]byte(in)), l, matter{})
	return blocks, err
}

// FuzzConvert checks that any text converts to valid blocks in every dialect, and that the result
// is always the same.
func FuzzConvert(f *testing.F) {
	f.Add("# a {#b}\n\n> [!NOTE]\n> c [d](b.md) `e`\n\n!!! tip\n    f\n\n:::x\n- [ ] g\n:::\n")
	f.Add("{{< a >}}b{{< /a >}} {% raw %}{{ c }}{% endraw %} <b>d</b> <A>{e}</A>\n\n| f |\n|---|\n| $g_h$ |\n")
	all := dialects(f)
	f.Fuzz(func(t *testing.T, in string) {
		if !utf8.ValidString(in) || strings.Contains(in, "\x00") {
			t.Skip()
		}
		for _, s := range all {
			for _, file := range []string{"a.md", "a.mdx"} {
				blocks, err := convertIn(t, s, file, in)
				if err != nil {
					t.Fatal(err)
				}
				check(t, blocks, 0)
				again, _ := convertIn(t, s, file, in)
				if millrace.Text(blocks) != millrace.Text(again) {
					t.Error("the same text results in different blocks")
				}
			}
		}
	})
}

// FuzzMatter checks that any front matter is parsed or rejected.
func FuzzMatter(f *testing.F) {
	f.Add("---\na: &b [1, *b]\nc: |\n  d\n---\ne")
	f.Add("+++\na = [1, {b = 2024-01-01}]\n+++\nc")
	f.Add("{\"a\": {\"b\": [1.5, null]}}\nc")
	f.Fuzz(func(t *testing.T, in string) {
		h, err := parseHead([]byte(in))
		if err != nil {
			if millrace.Status(err) != 400 && millrace.Status(err) != 413 {
				t.Errorf("%v", err)
			}
			return
		}
		if h.body < 0 || h.body > len(in) {
			t.Errorf("the text starts at %d of %d", h.body, len(in))
		}
		m := h.matter
		for name := range m {
			_ = m.text(name) + author(m, nil)
			m.list(name, true)
			m.flag(name)
			m.under(name)
			m.date(name)
		}
		hiddenFromSearch(m)
	})
}

// TestRoundTrip checks that the text of blocks survives a conversion to Markdown and back.
func TestRoundTrip(t *testing.T) {
	plain := dialects(t)[0]
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"word", "Ümläut", "*", "_", "`", "[", "]", "(", ")", "<", ">", "#", "1.", "-", "+", "|", "\\", "&amp;", "~~", "$", ":::note",
		"=", "===", "---", "    four", "\n", "$$", "\\[", "[^1]", "[^1]: n", "![", "https://e.example/", "a@b.example", "<b>", "<!-- c -->", "\t", "::", "import x", "~~~",
	}
	phrase := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(pieces[r.IntN(len(pieces))])
			if r.IntN(2) == 0 {
				b.WriteByte(' ')
			}
		}
		return strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "\n", "\x01")), " ")
	}
	some := func() string { return strings.Trim(strings.ReplaceAll(phrase(1+r.IntN(6)), "\x01", " ")+" w", " ") }
	var list func(depth int) millrace.Block
	list = func(depth int) millrace.Block {
		b := millrace.Block{Type: millrace.ListBlock, Ordered: r.IntN(2) == 0}
		for range 1 + r.IntN(3) {
			it := millrace.Item{Text: some()}
			if depth < 3 && r.IntN(2) == 0 {
				it.Blocks = append(it.Blocks, list(depth+1))
			}
			b.Items = append(b.Items, it)
		}
		return b
	}
	for range 3000 {
		var blocks []millrace.Block
		for range 1 + r.IntN(4) {
			switch r.IntN(7) {
			case 0:
				blocks = append(blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 1 + r.IntN(6), Text: some()})
			case 1:
				blocks = append(blocks, list(0))
			case 2:
				blocks = append(blocks, millrace.Block{Type: millrace.CodeBlock, Text: phrase(5) + "\n" + phrase(3) + "\n", Language: "go"})
			case 3:
				blocks = append(blocks, millrace.Block{Type: millrace.QuoteBlock, Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: some()}}})
			case 4:
				blocks = append(blocks, millrace.Block{Type: millrace.TableBlock, Rows: [][]millrace.Cell{
					{{Text: some(), Header: true}, {Text: some(), Header: true}}, {{Text: some()}, {Text: some()}},
				}})
			default:
				text := some()
				blocks = append(blocks, millrace.Block{Type: millrace.TextBlock, Text: text, Spans: []millrace.Span{{Type: millrace.CodeSpan, Start: len(text) - 1, End: len(text)}}})
			}
		}
		md := millrace.Markdown(blocks)
		got, err := convertIn(t, plain, "a.md", md)
		must(t, err)
		if want, got := words(millrace.Text(blocks)), words(millrace.Text(got)); want != got {
			t.Fatalf("blocks say\n%s\nMarkdown is\n%s\nwhich says\n%s", want, md, got)
		}
	}
}

// TestNothingIsLost combines syntax of CommonMark with that of the dialects. None of it may
// stop the parser before the end of the text.
func TestNothingIsLost(t *testing.T) {
	for _, s := range dialects(t) {
		for _, in := range []string{
			"      deep\n\nend", "\t\tdeep\nend", "- a\n\n      deep\n\nend", ":::note\n      deep\n\nend", "!!! note\n            deep\n\nend", "$$\na\n\nend",
			"> [!NOTE]\n\nend", "{{< a\n\nend", "{% raw %}\n\nend", "`a\n\nend", "<div>\n\nend", "<!-- a -->\nend", "~~~\n~~~\nend", "$a\n\n$$ b\n\nend", "{a\n\nend",
		} {
			blocks, err := convertIn(t, s, "a.md", in)
			must(t, err)
			if !strings.Contains(millrace.Text(blocks), "end") {
				t.Errorf("%s: %q says %q", s.kind, in, millrace.Text(blocks))
			}
		}
	}
}
