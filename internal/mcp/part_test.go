package mcp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// parts reads all parts of a page, as a client does.
func parts(t testing.TB, blocks []millrace.Block, most budget) (markdown []string) {
	t.Helper()
	var at blockPath
	for range 100_000 {
		s, rest, err := part(blocks, at, most)
		if err != nil {
			t.Fatalf("part at %v of %d: %v", at, most, err)
		}
		if !most.holds(s) {
			t.Fatalf("the part at %v has %d characters and %d bytes, budget %+v:\n%s", at, utf8.RuneCountInString(s), len(s), most, s)
		}
		markdown = append(markdown, s)
		if rest == nil {
			return markdown
		}
		if slices.Compare(rest, at) <= 0 {
			t.Fatalf("the position after %v is %v", at, rest)
		}
		at = rest
	}
	t.Fatal("the page has no end")
	return nil
}

func sentence(n int) string {
	return strings.TrimSpace(strings.Repeat("The wheel turns where the water runs. ", n))
}

func TestPartsAreComplete(t *testing.T) {
	item := func(s string, inner ...millrace.Block) millrace.Item { return millrace.Item{Text: s, Blocks: inner} }
	cell := func(s string) millrace.Cell { return millrace.Cell{Text: s} }
	var rows [][]millrace.Cell
	rows = append(rows, []millrace.Cell{{Text: "Wheel", Header: true}, {Text: "Fall", Header: true}})
	for i := range 60 {
		rows = append(rows, []millrace.Cell{cell(fmt.Sprintf("wheel%d", i)), cell(strings.Repeat("fall ", i%7))})
	}
	var items []millrace.Item
	for i := range 40 {
		items = append(items, item(fmt.Sprintf("item%d %s", i, sentence(i%5))))
	}
	items[20].Blocks = []millrace.Block{text(sentence(40)), {Type: millrace.ListBlock, Items: items[:15:15]}}
	var code strings.Builder
	for i := range 200 {
		fmt.Fprintf(&code, "\tline%d(\"```\")\n", i)
	}
	blocks := []millrace.Block{
		{Type: millrace.HeadingBlock, Level: 1, Text: "Wheels"},
		text(sentence(3)),
		{Type: millrace.HeadingBlock, Level: 2, Text: "Lists"},
		{Type: millrace.ListBlock, Ordered: true, Start: 7, Items: items},
		{Type: millrace.ListBlock, Items: items[:3]},
		{Type: millrace.HeadingBlock, Level: 2, Text: "Code"},
		{Type: millrace.CodeBlock, Language: "go", Text: code.String(), Caption: "Listing"},
		{Type: millrace.QuoteBlock, Cite: "A miller", Blocks: []millrace.Block{text(sentence(50)), {Type: millrace.CodeBlock, Text: strings.Repeat("x = 1\n", 150)}}},
		{Type: millrace.CalloutBlock, Kind: "note", Blocks: []millrace.Block{text(sentence(30))}},
		{Type: millrace.TableBlock, Rows: rows, Caption: "Table"},
		{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{cell(sentence(60)), cell("x")}, {cell("last"), cell("row")}}},
		{Type: millrace.DefinitionsBlock, Items: []millrace.Item{{Term: "leat", Text: sentence(30)}, {Term: "sluice", Text: "A gate."}}},
		{Type: millrace.FootnoteBlock, Text: "1", Blocks: []millrace.Block{text(sentence(30))}},
		{Type: millrace.ImageBlock, URL: "https://mill.example/w.png", Alt: "A wheel", Caption: sentence(30)},
		{Type: millrace.MathBlock, Language: "tex", Text: strings.Repeat("E = m c^2 \\\\\n", 100)},
		text(""),
		text("The end."),
	}
	full := millrace.Markdown(blocks)
	if got := parts(t, blocks, budget{characters: 1 << 30}); len(got) != 1 || got[0] != full {
		t.Fatal("a page within the budget is not one part")
	}
	for _, most := range []budget{{500, 0}, {800, 0}, {2000, 0}, {5000, 0}, {maxPart, 500}} {
		got := parts(t, blocks, most)
		for i, p := range got {
			if fences(p)%2 != 0 {
				t.Errorf("budget %v: part %d has an open fence:\n%s", most, i, p)
			}
			if strings.HasSuffix(strings.TrimSpace(p), "## Lists") || strings.HasSuffix(strings.TrimSpace(p), "## Code") {
				t.Errorf("budget %v: part %d ends with a heading:\n%s", most, i, p)
			}
		}
		all := strings.Join(got, "\n")
		for i := range 200 {
			if n := strings.Count(all, fmt.Sprintf("\tline%d(", i)); n != 1 {
				t.Errorf("budget %v: line %d occurs %d times", most, i, n)
			}
		}
		for i := range 60 {
			if n := strings.Count(all, fmt.Sprintf("| wheel%d |", i)); n != 1 {
				t.Errorf("budget %v: row %d occurs %d times", most, i, n)
			}
		}
		for i := range 40 {
			if !strings.Contains(all, fmt.Sprintf("%d. item%d ", 7+i, i)) && !strings.Contains(all, fmt.Sprintf("%d. item%d\n", 7+i, i)) {
				t.Errorf("budget %v: item %d has the wrong number", most, i)
			}
		}
		if a, b := strings.Count(all, "turns"), strings.Count(full, "turns"); a != b {
			t.Errorf("budget %v: %d sentences, want %d", most, a, b)
		}
	}
}

// fences counts the lines that begin or end a code block, at any indentation.
func fences(s string) (n int) {
	open := ""
	for l := range strings.Lines(s) {
		l = strings.TrimLeft(l, "> \t")
		run := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		switch {
		case len(run) < 3:
		case open == "":
			open = run
			n++
		case run == open && strings.TrimSpace(l) == run:
			open = ""
			n++
		}
	}
	return n
}

func TestNoCharacterIsSplit(t *testing.T) {
	clusters := []string{"e\u0301", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "水", "ß", "a\u20dd"}
	for _, s := range clusters {
		long := strings.Repeat(s, 3000)
		for _, b := range []millrace.Block{text(long), {Type: millrace.CodeBlock, Text: long}} {
			for i, p := range parts(t, []millrace.Block{b}, budget{characters: 501}) {
				p = strings.Trim(p, "`\n")
				if !utf8.ValidString(p) || strings.Trim(strings.ReplaceAll(p, s, ""), " \n") != "" {
					t.Errorf("%q is cut in part %d", s, i)
				}
			}
		}
	}
}

// Spans stay on their words.
func TestSpansArePartOfTheirText(t *testing.T) {
	b := millrace.Block{Type: millrace.TextBlock}
	for i := range 200 {
		at := len(b.Text)
		b.Text += fmt.Sprintf("word%d", i)
		b.Spans = append(b.Spans, millrace.Span{Type: millrace.LinkSpan, Start: at, End: len(b.Text), URL: fmt.Sprintf("https://mill.example/%d", i)})
		b.Text += " and more. "
	}
	all := strings.Join(parts(t, []millrace.Block{b}, budget{characters: 600}), "\n")
	for i := range 200 {
		if !strings.Contains(all, fmt.Sprintf("[word%d](https://mill.example/%d)", i, i)) {
			t.Errorf("link %d is lost", i)
		}
	}
}

// A line of megabytes and deeply nested blocks are also split into parts.
func TestLargePages(t *testing.T) {
	deep := text(strings.Repeat("deep water ", 2000))
	for range 40 {
		deep = millrace.Block{Type: millrace.QuoteBlock, Blocks: []millrace.Block{deep}}
	}
	if n := strings.Count(strings.Join(parts(t, []millrace.Block{deep}, budget{characters: 2000}), " "), "water"); n != 2000 {
		t.Errorf("%d words of a deep quote, want 2000", n)
	}
	stars := text(strings.Repeat("*_[]", 20_000)) // each character is escaped
	if n := strings.Count(strings.Join(parts(t, []millrace.Block{stars}, budget{characters: 5000}), ""), "*"); n != 20_000 {
		t.Errorf("%d stars, want 20000", n)
	}
	if s, rest, err := part([]millrace.Block{text(strings.Repeat("x", 2<<20))}, nil, budget{characters: 500}); err != nil || rest == nil || len(s) > 500 {
		t.Errorf("%d characters of a line of 2 MB, rest %v, %v", len(s), rest, err)
	}
	// The markup around the text is larger than the text.
	huge := strings.Repeat("label ", 10_000)
	for _, b := range []millrace.Block{
		{Type: millrace.FootnoteBlock, Text: huge, Blocks: []millrace.Block{text("a")}},
		{Type: millrace.CalloutBlock, Title: huge, Blocks: []millrace.Block{text(sentence(100))}},
		{Type: millrace.CodeBlock, Language: huge, Text: "x"},
		{Type: millrace.DefinitionsBlock, Items: []millrace.Item{{Term: huge, Text: "a"}}},
		{Type: millrace.TableBlock, Caption: huge, Rows: [][]millrace.Cell{{{Text: "a"}}}},
		{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: huge, Header: true}}, {{Text: huge}}}},
		{Type: millrace.HeadingBlock, Level: 2, Text: huge},
		{Type: millrace.ImageBlock, URL: "https://mill.example/?" + strings.Repeat("x", 10_000), Alt: huge},
		{Type: millrace.LinkBlock, URL: "https://mill.example/?" + strings.Repeat("x", 10_000), Text: "a"},
		{Type: millrace.TextBlock, Text: "a", Spans: []millrace.Span{{Type: millrace.LinkSpan, End: 1, URL: "https://mill.example/?" + strings.Repeat("x", 10_000)}}},
	} {
		parts(t, []millrace.Block{b}, budget{characters: 500})
	}
	if got := parts(t, nil, budget{characters: 500}); !slices.Equal(got, []string{""}) {
		t.Errorf("an empty page: %q", got)
	}
}

// Only blocks that cannot be split are reduced to text. All others keep their markup.
func TestMarksStay(t *testing.T) {
	link := func(s string) millrace.Block {
		return millrace.Block{Type: millrace.TextBlock, Text: s, Spans: []millrace.Span{{Type: millrace.LinkSpan, End: 4, URL: "https://mill.example/"}}}
	}
	long := strings.Repeat("term ", 100)
	items := []millrace.Item{{Term: long, Text: sentence(60)}, {Term: long, Text: "short"}}
	for range 20 {
		items = append(items, millrace.Item{Term: strings.Repeat("word ", 30), Blocks: []millrace.Block{link(sentence(60)), {Type: millrace.CodeBlock, Text: "x = 1"}}})
	}
	nest := millrace.Block{Type: millrace.DefinitionsBlock, Items: items}
	for range 8 {
		nest = millrace.Block{Type: millrace.CalloutBlock, Kind: "note", Title: strings.Repeat("title ", 10), Blocks: []millrace.Block{link(sentence(60)), nest}}
	}
	for _, most := range []budget{{500, 0}, {1000, 0}, {8000, 0}, {maxPart, 500}} {
		all := strings.Join(parts(t, []millrace.Block{{Type: millrace.DefinitionsBlock, Items: items}}, most), "\n")
		if links, code := strings.Count(all, "](https://mill.example/)"), fences(all); links != 20 || code != 40 {
			t.Errorf("budget %v: %d links and %d fences, want 20 and 40", most, links, code)
		}
		if n := strings.Count(all, "turns"); n != 21*60 {
			t.Errorf("budget %v: %d sentences, want %d", most, n, 21*60)
		}
		all = strings.Join(parts(t, []millrace.Block{nest}, most), "\n")
		if n := strings.Count(all, "turns"); n != (21+8)*60 {
			t.Errorf("budget %v: %d nested sentences, want %d", most, n, (21+8)*60)
		}
	}
}

// randomBlocks returns nested random blocks.
func randomBlocks(r *rand.Rand, depth int) (out []millrace.Block) {
	types := []millrace.BlockType{
		millrace.HeadingBlock, millrace.TextBlock, millrace.ListBlock, millrace.DefinitionsBlock, millrace.CodeBlock, millrace.TableBlock,
		millrace.QuoteBlock, millrace.CalloutBlock, millrace.FootnoteBlock, millrace.LinkBlock, millrace.MathBlock,
	}
	some := func() string { return strings.Repeat("water ", r.IntN(120)) + "wheel" }
	for range 1 + r.IntN(5) {
		b := millrace.Block{Type: types[r.IntN(len(types))], Text: some(), Level: 1 + r.IntN(6)}
		switch b.Type {
		case millrace.ListBlock, millrace.DefinitionsBlock:
			b.Text, b.Ordered, b.Reversed = "", r.IntN(2) == 0, r.IntN(4) == 0
			for range r.IntN(9) {
				it := millrace.Item{Text: some()}
				if b.Type == millrace.DefinitionsBlock {
					it.Term = "term"
				}
				if depth > 0 && r.IntN(3) == 0 {
					it.Blocks = randomBlocks(r, depth-1)
				}
				b.Items = append(b.Items, it)
			}
		case millrace.TableBlock:
			b.Text = ""
			for range r.IntN(9) {
				b.Rows = append(b.Rows, []millrace.Cell{{Text: some()}, {Text: some()}})
			}
		case millrace.QuoteBlock, millrace.CalloutBlock, millrace.FootnoteBlock:
			if b.Type == millrace.FootnoteBlock {
				b.Text = "1"
			}
			if depth > 0 {
				b.Blocks = randomBlocks(r, depth-1)
			}
		}
		out = append(out, b)
	}
	return out
}

func TestPartsOfRandomPages(t *testing.T) {
	pages := 100
	if testing.Short() {
		pages = 30
	}
	for seed := range pages {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		blocks := randomBlocks(r, 3)
		got := parts(t, blocks, budget{characters: 500 + r.IntN(3000)})
		count := func(s string) int { return strings.Count(s, "w") }
		if diff := cmp.Diff(count(millrace.Markdown(blocks)), count(strings.Join(got, "\n"))); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
	}
}

func FuzzPlace(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	blocks := randomBlocks(r, 3)
	const revision = "0123456789abcdef0123"
	f.Add("0123456789abcdef.0")
	f.Add("0123456789abcdef.1.2.3")
	f.Add("0123456789abcdef.99999999999999999999")
	f.Add("x.0")
	f.Fuzz(func(t *testing.T, cursor string) {
		at, err := blockPathOf(cursor, revision)
		if err != nil {
			return
		}
		s, rest, err := part(blocks, at, budget{characters: 600})
		if err == nil && !(budget{characters: 600}).holds(s) {
			t.Errorf("%d characters", len(s))
		}
		if err == nil && rest != nil && at != nil && slices.Compare(rest, at) <= 0 {
			t.Errorf("the position after %v is %v", at, rest)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("a\x00\x1b[31mb\u202e\U000e0041\xff", 3)
	f.Fuzz(func(t *testing.T, s string, most int) {
		for _, got := range []string{canon.Visible(s), line(s), address(s)} {
			if !utf8.ValidString(got) || strings.IndexFunc(got, canon.IsInvisible) >= 0 {
				t.Errorf("%q of %q", got, s)
			}
		}
		if most = max(1, most%100); s != "" {
			if n := cut(s, most, most%2 == 0); n <= 0 || n > len(s) {
				t.Errorf("cut %d of %q", n, s)
			}
		}
	})
}
