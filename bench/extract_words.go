package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// part is a numerator and its denominator.
type part struct{ n, of int }

func (p *part) add(yes bool) {
	p.of++
	if yes {
		p.n++
	}
}

func (p part) share() float64 { return float64(p.n) / float64(max(p.of, 1)) }

// scores sums the results of one extractor on the pages of one kind.
type scores struct {
	pages                         int
	f1                            float64 // sum over pages
	with, without                 part    // snippets: present, and rightly absent
	withExact, withoutExact       part    // the same, with exact quotes and dashes
	title, author, date, invented part
}

// note adds the results for a page.
func (y *scores) note(p *goldPage, got *extracted) {
	y.pages++
	y.f1 += f1(p.Text, got.text)
	line, folded := oneLine(got.text), fold(got.text)
	for _, s := range p.With {
		y.with.add(strings.Contains(folded, fold(s)))
		y.withExact.add(strings.Contains(line, oneLine(s)))
	}
	for _, s := range p.Without {
		y.without.add(!strings.Contains(folded, fold(s)))
		y.withoutExact.add(!strings.Contains(line, oneLine(s)))
	}
	if p.Title != "" {
		y.title.add(fold(p.Title) == fold(got.title))
	}
	if p.Author != "" {
		y.author.add(fold(p.Author) == fold(got.author))
	}
	if p.Published != "" {
		y.date.add(sameDay(p.Published, got.published))
	} else {
		y.invented.add(!got.published.IsZero())
	}
}

// sameDay reports whether two dates are on the same day, each in its own time zone.
func sameDay(gold string, got time.Time) bool {
	return !got.IsZero() && got.Format(time.DateOnly) == gold
}

// kinds lists the kinds of pages in wcxb. The first five have a target.
var kinds = []string{"all", "article", "documentation", "service", "forum", "product", "listing", "collection"}

// words measures the extraction of text and fields from the pages of wcxb.
func (x *extraction) words(ctx context.Context, pages []goldPage) error {
	var byKind [3]map[string]*scores
	for i := range byKind {
		byKind[i] = map[string]*scores{"fields": {}}
		for _, k := range kinds {
			byKind[i][k] = &scores{}
		}
	}
	for k := range pages {
		p := &pages[k]
		if !slices.Contains(kinds, p.Kind) {
			return fmt.Errorf("page %s: unknown kind %q", p.ID, p.Kind)
		}
		data, err := p.html()
		if err != nil {
			return err
		}
		for i, e := range extractors {
			got, err := e.try(ctx, data, p.URL)
			if err != nil {
				return fmt.Errorf("page %s: %w", p.ID, err)
			}
			byKind[i]["all"].note(p, got)
			byKind[i][p.Kind].note(p, got)
			if p.Kind == "article" || p.Kind == "documentation" {
				byKind[i]["fields"].note(p, got)
			}
		}
	}
	row := func(what, kind string, reach float64, f func(*scores) (float64, int)) {
		var v [3]float64
		n := 0
		for i := range v {
			v[i], n = f(byKind[i][kind])
		}
		x.atLeast(what, n, v, reach)
	}
	reach := map[string]float64{"all": .87, "article": .95, "documentation": .95, "service": .85, "forum": .77}
	for _, k := range kinds {
		row("word F1, "+k, k, reach[k], func(y *scores) (float64, int) { return y.f1 / float64(max(y.pages, 1)), y.pages })
	}
	row("wanted snippets present, quotes and dashes exact, all", "all", 0, func(y *scores) (float64, int) { return y.withExact.share(), y.withExact.of })
	row("unwanted snippets absent, quotes and dashes exact, all", "all", 0, func(y *scores) (float64, int) { return y.withoutExact.share(), y.withoutExact.of })
	for _, k := range kinds {
		to := 0.
		if k == "all" {
			to = .90
		}
		row("wanted snippets present, "+k, k, to, func(y *scores) (float64, int) { return y.with.share(), y.with.of })
		row("unwanted snippets absent, "+k, k, to, func(y *scores) (float64, int) { return y.without.share(), y.without.of })
	}
	const where = " (articles and documentation)"
	row("title exact"+where, "fields", .85, func(y *scores) (float64, int) { return y.title.share(), y.title.of })
	row("author exact"+where, "fields", .68, func(y *scores) (float64, int) { return y.author.share(), y.author.of })
	row("date exact to the day"+where, "fields", .80, func(y *scores) (float64, int) { return y.date.share(), y.date.of })
	row("date reported for a page without one"+where, "fields", 0, func(y *scores) (float64, int) { return y.invented.share(), y.invented.of })
	last := &x.rows[len(x.rows)-1]
	last.reach, last.good = "below 0.03", byKind[oursAt]["fields"].invented.share() < .03
	return nil
}
