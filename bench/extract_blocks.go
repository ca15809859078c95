package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// blockPage is one page of the gold set blocks.
type blockPage struct {
	name, url   string
	html        []byte
	title       string
	gold        shape
	codeHeading []string // lines of code that look like headings
}

func readBlockPages(data string) ([]blockPage, error) {
	names, err := filepath.Glob(filepath.Join(data, "blocks", "html", "*.html"))
	if err != nil || len(names) == 0 {
		return nil, errors.Join(fmt.Errorf("no pages in %s/blocks/html", data), err)
	}
	var pages []blockPage
	for _, file := range names {
		p := blockPage{name: strings.TrimSuffix(filepath.Base(file), ".html")}
		p.url = "https://example.com/" + p.name
		if p.html, err = os.ReadFile(file); err != nil {
			return nil, err
		}
		if _, rest, ok := strings.Cut(string(p.html), `<!-- {"url":"`); ok {
			p.url, _, _ = strings.Cut(rest, `"`)
		}
		gold, err := os.ReadFile(filepath.Join(data, "blocks", "markdown", p.name+".md"))
		if err != nil {
			return nil, err
		}
		_, rest, _ := strings.Cut(string(gold), "```json\n")
		head, text, _ := strings.Cut(rest, "\n```\n")
		var declared struct{ Title string }
		if err := json.Unmarshal([]byte(head), &declared); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		p.title = declared.Title
		p.codeHeading = p.gold.ofMarkdown(text)
		pages = append(pages, p)
	}
	return pages, nil
}

// kept counts the structure of the gold pages that one extractor kept.
//
//   - code: blocks with the same bytes, except for one trailing line end. The
//     gold has 45, without those in lists and quotes.
//   - language: blocks with the gold's language and the same letters. The gold has 17.
//   - table: tables whose non-empty cells have the same letters in the same
//     order. The gold has 16. Spans do not matter.
//   - heading: headings with the same letters at the same level. The gold has 172,
//     and 4 lines of code that start like a heading and are kept with the code. The
//     title of a page counts as a heading. The gold writes h1 as ##, so level 1
//     also matches its level 2, except in strict.
//   - image: images of the same file, in any size. The gold has 34, including 4
//     embeds that it writes as images.
//
// Each block matches at most one block of the gold, except for language.
type kept struct {
	code, language, table, heading, strict, image part
	missed                                        []string
}

// note adds the results for a page.
func (k *kept) note(p *blockPage, got *extracted) {
	var s shape
	if got.ours != nil {
		s.ofBlocks(got.ours.Page.Blocks)
	} else {
		s.ofNode(got.node)
	}
	miss := func(what, which string) { k.missed = append(k.missed, what+" "+which) }
	unused := slices.Clone(s.code)
	take := func(same func(code) bool) bool {
		i := slices.IndexFunc(unused, same)
		if i >= 0 {
			unused = slices.Delete(unused, i, i+1)
		}
		return i >= 0
	}
	for _, g := range p.gold.code {
		ok := take(func(c code) bool { return strings.TrimSuffix(c.text, "\n") == strings.TrimSuffix(g.text, "\n") })
		if k.code.add(ok); !ok {
			miss("code", fmt.Sprintf("%.80q", g.text))
		}
		if g.language == "" {
			continue
		}
		ok = slices.ContainsFunc(s.code, func(c code) bool { return letters(c.text) == letters(g.text) && c.language == g.language })
		if k.language.add(ok); !ok {
			miss("language", g.language)
		}
	}
	for _, line := range p.codeHeading {
		ok := slices.ContainsFunc(s.code, func(c code) bool { return strings.Contains(c.text, line) })
		k.heading.add(ok)
		k.strict.add(ok)
	}
	k.headings(p, s.headings, letters(got.title), miss)
	for _, g := range p.gold.tables {
		i := slices.IndexFunc(s.tables, func(t []string) bool { return slices.Equal(t, g) })
		if k.table.add(i >= 0); i < 0 {
			miss("table", fmt.Sprintf("%.80q", g))
			continue
		}
		s.tables = slices.Delete(s.tables, i, i+1)
	}
	for _, g := range p.gold.images {
		i := slices.Index(s.images, g)
		if k.image.add(i >= 0); i < 0 {
			miss("image", g)
			continue
		}
		s.images = slices.Delete(s.images, i, i+1)
	}
}

func (k *kept) headings(p *blockPage, have []heading, title string, miss func(what, which string)) {
	for _, g := range p.gold.headings {
		i := slices.Index(have, g)
		k.strict.add(i >= 0 || g.text == title)
		if i < 0 && g.level == 2 {
			i = slices.Index(have, heading{1, g.text})
		}
		k.heading.add(i >= 0 || g.text == title)
		switch {
		case i >= 0:
			have = slices.Delete(have, i, i+1)
		case g.text != title:
			miss("heading", fmt.Sprintf("h%d %s", g.level, g.text))
		}
	}
}

// blocks measures how much structure each extractor keeps.
func (x *extraction) blocks(ctx context.Context) error {
	pages, err := readBlockPages(x.data)
	if err != nil {
		return err
	}
	var all [3]kept
	for i := range pages {
		for k, e := range extractors {
			got, err := e.try(ctx, pages[i].html, pages[i].url)
			if err != nil {
				return fmt.Errorf("%s: %w", pages[i].name, err)
			}
			all[k].note(&pages[i], got)
		}
	}
	for _, c := range []struct {
		what  string
		reach int
		of    func(*kept) part
	}{
		{"identical code blocks", 44, func(k *kept) part { return k.code }},
		{"language of code blocks", 16, func(k *kept) part { return k.language }},
		{"tables with all cells", 15, func(k *kept) part { return k.table }},
		{fmt.Sprintf("headings with level (%d if h1 does not match the gold's ##)", all[oursAt].strict.n), 170, func(k *kept) part { return k.heading }},
		{"images", 32, func(k *kept) part { return k.image }},
	} {
		r := extractRow{what: c.what, reach: fmt.Sprint(c.reach), good: c.of(&all[oursAt]).n >= c.reach, count: c.of(&all[oursAt]).of}
		for k := range all {
			r.cells[k] = fmt.Sprint(c.of(&all[k]).n)
		}
		x.rows = append(x.rows, r)
	}
	return nil
}
