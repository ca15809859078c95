package search

import (
	"cmp"
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

// rank gives the candidates that are chosen with their relevance, the best
// first. When the best by words leave too few, since they all stand in a few
// pages, those that follow are looked at too.
func (p *plan) rank(ix Index, st Statistics, ids []int64, m Meaning, perPage int, least float64) ([]ranked, error) {
	byWords := make([]ranked, 0, len(ids))
	err := ix.Passages(ids, func(pa Passage) error {
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
		if all, err = closely(ix, all, byWords[:n], m); err != nil {
			return nil, err
		}
		byWords = byWords[n:]
		kept := choose(slices.Clone(all), perPage, least, p.trial.Duplicates)
		if len(kept) >= few || len(byWords) == 0 {
			return kept, nil
		}
	}
}

// closely adds passages that are ranked by words to others, with all that
// there is to know of them, and gives the best first.
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

// choose leaves out what is not relevant enough, what says nearly the same as
// something better, and what is one too many of its page.
func choose(all []ranked, perPage int, least float64, duplicates bool) []ranked {
	kept := all[:0]
	pages := make(map[string]int)
	for _, r := range all {
		if r.relevance < least || r.relevance == 0 {
			break
		}
		if pages[r.URL] >= perPage || !duplicates && slices.ContainsFunc(kept, func(k ranked) bool { return Near(k.Print, r.Print) }) {
			continue
		}
		pages[r.URL]++
		kept = append(kept, r)
	}
	return kept
}
