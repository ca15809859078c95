package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// author writes pages like those of a manual. Words follow each other as in the PostgreSQL manual,
// in prose and in code, so that pages compress like the manual but do not repeat each other. The
// same number and edition produce the same page.
type author struct {
	prose, code chain
	most        int // bytes of text of the largest page; 0 = as in manuals
}

// chain is a Markov chain of tokens.
type chain struct {
	tokens []string
	begin  []uint32 // tokens that can begin a sentence
	from   []uint32 // by token: offset of its followers in next; they end at the offset of the next token
	next   []uint32 // followers of the tokens, as often as they follow
}

func newChain(words []string) chain {
	var c chain
	ids := map[string]uint32{}
	seq := make([]uint32, len(words))
	for i, w := range words {
		id, ok := ids[w]
		if !ok {
			id = uint32(len(c.tokens))
			w = strings.Clone(w)
			ids[w], c.tokens = id, append(c.tokens, w)
		}
		seq[i] = id
	}
	c.from = make([]uint32, len(c.tokens)+1)
	for _, id := range seq[:len(seq)-1] {
		c.from[id+1]++
	}
	for i := range c.tokens {
		c.from[i+1] += c.from[i]
	}
	at := slices.Clone(c.from)
	c.next = make([]uint32, len(seq)-1)
	for i, id := range seq[:len(seq)-1] {
		c.next[at[id]] = seq[i+1]
		at[id]++
		if strings.HasSuffix(words[i], ".") || strings.HasSuffix(words[i], "\n") {
			c.begin = append(c.begin, seq[i+1])
		}
	}
	return c
}

// walk calls each for successive tokens until each returns true.
func (c *chain) walk(r *rand.Rand, each func(token string) (stop bool)) {
	id := c.begin[r.IntN(len(c.begin))]
	for !each(c.tokens[id]) {
		followers := c.next[c.from[id]:c.from[id+1]]
		if len(followers) == 0 {
			followers = c.begin
		}
		id = followers[r.IntN(len(followers))]
	}
}

var codeToken = regexp.MustCompile(`[ \t]+|\n[ \t]*|\w+|[^\w\s]+`)

// readManual writes the prose and the code of the manual to a file for newAuthor.
func readManual(ctx context.Context, manual, file string) error {
	names, err := filepath.Glob(filepath.Join(manual, "*.html"))
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no pages in %s; install Debian's postgresql-doc-15, or give its folder with -manual", manual)
	}
	if err != nil {
		return err
	}
	var prose, code strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		res, err := extract.HTML(ctx, data, "https://manual.example/"+filepath.Base(name), nil)
		if err != nil {
			return err
		}
		for i := range res.Page.Blocks {
			switch b := &res.Page.Blocks[i]; b.Type {
			case millrace.CodeBlock:
				code.WriteString(b.Text + "\n")
			case millrace.TextBlock, millrace.ListBlock, millrace.DefinitionsBlock:
				prose.WriteString(millrace.Text([]millrace.Block{*b}) + "\n")
			}
		}
	}
	raw, err := json.Marshal([]string{prose.String(), code.String()})
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

// newAuthor reads a file that readManual has written.
func newAuthor(file string) (*author, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var texts []string
	if err := json.Unmarshal(raw, &texts); err != nil {
		return nil, err
	}
	return &author{prose: newChain(strings.Fields(texts[0])), code: newChain(codeToken.FindAllString(texts[1], -1))}, nil
}

const scpSite = "https://bench.example/"

func scpURL(i int) string { return fmt.Sprintf("%sdocs/%07d/", scpSite, i) }

// page returns page i. Each edition of the page has different content.
func (a *author) page(i, edition int) *millrace.Page {
	r := rand.New(rand.NewPCG(uint64(i), uint64(edition)))
	title := a.words(r, 3, 7)
	p := &millrace.Page{
		URL: scpURL(i), Title: title, Description: a.words(r, 12, 25), Author: "A. Miller", Language: "en", Section: "docs",
		Published: time.Unix(1_700_000_000+int64(i), 0).UTC(), Modified: time.Unix(1_710_000_000+int64(i)+int64(edition)*86400, 0).UTC(),
		Known: millrace.AllFields, Detail: millrace.DetailBlocks,
	}
	if i%2 == 0 {
		schema, err := json.Marshal(map[string]any{
			"@context": "https://schema.org", "@type": "TechArticle", "headline": title, "datePublished": p.Published.Format(time.RFC3339),
			"articleSection": "docs", "wordCount": 300 + r.IntN(500),
		})
		if err != nil {
			panic("bench: cannot encode a map of strings: " + err.Error())
		}
		p.Schema = []json.RawMessage{schema}
	}
	p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 1, Text: title})
	want := 500 + r.IntN(1800) + r.IntN(1800) + r.IntN(800)
	if i == 1 {
		want = max(want, a.most)
	}
	for size := 0; size < want; {
		n := len(p.Blocks)
		if r.IntN(3) == 0 {
			p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2 + r.IntN(2), Text: a.words(r, 2, 6), Anchor: "a" + fmt.Sprint(n)})
		}
		p.Blocks = append(p.Blocks, a.text(r, 30, 90))
		if r.IntN(2) == 0 {
			p.Blocks = append(p.Blocks, a.other(r, i))
		}
		for _, b := range p.Blocks[n:] {
			size += len(millrace.Text([]millrace.Block{b}))
		}
		if len(p.Blocks) > 900 { // only the largest page has so many blocks
			p.Blocks = append(p.Blocks, a.text(r, (want-size)/6, (want-size)/6+1))
			break
		}
	}
	return p
}

// other returns a block that is not a paragraph.
func (a *author) other(r *rand.Rand, i int) millrace.Block {
	switch k := r.IntN(20); {
	case k < 7:
		b := millrace.Block{Type: millrace.ListBlock, Ordered: r.IntN(3) == 0}
		for range 3 + r.IntN(5) {
			b.Items = append(b.Items, millrace.Item{Text: a.words(r, 4, 16)})
		}
		return b
	case k < 13:
		return millrace.Block{Type: millrace.CodeBlock, Language: "sql", Text: a.lines(r, 3+r.IntN(9))}
	case k < 16:
		b := millrace.Block{Type: millrace.TableBlock}
		for row := range 3 + r.IntN(5) {
			var cells []millrace.Cell
			for range 3 {
				cells = append(cells, millrace.Cell{Text: a.words(r, 1, 7), Header: row == 0})
			}
			b.Rows = append(b.Rows, cells)
		}
		return b
	case k < 18:
		return millrace.Block{Type: millrace.ImageBlock, URL: fmt.Sprintf("%simages/%d-%d.png", scpSite, i, r.IntN(1000)), Alt: a.words(r, 3, 8)}
	case k < 19:
		return millrace.Block{Type: millrace.QuoteBlock, Blocks: []millrace.Block{a.text(r, 15, 30)}}
	}
	return millrace.Block{Type: millrace.LinkBlock, URL: scpURL(r.IntN(i + 1)), Text: a.words(r, 2, 6)}
}

// words returns between least and most-1 words.
func (a *author) words(r *rand.Rand, least, most int) string {
	var b strings.Builder
	n := least + r.IntN(most-least)
	a.prose.walk(r, func(w string) bool {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
		n--
		return n == 0
	})
	return strings.TrimRight(b.String(), ".,;:")
}

// text returns a paragraph of about least to most words, plus up to 40 words to complete its last
// sentence. One word is code, and one is a link.
func (a *author) text(r *rand.Rand, least, most int) millrace.Block {
	var s strings.Builder
	b := millrace.Block{Type: millrace.TextBlock}
	n := least + r.IntN(most-least)
	mark := n - r.IntN(20)
	a.prose.walk(r, func(w string) bool {
		if s.Len() > 0 {
			s.WriteByte(' ')
		}
		switch from := s.Len(); n {
		case mark:
			b.Spans = append(b.Spans, millrace.Span{Type: millrace.CodeSpan, Start: from, End: from + len(w)})
		case mark - 5:
			b.Spans = append(b.Spans, millrace.Span{Type: millrace.LinkSpan, Start: from, End: from + len(w), URL: scpURL(r.IntN(1000))})
		}
		s.WriteString(w)
		n--
		return n <= 0 && strings.HasSuffix(w, ".") || n < -40
	})
	b.Text = s.String()
	return b
}

// lines returns at most n lines of code.
func (a *author) lines(r *rand.Rand, n int) string {
	var b strings.Builder
	left := n * 40
	a.code.walk(r, func(w string) bool {
		b.WriteString(w)
		if left--; strings.HasPrefix(w, "\n") {
			n--
		}
		return n <= 0 || left <= 0
	})
	return strings.TrimSpace(b.String())
}
