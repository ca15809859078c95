package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// listed is a gold page with the result of millrace.
type listed struct {
	*goldPage
	got              *extracted
	f1               float64
	missing, surplus []passage
}

// list prints the worst results, which show how to improve extraction. By kind, it prints missing
// and surplus words and the worst pages, then wrong fields and lost structure. If x.page is set, it
// prints only that page, word by word.
func (x *extraction) list(ctx context.Context, pages []goldPage) error {
	byKind := map[string][]listed{}
	for i := range pages {
		p := &pages[i]
		if x.kind != "" && p.Kind != x.kind || x.page != "" && p.ID != x.page {
			continue
		}
		l, err := inspect(ctx, p)
		if err != nil {
			return fmt.Errorf("page %s: %w", p.ID, err)
		}
		byKind[p.Kind] = append(byKind[p.Kind], l)
		if x.page != "" {
			l.print()
			return nil
		}
	}
	if len(byKind) == 0 {
		return fmt.Errorf("no page of kind %q with id %q", x.kind, x.page)
	}
	for _, k := range slices.Sorted(maps.Keys(byKind)) {
		x.printKind(k, byKind[k])
	}
	if x.kind == "" {
		return x.printBlocks(ctx)
	}
	return nil
}

// inspect extracts a page and compares it with the gold.
func inspect(ctx context.Context, p *goldPage) (listed, error) {
	l := listed{goldPage: p}
	data, err := p.html()
	if err != nil {
		return l, err
	}
	if l.got, err = runMillrace(ctx, data, p.URL); err != nil {
		return l, err
	}
	l.f1 = f1(p.Text, l.got.text)
	tree, err := html.ParseWithOptions(bytes.NewReader(data), html.ParseOptionEnableScripting(false))
	if err != nil {
		tree = &html.Node{Type: html.DocumentNode} // nested too deeply: report no places
	}
	m := newPlaces(tree, l.got.ours)
	l.missing, l.surplus = m.differ(p.Text, l.got.text), m.differ(l.got.text, p.Text)
	return l, nil
}

// print prints everything about one page.
func (l *listed) print() {
	r := l.got.ours
	why := "kind " + string(r.Page.Kind)
	if r.Reason != nil {
		why = r.Reason.Error()
	}
	fmt.Printf("%s %s %s\nF1 %.3f, root %s, %s\n", l.ID, l.Kind, l.URL, l.f1, r.Root, why)
	for _, f := range [][3]string{
		{"title", l.Title, l.got.title},
		{"author", l.Author, l.got.author},
		{"published", l.Published, day(l.got.published)},
	} {
		fmt.Printf("%s: gold %q, ours %q from %q\n", f[0], f[1], f[2], r.Sources[f[0]])
	}
	for _, d := range r.Dropped {
		fmt.Printf("dropped %d words: %s (%s)\n", d.Words, d.Selector, d.Reason)
	}
	for _, s := range l.With {
		if !strings.Contains(fold(l.got.text), fold(s)) {
			fmt.Printf("missing: %q\n", s)
		}
	}
	for _, s := range l.Without {
		if strings.Contains(fold(l.got.text), fold(s)) {
			fmt.Printf("surplus: %q\n", s)
		}
	}
	for _, side := range []struct {
		mark string
		of   []passage
	}{{"-", l.missing}, {"+", l.surplus}} {
		for _, s := range side.of {
			fmt.Printf("%s %d words, %s, %s\n    %s\n", side.mark, s.words, s.cause, s.path, oneLine(s.text))
		}
	}
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}

func (x *extraction) printKind(kind string, pages []listed) {
	slices.SortStableFunc(pages, func(a, b listed) int { return cmp.Compare(a.f1, b.f1) })
	sum, empty := 0., 0
	for _, l := range pages {
		if sum += l.f1; l.got.text == "" {
			empty++
		}
	}
	fmt.Printf("\n== %s: %d pages, mean F1 %.4f, %d without content\n", kind, len(pages), sum/float64(len(pages)), empty)
	x.printCauses("missing", pages, func(l *listed) []passage { return l.missing })
	x.printCauses("surplus", pages, func(l *listed) []passage { return l.surplus })
	fmt.Println("-- worst pages: id, F1, words of the gold, of ours, root")
	for _, l := range pages[:min(x.lines, len(pages))] {
		gold, got := wordPattern.FindAllString(l.Text, -1), wordPattern.FindAllString(l.got.text, -1)
		fmt.Printf("%s %.3f %6d %6d  %s  %s\n", l.ID, l.f1, len(gold), len(got), l.got.ours.Root, l.URL)
	}
	if kind != "article" && kind != "documentation" {
		return
	}
	for _, f := range []struct {
		name string
		of   func(*listed) (gold, got string)
	}{
		{"title", func(l *listed) (string, string) { return fold(l.Title), fold(l.got.title) }},
		{"author", func(l *listed) (string, string) { return fold(l.Author), fold(l.got.author) }},
		{"published", func(l *listed) (string, string) { return l.Published, day(l.got.published) }},
	} {
		var lines []string
		for i := range pages {
			gold, got := f.of(&pages[i])
			if gold != got && (gold != "" || f.name == "published") {
				lines = append(lines, fmt.Sprintf("%s gold %q, ours %q from %q", pages[i].ID, gold, got, pages[i].got.ours.Sources[f.name]))
			}
		}
		fmt.Printf("-- %s: %d wrong\n%s", f.name, len(lines), lead(lines, x.lines))
	}
}

// printCauses groups passages by cause and landmark. It sorts the groups by the amount by which the
// mean F1 would rise without them.
func (x *extraction) printCauses(what string, pages []listed, of func(*listed) []passage) {
	type sum struct {
		gain         float64
		words, pages int
	}
	sums := map[string]*sum{}
	for i := range pages {
		l := &pages[i]
		words := map[string]int{}
		for _, s := range of(l) {
			words[s.cause+" | "+s.landmark] += s.words
		}
		for key, n := range words {
			y := sums[key]
			if y == nil {
				y = &sum{}
				sums[key] = y
			}
			y.gain += l.gain(what == "missing", n) / float64(len(pages))
			y.words += n
			y.pages++
		}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b].gain, sums[a].gain), strings.Compare(a, b))
	})
	fmt.Printf("-- %s: gain of the mean F1, words, pages, and where\n", what)
	for _, k := range keys[:min(x.lines, len(keys))] {
		fmt.Printf("%.4f %7d %4d  %s\n", sums[k].gain, sums[k].words, sums[k].pages, k)
	}
}

// gain returns the amount by which F1 would rise if n missing words were found, or n surplus words
// were omitted.
func (l *listed) gain(missing bool, n int) float64 {
	g, h := map[string]int{}, map[string]int{}
	count(g, l.Text)
	count(h, l.got.text)
	common, want, have := compare(g, h)
	if missing {
		common, have = min(common+n, want), have+n
	} else {
		have = max(have-n, common)
	}
	if want+have == 0 {
		return 1 - l.f1
	}
	return 2*float64(common)/float64(want+have) - l.f1
}

// lead returns at most the given number of lines, each with its line end.
func lead(lines []string, most int) string {
	var w strings.Builder
	for _, l := range lines[:min(most, len(lines))] {
		w.WriteString(l + "\n")
	}
	return w.String()
}

func (x *extraction) printBlocks(ctx context.Context) error {
	pages, err := readBlockPages(x.data)
	if err != nil {
		return err
	}
	fmt.Println("\n== blocks: what is missing")
	for i := range pages {
		got, err := runMillrace(ctx, pages[i].html, pages[i].url)
		if err != nil {
			return fmt.Errorf("%s: %w", pages[i].name, err)
		}
		var k kept
		k.note(&pages[i], got)
		for _, m := range k.missed {
			fmt.Printf("%s: %s (root %s)\n", pages[i].name, m, got.ours.Root)
		}
	}
	return nil
}
