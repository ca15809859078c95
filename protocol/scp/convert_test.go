package scp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var testSite = millrace.Site{Base: "https://example.com/", Language: "en"}

// roundTrip fails unless reading the page's line returns the same page as carry, and carry does not
// change that page again. It returns that page.
func roundTrip(t *testing.T, p *millrace.Page) *millrace.Page {
	t.Helper()
	once := carry(testSite, p)
	value, err := tag(testSite, p)
	if err != nil || (once != nil) != (value == "1") {
		t.Fatalf("%s: tag %q, %v", p.URL, value, err)
	}
	if once == nil {
		return nil
	}
	line := appendPage(nil, pageOf(testSite, p))
	r := parser{limits: new(OpenOptions).resolve(), keep: true}
	if !r.parsePage(line) || r.skip.reason != "" || r.counts != (counts{}) {
		t.Fatalf("%s is written as %.2000s: %v %v %v", p.URL, line, r.fatal, r.skip, r.counts)
	}
	if diff := cmp.Diff(once, r.page.page(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s is read back otherwise (-carried +read):\n%s", p.URL, diff)
	}
	if diff := cmp.Diff(once, carry(testSite, once), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s is carried twice (-once +twice):\n%s", p.URL, diff)
	}
	return once
}

func TestCarry(t *testing.T) {
	n, seeds := 0, uint64(testkit.Size(8, 8, 25))
	for seed := range seeds {
		for _, p := range protocoltest.Pages(seed) {
			before := p.Revision()
			if roundTrip(t, p) != nil {
				n++
			}
			if p.Revision() != before {
				t.Fatalf("%s is changed", p.URL)
			}
		}
	}
	if n < 4*int(seeds) {
		t.Errorf("%d pages are carried", n)
	}
}

func aPage(blocks ...millrace.Block) *millrace.Page {
	return &millrace.Page{
		URL: "/a", Title: "T", Description: "D", Language: "en", Modified: time.Unix(1_700_000_000, 0), Blocks: blocks,
	}
}

// Each block type becomes the expected block in the line.
func TestBlocks(t *testing.T) {
	img := "https://example.com/i.png"
	for _, c := range []struct {
		name  string
		block millrace.Block
		want  string
	}{
		{"heading", millrace.Block{Type: millrace.HeadingBlock, Level: 7, Text: "a", Anchor: "x"}, `{"type":"heading","level":6,"text":"a"}`},
		{"blank", millrace.Block{Type: millrace.TextBlock, Text: " \n"}, `{"type":"text","text":"T"}`},
		{
			"text",
			millrace.Block{Type: millrace.TextBlock, Text: "a <b> & \"c\"\n\xff", Spans: []millrace.Span{{Type: millrace.LinkSpan, End: 1, URL: img}}},
			`{"type":"text","text":"a <b> & \"c\"\n` + "\ufffd" + `"}`,
		},
		{
			"link",
			millrace.Block{Type: millrace.LinkBlock, URL: "https://example.com/#a", Text: "a", Rel: []string{"nofollow", "ugc"}},
			`{"type":"link","url":"https://example.com/#a","text":"a","rel":["nofollow","ugc"]}`,
		},
		{"link by mail", millrace.Block{Type: millrace.LinkBlock, URL: "mailto:a@example.com", Text: "a"}, `{"type":"text","text":"a"}`},
		{
			"link without text",
			millrace.Block{Type: millrace.LinkBlock, URL: "https://example.com/é"},
			`{"type":"link","url":"https://example.com/%C3%A9","text":"https://example.com/%C3%A9"}`,
		},
		{
			"image",
			millrace.Block{Type: millrace.ImageBlock, URL: img, Alt: "a", Caption: "c"},
			`{"type":"image","url":"` + img + `","alt":"a"},{"type":"text","text":"c"}`,
		},
		{"image in itself", millrace.Block{Type: millrace.ImageBlock, URL: "data:image/png;base64,AA", Alt: "a"}, `{"type":"text","text":"a"}`},
		{"list", millrace.Block{Type: millrace.ListBlock, Ordered: true, Start: 3, Items: []millrace.Item{{Text: "a"}, {Task: true, Done: true, Text: "b"}, {Text: "c", Blocks: []millrace.Block{
			{Type: millrace.ListBlock, Items: []millrace.Item{{Text: "d"}, {Text: "e"}}}, {Type: millrace.TextBlock, Text: "f"},
		}}}}, `{"type":"list","ordered":true,"items":["a","[x] b","c\n- d\n- e\nf"]}`},
		{
			"definitions",
			millrace.Block{Type: millrace.DefinitionsBlock, Items: []millrace.Item{{Term: "a\nb", Text: "c"}}},
			`{"type":"list","ordered":false,"items":["a\nb\nc"]}`,
		},
		{
			"code",
			millrace.Block{Type: millrace.CodeBlock, Language: "go", Caption: "x.go", Text: "a\n\n\n\tb\n"},
			`{"type":"text","text":"x.go"},{"type":"code","language":"go","code":"a\n\n\n\tb\n"}`,
		},
		{"math", millrace.Block{Type: millrace.MathBlock, Language: "tex", Text: `\pi`}, `{"type":"code","language":"tex","code":"\\pi"}`},
		{"table", millrace.Block{Type: millrace.TableBlock, Caption: "c", Rows: [][]millrace.Cell{
			{{Text: "a", Header: true, Colspan: 2}, {Text: "b", Rowspan: 2}}, {{Text: "d"}, {Text: "e"}}, {{Text: "f"}},
		}}, `{"type":"text","text":"c"},{"type":"table","rows":[["a","","b"],["d","e",""],["f"]]}`},
		{
			"table of great spans",
			millrace.Block{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: "a", Colspan: 1e9}, {Text: "b"}}}},
			`{"type":"table","rows":[["a","b"]]}`,
		},
		{"quote", millrace.Block{Type: millrace.QuoteBlock, Cite: "A", URL: img, Blocks: []millrace.Block{
			{Type: millrace.TextBlock, Text: "a"}, {Type: millrace.TextBlock, Text: "b"},
		}}, `{"type":"quote","text":"a\n\nb","citation":"A"}`},
		{
			"callout",
			millrace.Block{Type: millrace.CalloutBlock, Kind: "note", Title: "N", Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "a"}}},
			`{"type":"quote","text":"N\n\na"}`,
		},
		{
			"footnote",
			millrace.Block{Type: millrace.FootnoteBlock, Text: "1", Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "a"}}},
			`{"type":"text","text":"[1] a"}`,
		},
		{
			"embed",
			millrace.Block{Type: millrace.EmbedBlock, Kind: "codepen", URL: "https://codepen.io/x", Title: "P"},
			`{"type":"link","url":"https://codepen.io/x","text":"P"}`,
		},
		{
			"embedded film",
			millrace.Block{Type: millrace.EmbedBlock, Kind: "youtube", URL: "https://www.youtube.com/embed/x", Title: "P"},
			`{"type":"video","name":"P","url":[{"href":"https://www.youtube.com/embed/x","mediaType":"text/html"}]}`,
		},
		{"video", millrace.Block{
			Type: millrace.VideoBlock, URL: "https://example.com/a/v.webm", Title: "N", Caption: "S", Poster: img,
			Sources: []millrace.MediaSource{{URL: "https://example.com/a/v.mp4"}, {URL: "https://example.com/a/v.webm", Type: "video/webm"}},
			Tracks: []millrace.Track{
				{URL: "https://example.com/c.vtt", Kind: "subtitles", Language: "en", Label: "English"},
				{URL: "https://example.com/d.vtt"},
				{URL: "https://example.com/e.vtt", Kind: "chapters"},
			},
			Media: &millrace.Media{
				Duration: "PT5M20S", Width: 1920, Height: 1080, Creator: "C", Transcript: "said",
				Chapters: []millrace.Chapter{{Title: "I"}, {Time: 60, Title: "II"}},
			},
		}, `{"type":"video","name":"N","url":[{"href":"https://example.com/a/v.webm","mediaType":"video/webm"},{"href":"https://example.com/a/v.mp4","mediaType":"video/mp4"}],` +
			`"duration":"PT5M20S","width":1920,"height":1080,"icon":{"type":"Image","url":"` + img + `"},"summary":"S",` +
			`"captions":[{"language":"en","url":"https://example.com/c.vtt","label":"English"},{"language":"und","url":"https://example.com/d.vtt","label":"und"}],` +
			`"chapters":[{"time":0,"title":"I"},{"time":60,"title":"II"}],"transcript":"said"}`},
		{"audio", millrace.Block{
			Type: millrace.AudioBlock, URL: "https://example.com/a%20b.mp3", Media: &millrace.Media{Duration: "1 h", Width: 3, Creator: "C", Series: "P"},
		}, `{"type":"audio","name":"a b.mp3","url":"https://example.com/a%20b.mp3","attributedTo":"C","partOf":"P"}`},
		{
			"video from nowhere",
			millrace.Block{Type: millrace.VideoBlock, URL: "blob:x", Title: "N", Media: &millrace.Media{Transcript: "said"}},
			`{"type":"text","text":"N"},{"type":"text","text":"said"}`,
		},
		{"new", millrace.Block{Type: "poem", Text: "a"}, `{"type":"text","text":"a"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := aPage(c.block)
			roundTrip(t, p)
			line := string(appendPage(nil, pageOf(testSite, p)))
			_, content, _ := strings.Cut(line, `"content":`)
			if got := strings.TrimSuffix(content, "}\n"); got != "["+c.want+"]" {
				t.Errorf("%s", got)
			}
		})
	}
}

// Only the expected pages and fields are carried.
func TestFields(t *testing.T) {
	full := &millrace.Page{
		URL: "/A/é?b=c", Author: "A", Published: time.Unix(1_600_000_000, 5), Modified: time.Unix(1_700_000_000, 5), Language: "EN_us",
		Schema: []json.RawMessage{[]byte("{\n \"@type\": \"Article\"}")},
	}
	roundTrip(t, full)
	const want = `{"url":"https://example.com/A/%C3%A9?b=c","title":"é","description":"é","author":"A","published":"2020-09-13T12:26:40Z",` +
		`"modified":"2023-11-14T22:13:20Z","language":"en-us","schema":{"@type":"Article"},"content":[{"type":"text","text":"é"}]}` + "\n"
	if got := string(appendPage(nil, pageOf(testSite, full))); got != want {
		t.Errorf("%s", got)
	}
	minimal := roundTrip(t, &millrace.Page{URL: "/", Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Text: "H"}}, Summary: "S"})
	if minimal.Title != "H" || minimal.Description != "S" || minimal.Language != "en" || minimal.Modified.Unix() != 0 {
		t.Errorf("%+v", minimal)
	}
	for _, p := range []*millrace.Page{
		{URL: "/a", Kind: millrace.Archive},
		{URL: "/a", Kind: millrace.Forum},
		{URL: "https://elsewhere.example/"},
		{URL: "http://example.com/"},
		{URL: "https://example.com:8443/"},
		{URL: "https://example.community/"},
		{URL: "javascript:x"},
		{URL: ""},
	} {
		if roundTrip(t, p) != nil {
			t.Errorf("%+v is carried", p)
		}
	}
	if carry(millrace.Site{Base: "https://example.com/blog/"}, &millrace.Page{URL: "https://example.com/"}) == nil {
		t.Error("a page outside of the base is not carried")
	}
}

// JSON-LD elements are read back unchanged.
func TestSchema(t *testing.T) {
	a, b := `{"@context":"https://schema.org","@type":"A","n":[1.50,1e2]}`, `{"@type":"B","@context":"https://schema.org"}`
	for _, c := range []struct{ in, want []string }{
		{nil, nil},
		{[]string{a}, []string{a}},
		{[]string{a, b}, []string{a, b}},
		{[]string{" { \"x y\" : [ 1 , \"\\\" \" ] } "}, []string{`{"x y":[1,"\" "]}`}},
		{[]string{a, `[]`, `{`, "{\"a\":\"\xff\"}", `{} {}`, `1`}, []string{a}},
		// An element that needs the graph's context stays in the graph.
		{[]string{a, `{"@type":"C"}`}, []string{graphStart + a + `,{"@type":"C"}` + graphEnd}},
		{[]string{graphStart + a + graphEnd}, []string{graphStart + a + graphEnd}},
		{[]string{graphStart + a + "," + b + graphEnd}, []string{a, b}},
		{[]string{strings.Repeat(`{"a":`, 61) + "1" + strings.Repeat("}", 61)}, []string{strings.Repeat(`{"a":`, 61) + "1" + strings.Repeat("}", 61)}},
		{[]string{strings.Repeat(`{"a":`, 62) + "1" + strings.Repeat("}", 62)}, nil},
	} {
		p := aPage()
		for _, s := range c.in {
			p.Schema = append(p.Schema, json.RawMessage(s))
		}
		var got []string
		for _, s := range roundTrip(t, p).Schema {
			got = append(got, string(s))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q becomes %q", c.in, got)
		}
	}
}

// A page with more blocks than the limit keeps all its text.
func TestManyBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("testing.Short: as many blocks as a page may have")
	}
	kinds := []func(i int) millrace.Block{
		func(i int) millrace.Block {
			return millrace.Block{Type: millrace.TextBlock, Text: fmt.Sprintf("text %d", i)}
		},
		func(i int) millrace.Block {
			return millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: fmt.Sprintf("heading %d", i)}
		},
		func(i int) millrace.Block {
			return millrace.Block{Type: millrace.ListBlock, Items: []millrace.Item{{Text: fmt.Sprintf("item %d", i)}}}
		},
		func(i int) millrace.Block {
			return millrace.Block{Type: millrace.QuoteBlock, Cite: fmt.Sprintf("cite %d", i), Blocks: millrace.TextBlocks(fmt.Sprintf("quote %d", i))}
		},
		func(i int) millrace.Block {
			return millrace.Block{Type: millrace.LinkBlock, URL: fmt.Sprintf("https://example.com/%d/", i), Text: "link"}
		},
		func(i int) millrace.Block {
			return millrace.Block{Type: millrace.ImageBlock, URL: fmt.Sprintf("https://example.com/%d.png", i), Alt: fmt.Sprintf("alt %d", i)}
		},
		func(i int) millrace.Block {
			return millrace.Block{Type: millrace.VideoBlock, URL: fmt.Sprintf("https://example.com/%d.mp4", i), Title: fmt.Sprintf("video %d", i)}
		},
		func(i int) millrace.Block {
			return millrace.Block{Type: millrace.CodeBlock, Text: fmt.Sprintf("code %d", i)}
		},
	}
	for n := 1; n <= len(kinds); n++ {
		var blocks []millrace.Block
		var says []string
		for i := range 1500 {
			b := kinds[i%n](i)
			blocks = append(blocks, b)
			says = append(says, b.Text, b.Cite, b.Alt, b.URL)
			for _, it := range b.Items {
				says = append(says, it.Text)
			}
		}
		got := roundTrip(t, aPage(blocks...))
		if len(got.Blocks) > maxBlocks || n > 1 && len(got.Blocks) < maxBlocks-n {
			t.Errorf("%d kinds: %d blocks", n, len(got.Blocks))
		}
		line := string(appendPage(nil, pageOf(testSite, aPage(blocks...))))
		for _, s := range says {
			if !strings.Contains(line, s) {
				t.Fatalf("%d kinds: %q is gone", n, s)
			}
		}
	}
}

// A page whose line is at the limit is carried; a longer one is not.
func TestLongPage(t *testing.T) {
	testkit.Soak(t) // a page of 100 MB
	near := strings.Repeat("a", maxLine-300)
	if p := roundTrip(t, aPage(millrace.Block{Type: millrace.TextBlock, Text: near})); p == nil || len(p.Blocks[0].Text) != len(near) {
		t.Error("a page near the limit is not carried")
	}
	if carry(testSite, aPage(millrace.Block{Type: millrace.TextBlock, Text: near + near[:300]})) != nil {
		t.Error("a page over the limit is carried")
	}
	if carry(testSite, aPage(millrace.Block{Type: millrace.TextBlock, Text: strings.Repeat("\x01", maxLine/6)})) != nil {
		t.Error("a page whose escapes exceed the limit is carried")
	}
}

// Characters of every Unicode plane are carried.
func TestPlanes(t *testing.T) {
	var b strings.Builder
	for r := rune(0); r <= 0x10FFFF; r += 0x101 {
		if r < 0xD800 || r > 0xDFFF {
			b.WriteRune(r)
		}
	}
	for r := rune(0); r < 0x100; r++ {
		b.WriteRune(r)
	}
	s := b.String()
	p := roundTrip(t, aPage(millrace.Block{Type: millrace.TextBlock, Text: s}, millrace.Block{Type: millrace.CodeBlock, Text: s}))
	if p.Blocks[0].Text != s || p.Blocks[1].Text != s {
		t.Error("text has changed")
	}
}
