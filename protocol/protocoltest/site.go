package protocoltest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// Pages returns the generated pages of a site for a seed, including a home page. They contain every
// type of block, text from all planes of Unicode, unusual URLs, URLs for which protocols would use
// the same name, archives, canonical URLs on other sites, and empty fields.
func Pages(seed uint64) []*millrace.Page {
	g := &generator{rand.New(rand.NewPCG(seed, 1))}
	urls := []string{"/"}
	for _, group := range unusualURLs {
		if g.chance(2) {
			urls = append(urls, group...)
		}
	}
	for i := range 5 + g.IntN(20) {
		urls = append(urls, fmt.Sprintf("/%s/%d%s", g.pick("blog", "docs", "a/b/c"), i, g.pick("", "/", ".html", "/?p=1")))
	}
	pages := make([]*millrace.Page, 0, len(urls))
	for _, u := range urls {
		p := g.page(u)
		if u == "/" {
			p.Kind = millrace.Article
		}
		pages = append(pages, p)
	}
	return pages
}

// unusualURLs are groups of URLs. A site has either all URLs of a group or none, because each group
// tests one difficulty.
var unusualURLs = [][]string{
	{"/post", "/post/"},
	{"/only"},
	{"/taken/", "/taken", "/taken/llm.json"},
	{"/q", "/q/", "/q?x=1", "/q/?x=1", "/q/?x=1&y=%20%C3%A9", "/?x=1"},
	{"/a.html", "/a", "/index.html"},
	{"/%C3%A9t%C3%A9/", "/a%20b", "/%E6%96%87/%F0%9D%84%9E", "/a;b=c/(d)!*'"},
	{"/~bob/", "https://bob/", "http://bob/"},
	{"https://elsewhere.example/p", "http://elsewhere.example/p", "https://elsewhere.example/p/?x=1", "https://elsewhere.example:8443/"},
	{"/rank/~2/", "/rank/", "/rank", "/rank/~2", "/rank/~~2/"},
	{"//odd", "/a//b", "/a//b/"},
	{"/llms.txt", "/feed", "/post.json", "/openfeeder", "/.well-known/x"},
}

type generator struct{ *rand.Rand }

func (g *generator) chance(in int) bool { return g.IntN(in) == 0 }

func (g *generator) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g *generator) page(u string) *millrace.Page {
	p := &millrace.Page{
		URL:         u,
		Title:       g.maybe(),
		Description: g.maybe(),
		Summary:     g.maybe(),
		Author:      g.maybe(),
		Language:    g.pick("", "en", "de", "zh-Hant"),
		Section:     g.pick("", "blog", "docs"),
		Kind:        millrace.PageKind(g.pick("", "article", "documentation", "forum", "product", "archive")),
		Modified:    g.time(),
		Known:       millrace.AllFields,
		Detail:      millrace.DetailBlocks,
	}
	if g.chance(2) {
		p.Published = g.time()
	}
	if g.chance(3) {
		p.Tags = []string{g.text(), g.text()}
	}
	if g.chance(6) {
		p.Known &^= millrace.FieldDescription | millrace.FieldModified | millrace.FieldAuthor
	}
	for range g.IntN(3) {
		p.Schema = append(p.Schema, g.schema())
	}
	for range g.IntN(12) {
		p.Blocks = append(p.Blocks, g.block(2))
	}
	return p
}

func (g *generator) time() time.Time {
	return time.Unix(g.Int64N(1_700_000_000), 0).UTC()
}

func (g *generator) maybe() string {
	if g.chance(3) {
		return ""
	}
	return g.text()
}

// alphabets are the characters of generated texts. They are difficult in JSON, HTML, Markdown, HTTP
// or UTF-16.
var alphabets = [][]rune{
	[]rune("The quick brown fox jumps over the lazy dog. "),
	[]rune("<&>\"'`*_[]()#|\\/~!-+=:;{}@%$^?"),
	[]rune(" \t\n\r\u00a0\u2028\u2029\u200b\ufeff"),
	[]rune("\x00\x01\x1f\x7f\u0080\u0085"),
	[]rune("éßİıŁжאبहि日本語한국ﬁ\u0301\u0345Ꭰ"),
	[]rune("𝄞😀🏳️‍🌈𠮷\U0010ffff\ue000\uffff\ufffd"),
}

func (g *generator) text() string {
	var b strings.Builder
	for range 1 + g.IntN(4) {
		a := alphabets[max(0, g.IntN(2*len(alphabets))-len(alphabets))]
		for range g.IntN(20) {
			b.WriteRune(a[g.IntN(len(a))])
		}
	}
	return b.String()
}

func (g *generator) schema() json.RawMessage {
	v := map[string]any{
		"@context": "https://schema.org", "@type": g.pick("Article", "Product", "FAQPage"), g.text(): g.text(),
		"n":    []any{1.0, 1e21, 1e-7, 0.1, 0, -1, 1234567890123456789.0, true, nil},
		"deep": map[string]any{"\ue000": 1, "😀": 2, "a": []any{map[string]any{}}},
	}
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return b
}

var blockTypes = []millrace.BlockType{
	millrace.HeadingBlock, millrace.TextBlock, millrace.ListBlock, millrace.DefinitionsBlock, millrace.CodeBlock,
	millrace.TableBlock, millrace.QuoteBlock, millrace.CalloutBlock, millrace.ImageBlock, millrace.VideoBlock,
	millrace.AudioBlock, millrace.EmbedBlock, millrace.FootnoteBlock, millrace.MathBlock, millrace.LinkBlock,
}

func (g *generator) block(depth int) millrace.Block {
	b := millrace.Block{Type: blockTypes[g.IntN(len(blockTypes))], Text: g.text()}
	src := "https://example.com/" + g.pick("a.png", "b%20c.mp4", "d?e=f")
	switch b.Type {
	case millrace.HeadingBlock:
		b.Level, b.Anchor = 1+g.IntN(6), g.pick("", "top", "a-b")
	case millrace.TextBlock:
		if end := strings.IndexByte(b.Text, ' '); end > 0 {
			b.Spans = []millrace.Span{{Type: millrace.LinkSpan, End: end, URL: src}}
		}
	case millrace.ListBlock, millrace.DefinitionsBlock:
		b.Text, b.Ordered, b.Start = "", g.chance(2), g.IntN(4)
		for range 1 + g.IntN(4) {
			it := millrace.Item{Text: g.text(), Task: g.chance(4), Done: g.chance(2)}
			if b.Type == millrace.DefinitionsBlock {
				it.Term = g.text()
			}
			if depth > 0 && g.chance(3) {
				it.Blocks = []millrace.Block{g.block(depth - 1)}
			}
			b.Items = append(b.Items, it)
		}
	case millrace.CodeBlock:
		b.Language, b.Caption = g.pick("", "go", "c"), g.maybe()
		b.Text += "\n\n\n\tindented\n \n\n" + g.text()
	case millrace.TableBlock:
		b.Text, b.Caption = "", g.maybe()
		for range 1 + g.IntN(3) {
			b.Rows = append(b.Rows, []millrace.Cell{{Text: g.text(), Header: g.chance(3)}, {Text: g.text(), Colspan: 2}})
		}
	case millrace.QuoteBlock, millrace.CalloutBlock, millrace.FootnoteBlock:
		b.Cite, b.Title, b.Kind = g.maybe(), g.maybe(), g.pick("note", "tip")
		for range g.IntN(3) {
			if depth > 0 {
				b.Blocks = append(b.Blocks, g.block(depth-1))
			}
		}
	case millrace.MathBlock:
		b.Language = "tex"
	case millrace.LinkBlock:
		b.URL = src
	default: // media
		b.URL, b.Alt, b.Caption, b.Title = src, g.maybe(), g.maybe(), g.maybe()
	}
	return b
}

// edit returns the pages of the site after an edit: one is deleted, one is new, one is
// changed.
func edit(pages []*millrace.Page, seed uint64) []*millrace.Page {
	g := &generator{rand.New(rand.NewPCG(seed, 2))}
	out := slices.Clone(pages)
	home := slices.IndexFunc(out, func(p *millrace.Page) bool { return p.URL == "/" })
	gone := 1 + g.IntN(len(out)-1)
	if gone == home {
		gone++
	}
	out = slices.Delete(out, gone, gone+1)
	i := g.IntN(len(out))
	changed := out[i].Clone()
	changed.Title += " again"
	changed.Modified = changed.Modified.Add(time.Second)
	out[i] = changed
	added := g.page("/added/" + g.pick("", "x", "y/"))
	added.Kind = millrace.Article
	return append(out, added)
}
