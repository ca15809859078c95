package millrace_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// everyBlock has one block of every type.
func everyBlock() []millrace.Block {
	text := func(s string) []millrace.Block {
		return []millrace.Block{{Type: millrace.TextBlock, Text: s}}
	}
	return []millrace.Block{
		{Type: millrace.HeadingBlock, Text: "Gate and wheel", Level: 2, Anchor: "gate"},
		{Type: millrace.TextBlock, Text: "Open the gate slowly.\nThen wait.", Spans: []millrace.Span{
			{Type: millrace.LinkSpan, Start: 9, End: 13, URL: "https://example.com/gate"},
			{Type: millrace.EmphasisSpan, Start: 14, End: 20},
		}},
		{Type: millrace.ListBlock, Items: []millrace.Item{
			{Text: "oak"},
			{Text: "elm", Blocks: []millrace.Block{{Type: millrace.ListBlock, Ordered: true, Start: 3, Items: []millrace.Item{{Text: "wych"}, {Text: "field"}}}}},
			{Text: "ash", Task: true, Done: true},
		}},
		{Type: millrace.DefinitionsBlock, Items: []millrace.Item{{Term: "Leat", Text: "A channel to a mill."}, {Term: "Penstock", Text: "A sluice."}}},
		{Type: millrace.CodeBlock, Language: "go", Text: "if open {\n\tflow()\n}\n"},
		{Type: millrace.TableBlock, Caption: "Flow", Rows: [][]millrace.Cell{
			{{Text: "Gate", Header: true}, {Text: "l/s", Header: true}},
			{{Text: "main"}, {Text: "1|2"}},
		}},
		{Type: millrace.QuoteBlock, Blocks: text("Water is patient."), Cite: "A miller"},
		{Type: millrace.CalloutBlock, Kind: "warning", Title: "Mind the wheel", Blocks: text("It turns.")},
		{Type: millrace.ImageBlock, URL: "https://example.com/w.png", Alt: "wheel", Caption: "The wheel"},
		{Type: millrace.VideoBlock, URL: "https://example.com/v.mp4", Caption: "Turning"},
		{Type: millrace.AudioBlock, URL: "https://example.com/a.ogg", Caption: "Creaking"},
		{Type: millrace.EmbedBlock, URL: "https://example.com/e", Kind: "map", Title: "Where"},
		{Type: millrace.FootnoteBlock, Text: "1", Anchor: "fn1", Blocks: text("Since 1412.")},
		{Type: millrace.MathBlock, Language: "tex", Text: `P = \rho g Q h`},
		{Type: millrace.LinkBlock, URL: "https://example.com/next", Text: "Next page"},
	}
}

const everyBlockText = `Gate and wheel

Open the gate slowly.
Then wait.

- oak
- elm
  3. wych
  4. field
- [x] ash

Leat
  A channel to a mill.
Penstock
  A sluice.

if open {
	flow()
}

Flow
Gate | l/s
main | 1|2

Water is patient.

— A miller

Mind the wheel

It turns.

The wheel

Turning

Creaking

Where

[1] Since 1412.

P = \rho g Q h

Next page`

func TestText(t *testing.T) {
	if got := millrace.Text(everyBlock()); got != everyBlockText {
		t.Errorf("Text:\n%s", got)
	}
	for _, tt := range []struct {
		name   string
		blocks []millrace.Block
		want   string
	}{
		{"nothing", nil, ""},
		{"empty blocks", []millrace.Block{{Type: millrace.TextBlock, Text: " \n"}, {Type: millrace.ImageBlock, URL: "https://x/y"}}, ""},
		{"code with empty lines", []millrace.Block{{Type: millrace.CodeBlock, Text: "a\n\n\n\nb"}}, "a\n\nb"},
		{"a list from 0", []millrace.Block{{Type: millrace.ListBlock, Ordered: true, Items: []millrace.Item{{Text: "a"}, {Text: "b"}}}}, "1. a\n2. b"},
		{"a list that counts down", []millrace.Block{{Type: millrace.ListBlock, Ordered: true, Reversed: true, Start: 5, Items: []millrace.Item{{Text: "a"}, {Text: "b"}}}}, "5. a\n4. b"},
	} {
		if got := millrace.Text(tt.blocks); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzTextBlocks(f *testing.F) {
	for _, s := range []string{"", "a\n\nb", "\n\n\na\r\n\r\n\r\nb\n", "  x\n \n\ny  ", "\n \n", "a\n\n \n\nb", "a\rb\r\r\n\nc", everyBlockText} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := millrace.Text([]millrace.Block{{Type: millrace.CodeBlock, Text: s}})
		if blocks := millrace.Text(millrace.TextBlocks(s)); blocks != once {
			t.Errorf("%q: %q as one block, %q as paragraphs", s, once, blocks)
		}
		if twice := millrace.Text(millrace.TextBlocks(once)); twice != once {
			t.Errorf("Text(TextBlocks(%q)) = %q, then %q", s, once, twice)
		}
		if strings.Contains(once, "\n\n\n") || strings.Trim(once, "\n") != once {
			t.Errorf("%q has superfluous empty lines", once)
		}
		if got := strings.Join(strings.Fields(once), " "); got != strings.Join(strings.Fields(s), " ") {
			t.Errorf("words of %q became %q", s, got)
		}
	})
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{"", "a", "a\n\nb", "a\n\n\nb", "\na", "a\n", "a\rb", "a\n \nb", "\u00a0\nb", "a\n\u2003\n\nb", "a\u2028b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// A line end at the start selects the slow path and has no other effect.
		fast, slow := millrace.TextBlocks(s), millrace.TextBlocks("\n"+s)
		if d := cmp.Diff(slow, fast); d != "" {
			t.Errorf("%q: (-slow +fast) %s", s, d)
		}
	})
}

// The transcript of a video or an audio recording is part of the text.
func TestMediaText(t *testing.T) {
	blocks := []millrace.Block{{
		Type: millrace.AudioBlock, URL: "https://example.com/a.ogg", Title: "Episode 1", Caption: "About leats",
		Media: &millrace.Media{Transcript: "Water runs.\n\nAnd *turns*."},
	}, {Type: millrace.VideoBlock, URL: "https://example.com/v.mp4", Caption: "Turning"}}
	if got, want := millrace.Text(blocks), "Episode 1\nAbout leats\n\nWater runs.\n\nAnd *turns*.\n\nTurning"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	want := "[Episode 1](https://example.com/a.ogg)\n\nAbout leats\n\nWater runs.\n\nAnd \\*turns\\*.\n\n[Turning](https://example.com/v.mp4)"
	if got := strings.TrimSpace(millrace.Markdown(blocks)); got != want {
		t.Errorf("Markdown %q, want %q", got, want)
	}
}
