package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// manualWords compares the words that each extractor finds in the PostgreSQL manual with the words of
// the pages' bodies without navigation. A missing word is lost; a surplus word comes from the
// navigation. Words of the title are treated as kept, because the title is a field.
func (x *extraction) manualWords(ctx context.Context) error {
	names, err := x.manualPages()
	if err != nil {
		return err
	}
	var kept, leaked [3]int
	total := 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		want, err := manualText(data)
		if err != nil {
			return err
		}
		for _, n := range want {
			total += n
		}
		for i, e := range extractors {
			got, err := e.try(ctx, data, "https://example.com/"+filepath.Base(name))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			have := map[string]int{}
			if got.ours != nil {
				countBlocks(have, got.ours.Page.Blocks)
			} else {
				count(have, got.text)
			}
			title := map[string]int{}
			count(title, got.title)
			for w, n := range title {
				have[w] += min(n, max(want[w]-have[w], 0))
			}
			common, _, all := compare(want, have)
			kept[i] += common
			leaked[i] += all - common
		}
	}
	stay := extractRow{what: "postgresql-doc-15: words kept", count: total, reach: "above 0.999", good: kept[oursAt]*1000 > total*999}
	leak := extractRow{what: fmt.Sprintf("postgresql-doc-15: words leaked, %d pages", len(names)), count: total, reach: "0", good: leaked[oursAt] == 0}
	for i := range extractors {
		stay.cells[i] = fmt.Sprintf("%.5f", float64(kept[i])/float64(total))
		leak.cells[i] = fmt.Sprint(leaked[i])
	}
	x.rows = append(x.rows, stay, leak)
	return nil
}

// manualText returns the words of a page of the manual without its navigation.
func manualText(data []byte) (map[string]int, error) {
	doc, err := html.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		apart := n.Type == html.ElementNode && !inline(n.DataAtom)
		switch class := nodeAttr(n, "class"); {
		case n.DataAtom == atom.Head, class == "navheader", class == "navfooter":
			return
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case apart:
			b.WriteByte(' ')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if apart {
			b.WriteByte(' ')
		}
	}
	walk(doc)
	words := map[string]int{}
	count(words, b.String())
	return words, nil
}

// inline reports whether an element of the manual is part of a line. A word may continue across the
// border of such an element.
func inline(a atom.Atom) bool {
	switch a {
	case atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Cite, atom.Code, atom.Em, atom.I, atom.Q, atom.S, atom.Small, atom.Span, atom.Strong,
		atom.Sub, atom.Sup, atom.Tt, atom.U, atom.Var, atom.Kbd, atom.Samp, atom.Dfn, atom.Img, atom.Mark:
		return true
	}
	return false
}

// countBlocks counts the words in all texts of blocks.
func countBlocks(m map[string]int, blocks []millrace.Block) {
	for i := range blocks {
		b := &blocks[i]
		for _, s := range []string{b.Text, b.Caption, b.Title, b.Cite} {
			count(m, s)
		}
		for _, it := range b.Items {
			count(m, it.Term)
			count(m, it.Text)
			countBlocks(m, it.Blocks)
		}
		for _, row := range b.Rows {
			for _, c := range row {
				count(m, c.Text)
			}
		}
		countBlocks(m, b.Blocks)
	}
}
