package web

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var testSite = millrace.Site{Base: "https://example.com/", EndpointBase: "https://example.com/"}

func diff(a, b any) string { return cmp.Diff(a, b, cmpopts.EquateEmpty()) }

// wordsOf returns the letters and digits of a text without the characters between them.
func wordsOf(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ")
}

// settled checks that the carried page equals the page parsed from its Markdown, and that
// carrying it again does not change it.
func settled(t *testing.T, p *millrace.Page) {
	t.Helper()
	before := p.Revision()
	carried := carry(testSite, p)
	if p.Revision() != before {
		t.Errorf("Carry has changed its argument %s", p.URL)
	}
	if carried == nil {
		return
	}
	value, err := tag(testSite, p)
	if err != nil || value == "" {
		t.Errorf("the tag is %q, %v", value, err)
	}
	body, err := markdownOf(testSite, p, value)
	if err != nil {
		t.Fatal(err)
	}
	read, err := decodeMarkdown(t.Context(), body, carried.URL)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if d := diff(carried, read); d != "" {
		t.Errorf("what is read is not what is carried (-carried +read):\n%s\nof\n%s", d, body)
	}
	if d := diff(carried, carry(testSite, carried)); d != "" {
		t.Errorf("carried twice (-once +twice):\n%s\nof\n%s", d, body)
	}
	if carried.Detail != millrace.DetailBlocks || len(carried.Blocks) == 0 {
		t.Errorf("nothing is carried of\n%s", p.Text())
	}
}

func TestCarry(t *testing.T) {
	n := 0
	for seed := range uint64(40) {
		for _, p := range protocoltest.Pages(seed) {
			settled(t, p)
			n++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d pages", n)
}

// TestCarryPlain checks that pages with common content lose nothing and are stable after one
// round trip.
func TestCarryPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("Water runs * through _a_ mill race, 3. and # turns [the] wheel: `on` <b>stone</b> | floors & more ~ $5 – so – it\\goes! 1) + - = ok")
	phrase := func() string {
		var b strings.Builder
		for range 1 + r.IntN(9) {
			b.WriteString(words[r.IntN(len(words))] + " ")
		}
		return "x " + strings.TrimSpace(b.String()) + " y"
	}
	for range 300 {
		p := &millrace.Page{URL: "/a", Title: phrase(), Known: millrace.AllFields, Detail: millrace.DetailBlocks}
		for range 1 + r.IntN(6) {
			switch r.IntN(6) {
			case 0:
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: phrase()})
			case 1:
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.ListBlock, Items: []millrace.Item{{Text: phrase()}, {Text: phrase()}}})
			case 2:
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: phrase(), Header: true}}, {{Text: phrase()}}}})
			case 3:
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.CodeBlock, Text: phrase() + "\n", Language: "go"})
			default:
				text := phrase()
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TextBlock, Text: text, Spans: []millrace.Span{{Type: millrace.LinkSpan, End: 1, URL: "https://example.com/#x"}}})
			}
		}
		settled(t, p)
		carried := carry(testSite, p)
		if want, got := wordsOf(p.Text()), wordsOf(carried.Text()); want != got || p.Title != carried.Title {
			t.Fatalf("the page says\n%s\nwhat is kept\n%s", p.Text(), carried.Text())
		}
		if diff(p.Blocks, carried.Blocks) != "" {
			t.Fatalf("%s", diff(p.Blocks, carried.Blocks))
		}
	}
}

// FuzzCarry checks that any text in any block is stable after one round trip.
func FuzzCarry(f *testing.F) {
	f.Add("Title {#a}", "# x\n\n- y", "z")
	f.Add("", "[^1]: a\n\n!!! note\n    b", "```\n---\n")
	f.Add("---\nurl: x", "$$\na\n$$ | <div> \u200b", ":::tip\n* * *")
	f.Fuzz(func(t *testing.T, title, a, b string) {
		settled(t, &millrace.Page{
			URL: "/a", Title: title, Description: a, Tags: []string{b}, Known: millrace.AllFields,
			Blocks: []millrace.Block{
				{Type: millrace.HeadingBlock, Level: 1, Text: b},
				{Type: millrace.TextBlock, Text: a},
				{Type: millrace.ListBlock, Items: []millrace.Item{{Text: b, Blocks: []millrace.Block{{Type: millrace.CodeBlock, Text: a}}}}},
				{Type: millrace.QuoteBlock, Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: b, Spans: []millrace.Span{{Type: millrace.EmphasisSpan, End: len(b)}}}}},
				{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: a}, {Text: b}}}},
				{Type: millrace.FootnoteBlock, Text: "1", Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: a}}},
			},
		})
	})
}

// FuzzDecodeMarkdown checks that any bytes are parsed or rejected.
func FuzzDecodeMarkdown(f *testing.F) {
	f.Add([]byte("---\ntitle: a\nurl: /b\ntags: [c, 'd']\nauthor:\n  - e\n---\n\n# a\n\n[f](g.md)"))
	f.Add([]byte("\ufeff---\ntitle: >\n  a\n  b\ndate: 2024-01-01\n...\n<table><tr><td>x</table>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decodeMarkdown(t.Context(), body, "https://example.com/a")
		if err != nil {
			if s := millrace.Status(err); s != 400 && s != 413 {
				t.Errorf("%v", err)
			}
			return
		}
		p.Kind = ""
		settled(t, p)
	})
}
