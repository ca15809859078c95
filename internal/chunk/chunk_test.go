package chunk

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

type block = millrace.Block

func text(s string) block { return block{Type: millrace.TextBlock, Text: s} }
func heading(level int, s string) block {
	return block{Type: millrace.HeadingBlock, Level: level, Text: s}
}
func code(s string) block { return block{Type: millrace.CodeBlock, Text: s} }

// formatParts formats parts, one string each.
func formatParts(parts []Part) []string {
	var out []string
	for _, c := range parts {
		kind := c.Type
		if c.Level > 0 {
			kind = fmt.Sprint(kind, c.Level)
		}
		out = append(out, kind+": "+c.Text)
	}
	return out
}

func TestParts(t *testing.T) {
	item := func(s string, blocks ...block) millrace.Item { return millrace.Item{Text: s, Blocks: blocks} }
	list := func(items ...millrace.Item) block { return block{Type: millrace.ListBlock, Items: items} }
	for _, c := range []struct {
		name   string
		blocks []block
		want   []string
	}{
		{"nothing", nil, nil},
		{"empty blocks", []block{{}, text(" \n"), heading(1, ""), list(), code("\n"), {Type: millrace.ImageBlock}}, nil},
		{
			"text",
			[]block{heading(2, " A  title\n"), text(" one\ntwo ")},
			[]string{"heading2: A title", "paragraph: one\ntwo"},
		},
		{"an invalid level", []block{heading(9, "x"), heading(0, "y")}, []string{"heading6: x", "heading1: y"}},
		{
			"list",
			[]block{list(item("one"), item("two\nlines", list(item("nested"))), millrace.Item{Text: "task", Task: true, Done: true})},
			[]string{"list: - one\n- two\n  lines\n  - nested\n- [x] task"},
		},
		{
			"code in a list",
			[]block{{Type: millrace.ListBlock, Ordered: true, Items: []millrace.Item{
				item("run", code("  go test\n"), text("and see")), item("", text("then")),
			}}},
			[]string{"list: 1. run", "code:   go test", "list: and see\n2. then"},
		},
		{
			"definitions",
			[]block{{Type: millrace.DefinitionsBlock, Items: []millrace.Item{{Term: "mill", Text: "a machine"}}}},
			[]string{"list: mill\n  a machine"},
		},
		{
			"code",
			[]block{{Type: millrace.CodeBlock, Caption: "Listing 1", Text: "\n\tindented\n\n\tagain\n"}},
			[]string{"paragraph: Listing 1", "code: \tindented\n\n\tagain"},
		},
		{
			"table",
			[]block{{Type: millrace.TableBlock, Caption: "Prices", Rows: [][]millrace.Cell{
				{{Text: "thing", Header: true}, {Text: "price", Header: true}}, {{Text: "mill"}, {Text: "1"}},
			}}},
			[]string{"paragraph: Prices", "list: thing | price\nmill | 1"},
		},
		{
			"table of one row",
			[]block{{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: "left"}, {Text: "right"}}}}},
			[]string{"paragraph: left | right"},
		},
		{
			"quote",
			[]block{{Type: millrace.QuoteBlock, Cite: "Miller", Blocks: []block{heading(1, "Loud"), text("said"), code("x")}}, text("after")},
			[]string{"quote: Loud", "quote: said", "code: x", "quote: — Miller", "paragraph: after"},
		},
		{
			"call-outs",
			[]block{
				{Type: millrace.CalloutBlock, Title: "Note", Blocks: []block{text("mind"), text("more")}},
				{Type: millrace.CalloutBlock, Title: "Alone"},
				{Type: millrace.CalloutBlock, Title: "Code", Blocks: []block{code("x")}},
			},
			[]string{"paragraph: Note\nmind", "paragraph: more", "paragraph: Alone", "paragraph: Code", "code: x"},
		},
		{
			"footnote",
			[]block{{Type: millrace.FootnoteBlock, Text: "1", Blocks: []block{text("see")}}},
			[]string{"paragraph: [1] see"},
		},
		{
			"media",
			[]block{
				{Type: millrace.ImageBlock, Alt: "a mill", Caption: "The mill"},
				{Type: millrace.ImageBlock, Alt: "same", Caption: "same"},
				{Type: millrace.VideoBlock, Title: "Film", Media: &millrace.Media{
					Chapters: []millrace.Chapter{{Title: "One"}, {Title: "Two", Time: 5}}, Transcript: "Hello.\n\nBye.",
				}},
				{Type: millrace.EmbedBlock, Title: "Map"},
				{Type: millrace.MathBlock, Text: "a^2"},
				{Type: millrace.LinkBlock, Text: "next"},
			},
			[]string{
				"paragraph: a mill\nThe mill", "paragraph: same", "paragraph: Film", "list: - One\n- Two", "paragraph: Hello.", "paragraph: Bye.",
				"paragraph: Map", "paragraph: a^2", "paragraph: next",
			},
		},
		{"a type of tomorrow", []block{{Type: "poem", Text: "lines", Blocks: []block{text("inside")}}}, []string{"paragraph: lines", "paragraph: inside"}},
	} {
		if d := cmp.Diff(c.want, formatParts(Parts(&millrace.Page{Blocks: c.blocks}))); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		checkInvariants(t, &millrace.Page{Blocks: c.blocks})
	}
}

// checkInvariants checks everything that the package guarantees for any page.
func checkInvariants(t testing.TB, page *millrace.Page) {
	t.Helper()
	parts := Parts(page)
	for _, c := range parts {
		if n := utf8.RuneCountInString(c.Text); n == 0 || n > maxPart+1 {
			t.Errorf("%s of %d characters", c.Type, n)
		}
		if strings.TrimSpace(c.Text) == "" || strings.TrimRightFunc(c.Text, unicode.IsSpace) != c.Text {
			t.Errorf("text %q", c.Text)
		}
		if (c.Type == Heading) != (c.Level > 0) {
			t.Errorf("%s of level %d", c.Type, c.Level)
		}
	}
	ids := map[string]bool{}
	var found []Part
	for i, p := range Passages(page) {
		if n := utf8.RuneCountInString(p.Text); n > MaxPassage+1 {
			t.Errorf("a passage of %d characters", n)
		}
		if len(p.ID) != 13 || strings.Trim(p.ID, "0123456789abcdefghijklmnopqrstuv") != "" || ids[p.ID] {
			t.Errorf("id %q", p.ID)
		}
		ids[p.ID] = true
		kinds := map[string]bool{}
		for k, part := range p.Parts {
			kinds[part.Type] = true
			if !strings.HasPrefix(p.Text[p.Start[k]:], part.Text) {
				t.Errorf("passage %d: part %d is not at %d", i, k, p.Start[k])
			}
		}
		if p.Parts != nil && (!kinds[p.Type] || p.Type == Heading && len(kinds) > 1) {
			t.Errorf("a passage of type %q", p.Type)
		}
		found = append(found, p.Parts...)
	}
	if d := cmp.Diff(parts, found); d != "" {
		t.Errorf("the parts differ from those of the passages: %s", d)
	}
}

// sentence returns a random sentence. Two calls practically never return the same one.
func sentence(r *rand.Rand) string {
	var w []string
	for range 4 + r.IntN(14) {
		w = append(w, strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(3))+fmt.Sprint(r.IntN(1000)))
	}
	return "S" + strings.Join(w, " ") + "."
}

func TestDivide(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var latin, lines strings.Builder
	for range 2000 {
		latin.WriteString(sentence(r) + " ")
		lines.WriteString("\t" + sentence(r) + "\n")
	}
	for _, c := range []struct {
		name, text string
		byLine     bool
		ends       string // end of every part except the last
	}{
		{"sentences", latin.String(), false, "."},
		{"questions", strings.ReplaceAll(latin.String(), ".", "?”"), false, "”"},
		{"lines", lines.String(), true, "."},
		{"Chinese", strings.Repeat("水车把水引到磨坊。", 2000), false, "。"},
		{"Japanese", strings.Repeat("「水車は水を引く。」", 2000), false, "」"},
		{"Thai, which has spaces for stops", strings.Repeat("กังหันน้ำนำน้ำไปสู่โรงสี ", 2000), false, ""},
		{"Arabic", strings.Repeat("تحمل الساقية الماء إلى الطاحونة؟ ", 2000), false, "؟"},
		{"clauses only", strings.Repeat("one thing and another, ", 2000), false, ","},
		{"words only", strings.Repeat("words ", 5000), false, "s"},
		{"no possible cut", strings.Repeat("x", 50_000), false, "x"},
		{"letters with marks", strings.Repeat("e\u0301", 20_000), false, "\u0301"},
		{"initials and short forms", strings.Repeat("Mr. J. Smith of St. Ives, e.g. Fig. 3, came home and went to bed early. ", 500), false, "early."},
		{"no UTF-8", strings.Repeat("\xff\xfe", 10_000), false, ""},
	} {
		if c.byLine {
			checkInvariants(t, &millrace.Page{Blocks: []block{code(c.text)}})
		}
		page := &millrace.Page{Blocks: []block{text(c.text)}}
		checkInvariants(t, page)
		chunks := Parts(page)
		for i, p := range chunks[:len(chunks)-1] {
			if !strings.HasSuffix(p.Text, c.ends) {
				t.Errorf("%s: part %d ends in %q", c.name, i, p.Text[max(0, len(p.Text)-20):])
			}
		}
		if n, m := utf8.RuneCountInString(c.text), len(chunks); n/m < maxPart/3 {
			t.Errorf("%s: %d parts of %d characters", c.name, m, n)
		}
	}
}

// The time for one paragraph of five megabytes of any text is proportional to its size.
func TestLong(t *testing.T) {
	size := testkit.Size(1<<18, 1<<19, 5<<20)
	r := rand.New(rand.NewPCG(2, 2))
	var prose strings.Builder
	for prose.Len() < size {
		prose.WriteString(sentence(r) + " ")
	}
	fullSize := size
	size /= 5 // for artificial texts
	for _, s := range []string{
		prose.String(), strings.Repeat("x", fullSize), strings.Repeat(". ", size/2), strings.Repeat(" ", size) + "x", strings.Repeat("a. ", size/3),
		strings.Repeat("水", size/3), strings.Repeat("\u0301", size/2), strings.Repeat(".", size), strings.Repeat("x\n", size/2),
		strings.Repeat("a\u200d", size/4),
	} {
		start := time.Now()
		page := &millrace.Page{Blocks: []block{text(s)}}
		n := len(Passages(page))
		if d := time.Since(start); d > 2*time.Minute {
			t.Errorf("%d passages of %.10q took %v", n, s, d)
		}
		checkInvariants(t, page)
	}
	// The same holds for a hundred thousand blocks, and for deeply nested blocks.
	var many []block
	deep := text("x")
	for i := range size / 50 {
		many = append(many, text(fmt.Sprint("same ", i%3)))
		if i < 10_000 {
			deep = block{Type: millrace.ListBlock, Items: []millrace.Item{{Text: "y", Blocks: []block{deep}}}}
		}
	}
	checkInvariants(t, &millrace.Page{Blocks: many})
	checkInvariants(t, &millrace.Page{Blocks: []block{deep}})
}

// An edit changes the IDs of nearby passages, and of no passage far from it.
func TestEdits(t *testing.T) {
	rounds := 80
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		var blocks []block
		for i := range 60 + r.IntN(100) {
			blocks = append(blocks, random(r, i))
		}
		at := r.IntN(len(blocks))
		edited := slices.Clone(blocks)
		switch r.IntN(3) {
		case 0:
			edited[at] = text(sentence(r))
		case 1:
			edited = slices.Insert(edited, at, random(r, 1+r.IntN(5)))
		default:
			edited = slices.Delete(edited, at, at+1)
		}
		before, after := &millrace.Page{Blocks: blocks}, &millrace.Page{Blocks: edited}
		// Few passages change.
		old, now := Passages(before), Passages(after)
		have := map[string]bool{}
		for _, p := range now {
			have[fmt.Sprint(p)] = true
		}
		lost := 0
		for _, p := range old {
			if !have[fmt.Sprint(p)] {
				lost++
			}
		}
		own := len(Passages(&millrace.Page{Blocks: blocks[at : at+1]}))
		if blocks[at].Type != millrace.HeadingBlock && lost > own+6 {
			t.Errorf("seed %d: %d of %d passages change", seed, lost, len(old))
		}
		checkInvariants(t, after)
	}
}

// random returns a block with a unique text. Few blocks are headings, so sections are long.
func random(r *rand.Rand, i int) block {
	var s []string
	for range 1 + r.IntN(6) {
		s = append(s, sentence(r))
	}
	switch {
	case i%40 == 0:
		return heading(1+r.IntN(3), sentence(r))
	case r.IntN(6) == 0:
		return code(strings.Join(s, "\n"))
	case r.IntN(20) == 0:
		for range 150 {
			s = append(s, sentence(r))
		}
	}
	return text(strings.Join(s, " "))
}

// An edit inside a long paragraph does not change the parts far from it.
func TestEditsInside(t *testing.T) {
	for seed := range 50 {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		var s []string
		for range 1500 {
			s = append(s, sentence(r))
		}
		before := Parts(&millrace.Page{Blocks: []block{text(strings.Join(s, " "))}})
		s[r.IntN(len(s))] = sentence(r) + " " + sentence(r)
		after := Parts(&millrace.Page{Blocks: []block{text(strings.Join(s, " "))}})
		lost := 0
		for _, c := range before {
			if !slices.Contains(after, c) {
				lost++
			}
		}
		if lost > 5 {
			t.Errorf("seed %d: %d of %d parts change", seed, lost, len(before))
		}
	}
}

func FuzzPassages(f *testing.F) {
	f.Add([]byte(`[{"type":"heading","level":2,"text":"A"},{"type":"text","text":"B."},{"type":"list","items":[{"text":"c","blocks":[{"type":"code","text":"d"}]}]}]`), 3, "One. Two! 三。")
	f.Add([]byte(`[{"type":"quote","blocks":[{"type":"callout","title":"t","blocks":[{"type":"table","rows":[[{"text":"x"}],[{"text":"y"}]]}]}]}]`), 1000, "e\u0301 \n\u200d")
	f.Fuzz(func(t *testing.T, data []byte, times int, s string) {
		var blocks []block
		if json.Unmarshal(data, &blocks) != nil {
			return
		}
		long := strings.Repeat(s, max(0, min(times, 10_000/max(1, len(s)))))
		page := &millrace.Page{Title: s, Blocks: append(blocks, text(long), code(long), heading(1, long))}
		checkInvariants(t, page)
		if d := cmp.Diff(Passages(page), Passages(page)); d != "" {
			t.Error(d)
		}
	})
}

func BenchmarkPassages(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var blocks []block
	for i := range 200 {
		blocks = append(blocks, random(r, i))
	}
	page := &millrace.Page{Blocks: blocks}
	b.SetBytes(int64(len(page.Text())))
	b.ReportAllocs()
	for b.Loop() {
		Passages(page)
	}
}
