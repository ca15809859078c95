package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/millrace/millrace/extract"
)

// figures contains the sums of the results of pages.
type figures struct {
	n                          map[string]int
	f1, precision, recall      map[string]float64 // sums over pages, by set, or by kind of wcxb
	tp, fp, fn                 int                // true positives, false positives and false negatives for the snippets of traf
	author, authorOf           int                // number of invented authors, and of pages without an author
	date, dateOf               int
	authorRight, authorRightOf int
	dateRight, dateRightOf     int
}

type outcome struct {
	p                    *page
	precision, recall, f float64
	tp, fp, fn           int
	author, publish      string
}

// measure extracts a page and compares it with its gold.
func measure(ctx context.Context, p *page) (outcome, error) {
	o := outcome{p: p}
	res, err := extract.HTML(ctx, p.html, p.URL, nil)
	if err != nil {
		return o, err
	}
	text := res.Page.Text()
	switch p.set {
	case "wcxb":
		o.precision, o.recall, o.f = f1(p.gold, shingles(strings.ToLower(text), 1))
		o.author = res.Page.Author
		if !res.Page.Published.IsZero() {
			o.publish = res.Page.Published.Format("2006-01-02")
		}
	case "aeb":
		o.precision, o.recall, o.f = f1(p.gold, shingles(text, 4))
	default:
		text = oneLine(text)
		for _, s := range p.With {
			if strings.Contains(text, oneLine(s)) {
				o.tp++
			} else {
				o.fn++
			}
		}
		for _, s := range p.Without {
			if strings.Contains(text, oneLine(s)) {
				o.fp++
			}
		}
	}
	return o, nil
}

// measureAll measures pages on two cores. with returns the context of a page.
func measureAll(pages []*page, with func(*page) context.Context) ([]outcome, *figures, error) {
	out := make([]outcome, len(pages))
	var wait sync.WaitGroup
	errs := make([]error, 2)
	for k := range 2 {
		wait.Go(func() {
			for i := k; i < len(pages); i += 2 {
				if out[i], errs[k] = measure(with(pages[i]), pages[i]); errs[k] != nil {
					errs[k] = fmt.Errorf("%s %s: %w", pages[i].set, pages[i].ID, errs[k])
					return
				}
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, nil, err
		}
	}
	y := &figures{n: map[string]int{}, f1: map[string]float64{}, precision: map[string]float64{}, recall: map[string]float64{}}
	for i := range out {
		y.add(&out[i])
	}
	return out, y, nil
}

func (y *figures) add(o *outcome) {
	p := o.p
	for _, k := range []string{p.set, p.Kind} {
		y.n[k]++
		y.f1[k] += o.f
		y.precision[k] += o.precision
		y.recall[k] += o.recall
	}
	y.tp, y.fp, y.fn = y.tp+o.tp, y.fp+o.fp, y.fn+o.fn
	if p.Kind != "article" && p.Kind != "documentation" {
		return
	}
	count := func(gold, got string, invented, none, right, of *int) {
		if gold == "" {
			*none++
			if got != "" {
				*invented++
			}
			return
		}
		*of++
		if oneLine(gold) == oneLine(got) {
			*right++
		}
	}
	count(p.Author, o.author, &y.author, &y.authorOf, &y.authorRight, &y.authorRightOf)
	count(p.Published, o.publish, &y.date, &y.dateOf, &y.dateRight, &y.dateRightOf)
}

func (y *figures) mean(k string) float64 { return y.f1[k] / float64(max(y.n[k], 1)) }

// snippets returns precision, recall and F1 of the snippets of traf.
func (y *figures) snippets() (p, r, f float64) {
	p, r = float64(y.tp)/float64(max(y.tp+y.fp, 1)), float64(y.tp)/float64(max(y.tp+y.fn, 1))
	return p, r, 2 * p * r / max(p+r, 1e-9)
}

// String formats the figures in three lines: the sets, the kinds of pages in wcxb, and the authors
// and dates.
func (y *figures) String() string {
	var w strings.Builder
	for _, k := range sets[:2] {
		n := float64(max(y.n[k], 1))
		fmt.Fprintf(&w, "%s F1 %.4f P %.4f R %.4f  ", k, y.mean(k), y.precision[k]/n, y.recall[k]/n)
	}
	p, r, f := y.snippets()
	fmt.Fprintf(&w, "traf F1 %.4f P %.4f R %.4f\n  ", f, p, r)
	for _, k := range []string{"article", "documentation", "service", "forum", "product", "listing", "collection"} {
		fmt.Fprintf(&w, " %s %.4f", k, y.mean(k))
	}
	fmt.Fprintf(&w, "\n   author invented %d/%d right %d/%d  date invented %d/%d right %d/%d", y.author, y.authorOf, y.authorRight, y.authorRightOf, y.date, y.dateOf, y.dateRight, y.dateRightOf)
	return w.String()
}
