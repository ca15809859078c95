package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// The constants of BM25, as everybody has them: how soon a word that is
// repeated counts no more, and how much of the length of a passage is held
// against it.
const (
	saturation = 1.2
	lengthPart = 0.75
)

// few candidates are too few: meaning looks for more.
const few = 10

// deep is how many passages, the best by words, are looked at closely.
const deep = 400

// ranked is a passage with its relevance.
type ranked struct {
	Detail
	length    int
	relevance float64
}

// lexical is how much of what the question asks for stands in a passage, from
// 0 to 1: BM25 over the most that it can be.
func (p *plan) lexical(pa *Passage, average float64) float64 {
	if p.total == 0 {
		return 1 // there were only filters, and they hold
	}
	norm := saturation
	if average > 0 {
		norm *= 1 - lengthPart + lengthPart*float64(pa.Length)/average
	}
	sum := 0.0
	for _, w := range p.words {
		tf := 0
		for _, h := range w.hashes {
			tf = max(tf, pa.Profile.weight(h))
		}
		if tf > 0 {
			sum += w.weight * float64(tf) / (float64(tf) + norm)
		}
	}
	return sum / p.total
}

// rank returns the candidates that are chosen with their relevance, the best
// first. When the best by words leave too few, since they all stand in a few
// pages, those that follow are looked at too.
func (p *plan) rank(ctx context.Context, c *chooser, st Statistics, ids []int64, m Meaning) ([]ranked, error) {
	byWords := make([]ranked, 0, len(ids))
	err := c.Passages(ids, func(pa Passage) error {
		byWords = append(byWords, ranked{Detail{ID: pa.ID}, pa.Length, p.lexical(&pa, st.Length)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(byWords) > deep {
		slices.SortFunc(byWords, func(a, b ranked) int {
			return cmp.Or(cmp.Compare(b.relevance, a.relevance), cmp.Compare(a.ID, b.ID))
		})
	}
	var all []ranked
	for {
		n := min(len(byWords), deep)
		if all, err = closely(c, all, byWords[:n], m); err != nil {
			return nil, err
		}
		byWords = byWords[n:]
		kept, err := c.choose(ctx, slices.Clone(all))
		if err != nil || len(kept) >= few || len(byWords) == 0 {
			return kept, err
		}
	}
}

// closely adds passages that are ranked by words to others, with all that
// there is to know of them, and returns the best first.
func closely(ix Index, all, byWords []ranked, m Meaning) ([]ranked, error) {
	slices.SortFunc(byWords, func(a, b ranked) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]int64, len(byWords))
	for i, r := range byWords {
		ids[i] = r.ID
	}
	next := 0
	err := ix.Details(ids, func(d Detail) error {
		r := byWords[next]
		if d.ID != r.ID {
			return fmt.Errorf("%w: passage %d has no details", millrace.ErrConflict, r.ID)
		}
		if m.Vector != nil && d.Vector != nil && r.length >= m.Short {
			r.relevance = (1-m.Weight)*r.relevance + m.Weight*max(0, Similarity(m.Vector, d.Vector))
		}
		d.Vector = nil
		r.Detail, r.relevance = d, math.Round(r.relevance*1e4)/1e4
		all = append(all, r)
		next++
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.relevance, a.relevance), strings.Compare(a.URL, b.URL), cmp.Compare(a.Order, b.Order))
	})
	return all, nil
}

// chooser decides which passages are found.
type chooser struct {
	Index
	perPage    int
	least      float64
	duplicates bool // are kept
	sure       int  // so many of the best are looked up in the view; the others only count
}

// choose leaves out what is not relevant enough, what says nearly the same as
// something better, what is one too many of its page, and what the view does
// not show.
func (c *chooser) choose(ctx context.Context, all []ranked) ([]ranked, error) {
	kept := all[:0]
	pages := make(map[int64]int)
	for _, r := range all {
		if r.relevance < c.least || r.relevance == 0 {
			break
		}
		if pages[r.Page] >= c.perPage || !c.duplicates && slices.ContainsFunc(kept, func(k ranked) bool { return Near(k.Print, r.Print) }) {
			continue
		}
		if len(kept) < c.sure {
			if shown, err := c.Shown(ctx, r.Page); err != nil {
				return nil, err
			} else if !shown {
				continue
			}
		}
		pages[r.Page]++
		kept = append(kept, r)
	}
	return kept, nil
}
