package search

import (
	"context"
	"math"
	"slices"
)

// Limits of the cost of a question.
const (
	enough    = 100    // number of candidates with every word at which the search for candidates ends
	most      = 500    // maximum number of candidates to rank
	postings  = 12_000 // maximum number of entries to read from the lists of words, including repeats
	preferred = 16     // maximum number of preferred phrases
)

// gather returns the candidates of a plan: the passages with every word that meet the optional
// condition. If there is no such passage, the optional condition becomes a preference. If there
// are too few candidates, gather adds the passages whose words have the highest total weight. It
// does not look up common words that would only change the order; rank considers them.
func (p *plan) gather(ctx context.Context, ix Index) ([]int64, error) {
	whole, lost := p.every()
	if whole.none() {
		return nil, nil
	}
	var ids []int64
	if !lost && !p.trial.AnyOnly {
		var err error
		if ids, err = ix.Match(whole, most+1); err != nil {
			return nil, err
		}
		if len(ids) > most {
			return p.gatherBest(ix, whole)
		}
	}
	if len(ids) > 0 {
		p.filter, p.optional = p.filter.and(p.optional), Match{}
	} else if err := p.prefer(ix); err != nil {
		return nil, err
	}
	wanted := 0
	for _, w := range p.words {
		if !w.filter {
			wanted++
		}
	}
	if len(ids) >= enough || wanted == 0 || wanted == 1 && len(ids) > 0 && !p.trial.AnyOnly || p.trial.EveryOnly {
		return ids, nil
	}
	return p.gatherAny(ctx, ix, ids)
}

// every returns the condition that a passage contains the whole question. lost reports whether a
// word of the question does not occur on the site.
func (p *plan) every() (m Match, lost bool) {
	m = p.filter.and(p.optional)
	for _, w := range p.words {
		if !w.filter {
			lost = lost || w.n == 0
			m.All = append(m.All, w.phrases())
		}
	}
	return m, lost
}

// prefer turns the optional condition into preferences. Its words are then looked up like other
// words.
func (p *plan) prefer(ix Index) (err error) {
	for _, w := range p.words {
		w.filter = w.filter && !w.quoted
	}
	for _, forms := range p.optional.All[:min(len(p.optional.All), preferred)] {
		if len(forms[0].Terms) == 1 {
			continue // a phrase of one word needs no preference
		}
		passages, err := ix.Match(Match{All: [][]Phrase{forms}}, postings)
		if err != nil {
			return err
		}
		if n := len(passages); n > 0 {
			p.phrases = append(p.phrases, phrase{passages, rarity(n, ix.Statistics().Passages)})
			p.total += p.phrases[len(p.phrases)-1].weight
		}
	}
	if len(p.optional.Not) > 0 {
		p.excluded, err = ix.Match(Match{All: [][]Phrase{p.optional.Not}}, postings)
	}
	p.optional = Match{}
	return err
}

// gatherBest selects candidates if too many passages have every word. It prefers passages with the
// words in the title or a heading. It adds others only if there are too few of these.
func (p *plan) gatherBest(ix Index, m Match) ([]int64, error) {
	head := m
	head.Head = true
	best, err := ix.Match(head, most)
	if err != nil {
		return nil, err
	}
	if len(best) >= enough {
		return best, nil
	}
	rest, err := ix.Best(m, most)
	if err != nil {
		return nil, err
	}
	best = append(best, rest...)
	slices.Sort(best)
	return slices.Compact(best), nil
}

// candidate is a passage with the weight of the words found in it so far.
type candidate struct {
	id     int64
	weight float64
}

// gatherAny returns the candidates with some of the words. It looks up the words one by one, the
// rarest first, until enough candidates outweigh all remaining words or the budget is spent.
// complete are the passages with every word.
func (p *plan) gatherAny(ctx context.Context, ix Index, complete []int64) ([]int64, error) {
	var found []candidate
	rest := p.total
	budget := postings
	for _, w := range p.words {
		rest -= w.weight
		if w.filter || w.n == 0 {
			continue
		}
		if w.n > budget && len(found) > 0 {
			break // the words that follow are more common
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m := p.filter
		m.All = append(slices.Clip(m.All), w.phrases())
		ids, err := ix.Match(m, budget)
		if err != nil {
			return nil, err
		}
		budget -= len(ids)
		found = merge(found, ids, w.weight)
		better := 0
		for _, c := range found {
			if c.weight > rest {
				better++
			}
		}
		if better >= enough || budget <= 0 {
			break
		}
	}
	return heaviest(merge(found, complete, p.total)), nil
}

// merge adds the passages of another word. Both lists are sorted by id.
func merge(found []candidate, ids []int64, weight float64) []candidate {
	out := make([]candidate, 0, len(found)+len(ids))
	for len(found) > 0 && len(ids) > 0 {
		switch {
		case found[0].id < ids[0]:
			out = append(out, found[0])
			found = found[1:]
		case found[0].id > ids[0]:
			out = append(out, candidate{ids[0], weight})
			ids = ids[1:]
		default:
			out = append(out, candidate{ids[0], found[0].weight + weight})
			found, ids = found[1:], ids[1:]
		}
	}
	out = append(out, found...)
	for _, id := range ids {
		out = append(out, candidate{id, weight})
	}
	return out
}

// heaviest returns the ids of the candidates to rank, in order.
func heaviest(found []candidate) []int64 {
	least, ties := math.Inf(-1), most
	if len(found) > most {
		count := make(map[float64]int) // has at most as many entries as there are sets of words
		for _, c := range found {
			count[c.weight]++
		}
		weights := make([]float64, 0, len(count))
		for w := range count {
			weights = append(weights, w)
		}
		slices.Sort(weights)
		ties = most
		for i := len(weights) - 1; i >= 0; i-- {
			least = weights[i]
			if count[least] >= ties {
				break
			}
			ties -= count[least]
		}
	}
	ids := make([]int64, 0, min(len(found), most))
	for _, c := range found {
		switch {
		case c.weight > least:
			ids = append(ids, c.id)
		case c.weight == least && ties > 0:
			ids = append(ids, c.id)
			ties--
		}
	}
	return ids
}
