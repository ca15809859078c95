package openfeeder

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var mills = millrace.Site{Base: base}

// A written document is read back as the same page, and carrying a page twice does not change
// it further.
func TestCarry(t *testing.T) {
	seeds := uint64(testkit.Size(8, 8, 40))
	for seed := range seeds {
		for _, p := range protocoltest.Pages(seed) {
			w := documentOf(mills, p)
			if w == nil {
				continue
			}
			doc := w.encode()
			if !json.Valid(doc) {
				t.Fatalf("%s", doc)
			}
			back, err := decodePage(doc)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(w, back, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s is read otherwise than written (-want +got):\n%s", p.URL, diff)
			}
			once := back.read()
			if diff := cmp.Diff(carry(mills, p), once, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-carried +read):\n%s", p.URL, diff)
			}
			if diff := cmp.Diff(once, carry(mills, once), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(millrace.Page{}, "Version")); diff != "" {
				t.Errorf("%s (-once +twice):\n%s", p.URL, diff)
			}
		}
	}
}

// The blocks of a page can be restored from its chunks.
func TestBlocks(t *testing.T) {
	text := func(s string) []millrace.Block { return []millrace.Block{{Type: millrace.TextBlock, Text: s}} }
	list := func(ordered bool, items ...millrace.Item) millrace.Block {
		return millrace.Block{Type: millrace.ListBlock, Ordered: ordered, Items: items}
	}
	for _, want := range [][]millrace.Block{
		{{Type: millrace.HeadingBlock, Level: 3, Text: "Opening"}},
		text("One\nand two."),
		{{Type: millrace.CodeBlock, Text: "\tif a {\n\n\t\tb()\n\t}"}},
		{{Type: millrace.QuoteBlock, Blocks: text("Water is patient.")}},
		{list(false, millrace.Item{Text: "one"}, millrace.Item{Text: "two\nlines"})},
		{list(true, millrace.Item{Text: "one"}, millrace.Item{Text: "two", Blocks: []millrace.Block{list(false, millrace.Item{Text: "in"}, millrace.Item{Text: "side"})}})},
		{{Type: millrace.ListBlock, Ordered: true, Start: 9, Items: []millrace.Item{{Text: "nine"}, {Text: "ten\nand more"}}}},
		{list(false, millrace.Item{Text: "open", Task: true}, millrace.Item{Text: "done", Task: true, Done: true})},
		{{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: "Gate"}, {Text: "Height"}}, {{Text: "main"}, {Text: "2 m"}}}}},
		{{Type: millrace.DefinitionsBlock, Items: []millrace.Item{{Term: "Leat", Text: "A channel."}, {Term: "Sluice", Text: "A gate."}}}},
	} {
		got := carry(mills, &millrace.Page{URL: "/x", Blocks: want, Known: millrace.AllFields})
		if diff := cmp.Diff(want, got.Blocks, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	// Chunks of other sites become the closest blocks.
	for c, want := range map[piece]millrace.Block{
		{Type: "heading", Text: "H"}:                         {Type: millrace.HeadingBlock, Level: 2, Text: "H"},
		{Type: "heading", Text: "H", Blocks: "h9:0"}:         {Type: millrace.HeadingBlock, Level: 2, Text: "H"},
		{Type: "heading", Text: "H", Blocks: "h4:0"}:         {Type: millrace.HeadingBlock, Level: 4, Text: "H"},
		{Type: "code", Text: "a\n\nb"}:                       {Type: millrace.CodeBlock, Text: "a\n\nb"},
		{Type: "list", Text: "a, b and c"}:                   text("a, b and c")[0],
		{Type: "list", Text: "- a"}:                          list(false, millrace.Item{Text: "a"}),
		{Type: "table", Text: "a b"}:                         text("a b")[0],
		{Text: "x"}:                                          text("x")[0],
		{Type: "paragraph", Text: strings.Repeat("a", 9999)}: text(strings.Repeat("a", 9999))[0],
	} {
		if diff := cmp.Diff([]millrace.Block{want}, blocksOf([]piece{c, {Type: "paragraph", Text: " \n"}})); diff != "" {
			t.Errorf("%q %q (-want +got):\n%s", c.Type, kit.Short(c.Text), diff)
		}
	}
}

// In a chunk of another site, empty lines separate paragraphs. In a chunk written by millrace,
// the member blocks contains the start of each block.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		chunk piece
		want  []chunk.Part
	}{
		{piece{Type: "paragraph", Text: "a\nb\n\nc\n \n\nd"}, []chunk.Part{{Type: "paragraph", Text: "a\nb"}, {Type: "paragraph", Text: "c"}, {Type: "paragraph", Text: "d"}}},
		{piece{Type: "list", Text: "- a\n\n- b"}, []chunk.Part{{Type: "list", Text: "- a\n\n- b"}}},
		{piece{Type: "list", Text: "Ü\nb\n\n  c\n\n- d", Blocks: "h3:0 p:2 c:5 l:10"}, []chunk.Part{
			{Type: "heading", Level: 3, Text: "Ü"}, {Type: "paragraph", Text: "b"}, {Type: "code", Text: "  c"}, {Type: "list", Text: "- d"},
		}},
		{piece{Type: "paragraph", Text: "a\n\nb", Blocks: "p:0"}, []chunk.Part{{Type: "paragraph", Text: "a\n\nb"}}},
		// The member blocks does not match the text.
		{piece{Type: "code", Text: "a\n\nb", Blocks: "p:1"}, []chunk.Part{{Type: "code", Text: "a\n\nb"}}},
		{piece{Type: "code", Text: "a", Blocks: "p:0 p:-1"}, []chunk.Part{{Type: "code", Text: "a"}}},
		{piece{Type: "code", Text: "a", Blocks: "x:0"}, []chunk.Part{{Type: "code", Text: "a"}}},
		{piece{Type: "code", Text: "a", Blocks: "p:0 : 2"}, []chunk.Part{{Type: "code", Text: "a"}}},
	} {
		if diff := cmp.Diff(c.want, partsOf(&c.chunk)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.chunk, diff)
		}
	}
}

// Several blocks share a chunk and are restored with its member blocks.
func TestPassages(t *testing.T) {
	blocks := []millrace.Block{
		{Type: millrace.HeadingBlock, Level: 2, Text: "Mühle"},
		{Type: millrace.TextBlock, Text: "It has\n\ntwo stones."},
		{Type: millrace.CodeBlock, Text: "\tgrind()"},
	}
	w := documentOf(mills, &millrace.Page{URL: "/x", Title: "T", Blocks: blocks, Known: millrace.AllFields})
	want := []piece{{ID: w.Chunks[0].ID, Type: "paragraph", Text: "Mühle\nIt has\n\ntwo stones.\n\n\tgrind()", Blocks: "h2:0 p:6 c:27"}}
	if diff := cmp.Diff(want, w.Chunks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(blocks, w.read().Blocks, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSummary(t *testing.T) {
	long := strings.Repeat("word ", 200)
	for text, want := range map[string]string{
		"":                             "",
		" \n ":                         "",
		"One.":                         "One.",
		"One. Two! Three? Four.":       "One. Two! Three?",
		"One\n\n two":                  "One two",
		"See Fig. 3 of e.g. this. Two": "See Fig. 3 of e.g. this. Two",
		"Mr. X. Y. Zed came. He went. They saw. All.": "Mr. X. Y. Zed came. He went. They saw.",
		"水は流れる。 石は残る。 終わり。 もう一つ。":                     "水は流れる。 石は残る。 終わり。",
		"First here. W" + long:                        "First here.",
		long:                                          strings.TrimSpace(long[:395]) + "…",
		strings.Repeat("x", 9999):                     strings.Repeat("x", 399) + "…",
	} {
		got := summarize(text)
		if got != want {
			t.Errorf("%q: %q, want %q", kit.Short(text), got, want)
		}
		if again := summarize(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
	}
	for _, c := range []struct {
		page millrace.Page
		want string
	}{
		{millrace.Page{Summary: "S.", Description: "D."}, "S."},
		{millrace.Page{Description: "D.", Blocks: millrace.TextBlocks("T.")}, "D."},
		{millrace.Page{Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Text: "H"}, {Type: millrace.TextBlock, Text: "Text of it."}}}, "Text of it."},
		{millrace.Page{Blocks: []millrace.Block{{Type: millrace.ListBlock, Items: []millrace.Item{{Text: "one"}}}}}, "- one"},
		{millrace.Page{Blocks: []millrace.Block{{Type: millrace.CodeBlock, Text: "x"}}}, ""},
	} {
		if got := summaryOf(&c.page); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestPublished(t *testing.T) {
	for u, want := range map[string]string{
		"/a": base + "a", base + "b": base + "b", "/?x=1": base + "?x=1", "https://elsewhere.example/": "", "http://mill.example/": "", base[:len(base)-1] + "//odd": base[:len(base)-1] + "//odd",
	} {
		got, ok := published(mills, &millrace.Page{URL: u})
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v", u, got, ok)
		}
		if tag, err := tag(mills, &millrace.Page{URL: u}); err != nil || (tag != "") != ok {
			t.Errorf("%s has the tag %q, %v", u, tag, err)
		}
		if back, err := parseURL(mills, relative(base, got)); ok && (err != nil || back != got) {
			t.Errorf("%s is requested as %s, which is read as %s, %v", got, relative(base, got), back, err)
		}
	}
	if carry(mills, &millrace.Page{URL: "/a", Kind: millrace.Archive}) != nil {
		t.Error("an archive was carried")
	}
	for tag, want := range map[string]string{"en": "en", "zh-Hant-TW": "zh-Hant-TW", "": "de", "e": "de", "en_GB": "de", "en--GB": "de", "1en": "de", "en-GB!": "de"} {
		if got := languageOf(tag, "de"); got != want {
			t.Errorf("%q: %q", tag, got)
		}
	}
}

// Carrying the blocks of any chunk twice does not change them further, whatever its members.
func FuzzBlock(f *testing.F) {
	f.Add("list", "- a\n- b\n  - c", "")
	f.Add("list", "Term\n  means\n  [x] more", "")
	f.Add("list", "1. a\n   b\n2. c | d", "l:0")
	f.Add("list", "a | b\nc | d", "h2:0 p:4 x")
	f.Add("heading", "H", "h3:0")
	f.Add("paragraph", "H\n\tx\n\nü\n\nz", "h3:0 c:2 p:6 q:9")
	f.Add("quote", "— who\n\nmore", "q:9")
	f.Fuzz(func(t *testing.T, kind, text, member string) {
		if len(text) > 1900 || !utf8.ValidString(text) {
			t.Skip()
		}
		blocks := blocksOf([]piece{{Type: kind, Text: text, Blocks: member}})
		if len(blocks) == 0 && !blank(text) {
			t.Fatalf("%d blocks", len(blocks))
		}
		once := carry(mills, &millrace.Page{URL: "/x", Title: "T", Summary: "S.", Blocks: blocks})
		if diff := cmp.Diff(once, carry(mills, once), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(millrace.Page{}, "Version")); diff != "" {
			t.Errorf("(-once +twice):\n%s", diff)
		}
	})
}

func FuzzSummary(f *testing.F) {
	f.Add("One. Two! Three? Four.")
	f.Add("Mr. X said… so. 終わり。 " + strings.Repeat("word ", 90))
	f.Add(strings.Repeat("x", 401))
	f.Fuzz(func(t *testing.T, text string) {
		once := summarize(text)
		if again := summarize(once); again != once {
			t.Errorf("%q becomes %q", once, again)
		}
		if n := utf8.RuneCountInString(once); n > maxSummary || (once == "") != (len(strings.Fields(text)) == 0) {
			t.Errorf("%d characters: %q", n, once)
		}
	})
}
