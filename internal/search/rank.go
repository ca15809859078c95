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

// The usual constants of BM25: saturation by repeated words, and normalisation by length.
const (
	saturation = 1.2
	lengthPart = 0.75
)

// few is a number of passages. If fewer are found, the search uses meaning to find more, and
// rank considers more candidates.
const few = 10

// deep is the number of the best passages by words that are also ranked by meaning.
const deep = 400

// ranked is a passage and its relevance.
type ranked struct {
	Detail
	length    int
	relevance float64
}

// lexical returns how well a passage matches the words, from 0 to 1: BM25 divided by its
// maximum.
func (p *plan) lexical(pa *Passage, average float64) float64 {
	if p.total == 0 {
		return 1 // the question has only filters, which the passage meets
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

// rank returns the chosen candidates with their relevance, the best first. If the best
// candidates by words are on so few pages that too few remain, rank adds the next ones.
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
		chosen, err := c.choose(ctx, slices.Clone(all))
		if err != nil || len(chosen) >= few || len(byWords) == 0 {
			return chosen, err
		}
	}
}

// closely ranks passages by words and meaning, adds them to all, and returns the result, the
// best first.
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

// chooser selects the passages to return.
type chooser struct {
	Index
	perPage    int
	least      float64
	duplicates bool // keep near-duplicates
	sure       int  // number of passages to look up in the view; the rest is only counted
}

// choose drops passages that are not relevant enough, near-duplicates of a better passage,
// passages above the limit of their page, and passages that the view lacks.
func (c *chooser) choose(ctx context.Context, all []ranked) ([]ranked, error) {
	chosen := all[:0]
	pages := make(map[int64]int)
	for _, r := range all {
		if r.relevance < c.least || r.relevance == 0 {
			break
		}
		if pages[r.Page] >= c.perPage || !c.duplicates && slices.ContainsFunc(chosen, func(k ranked) bool { return Near(k.Print, r.Print) }) {
			continue
		}
		if len(chosen) < c.sure {
			if visible, err := c.Shown(ctx, r.Page); err != nil {
				return nil, err
			} else if !visible {
				continue
			}
		}
		pages[r.Page]++
		chosen = append(chosen, r)
	}
	return chosen, nil
}
