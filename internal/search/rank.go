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

// The usual constants of BM25: saturation by repeated words, and normalization by length.
const (
	saturation = 1.2
	lengthPart = 0.75
)

// excludedPart is the factor for the score of a passage with an excluded word or phrase, if
// exclusions are not a condition.
const excludedPart = 0.5

// few is the number of passages below which a search also corrects the spelling and finds passages
// by their vectors, and rank considers more candidates.
const few = 10

// deep is the number of passages, the best by words, that rank first compares by similarity.
const deep = 300

// ranked is a passage with its scores.
type ranked struct {
	Detail
	length    int
	lexical   float64 // see plan.lexical
	score     float64 // determines the order of the hits
	relevance float64
}

// lexical returns how well a passage matches the words, from 0 to 1: BM25 divided by its
// maximum.
func (p *plan) lexical(pa *Passage, average float64) float64 {
	if p.total == 0 {
		return 1 // the question consists only of filters, which the passage meets
	}
	norm := saturation
	if average > 0 {
		norm *= 1 - lengthPart + lengthPart*float64(pa.Length)/average
	}
	sum := 0.0
	for _, ph := range p.phrases {
		if _, ok := slices.BinarySearch(ph.passages, pa.ID); ok {
			sum += ph.weight / (1 + norm)
		}
	}
	for _, w := range p.words {
		tf := 0
		for _, h := range w.hashes {
			tf = max(tf, pa.Profile.weight(h))
		}
		if tf > 0 {
			sum += w.weight * float64(tf) / (float64(tf) + norm)
		}
	}
	if _, ok := slices.BinarySearch(p.excluded, pa.ID); ok {
		sum *= excludedPart
	}
	return sum / p.total
}

// rank returns the chosen candidates with their relevance, the best first. If choose drops so many
// of the best candidates by words that too few remain, rank adds the next ones.
func (p *plan) rank(ctx context.Context, c *chooser, st Statistics, ids []int64, m QueryVector) ([]ranked, error) {
	rest := make([]ranked, 0, len(ids))
	err := c.Passages(ids, func(pa Passage) error {
		rest = append(rest, ranked{Detail: Detail{ID: pa.ID}, length: pa.Length, lexical: p.lexical(&pa, st.Length)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(rest) > deep {
		slices.SortFunc(rest, func(a, b ranked) int {
			return cmp.Or(cmp.Compare(b.lexical, a.lexical), cmp.Compare(a.ID, b.ID))
		})
	}
	var all []ranked
	for {
		n := min(len(rest), deep)
		if all, err = details(c, all, rest[:n]); err != nil {
			return nil, err
		}
		rest = rest[n:]
		order(all, m)
		chosen, err := c.choose(ctx, slices.Clone(all))
		if err != nil || len(chosen) >= few || len(rest) == 0 {
			return chosen, err
		}
	}
}

// details adds passages with their details to all, and returns the result.
func details(ix Index, all, some []ranked) ([]ranked, error) {
	slices.SortFunc(some, func(a, b ranked) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]int64, len(some))
	for i, r := range some {
		ids[i] = r.ID
	}
	next := 0
	err := ix.Details(ids, func(d Detail) error {
		r := some[next]
		if d.ID != r.ID {
			return fmt.Errorf("%w: passage %d has no details", millrace.ErrConflict, r.ID)
		}
		d.Vector = slices.Clone(d.Vector)
		r.Detail = d
		all = append(all, r)
		next++
		return nil
	})
	return all, err
}

// order sorts passages by words and similarity, the best first, and sets their relevance.
func order(all []ranked, m QueryVector) {
	if len(all) == 0 {
		return
	}
	sortByScore(all, m, m.Vector)
	if m.Vector != nil {
		// Sort again with the best passages, which describe the subject better than the question
		// alone.
		sortByScore(all, m, feedback(all[:min(len(all), fedBack)], m))
	}
	best := all[0]
	fit := max(best.lexical, Similarity(m.Vector, best.Vector)/3)
	for i := range all {
		if all[i].relevance = 0; best.score > 0 {
			all[i].relevance = math.Round(relevance(fit*all[i].score/best.score)*1e4) / 1e4
		}
	}
}

// chances maps the share of the question that a passage contains to the chance that the passage is
// relevant, if it is among the ten best. The points are from isotonic regression over the questions
// of Cranfield, CACM and CISI. For few of these questions, a passage contains a share above 0.7.
// Similarity affects the chance only if few words match, because it differs more between sites
// than between good and bad results.
var chances = [][2]float64{{0, 0}, {0.08, 0.05}, {0.2, 0.22}, {0.4, 0.32}, {0.55, 0.4}, {0.7, 0.58}, {0.85, 0.9}, {1, 1}}

// relevance returns the chance for a share, interpolated between the points of chances.
func relevance(part float64) float64 {
	for i := 1; i < len(chances); i++ {
		if a, b := chances[i-1], chances[i]; part <= b[0] {
			return a[1] + (b[1]-a[1])*(max(part, a[0])-a[0])/(b[0]-a[0])
		}
	}
	return 1
}

// sortByScore sorts passages by their scores for words and for the similarity to v. Each score is
// divided by its maximum, so that both count on every site.
func sortByScore(all []ranked, m QueryVector, v Vector) {
	similarity := make([]float64, len(all))
	var words, most float64
	for i, r := range all {
		similarity[i] = max(0, Similarity(v, r.Vector))
		words, most = max(words, r.lexical), max(most, similarity[i])
	}
	for i := range all {
		all[i].score = 0
		if words > 0 {
			all[i].score = all[i].lexical / words
		}
		if most > 0 {
			all[i].score += m.share(all[i].length) * similarity[i] / most
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.URL, b.URL), cmp.Compare(a.Order, b.Order))
	})
}

// fedBack is the number of best passages whose vectors are added to the vector of the question.
const fedBack = 5

// feedback returns the direction of the question and of the best passages (Rocchio's method).
func feedback(best []ranked, m QueryVector) Vector {
	sum := make([]float32, m.Vector.Dimensions())
	m.Vector.addTo(sum, 1)
	for _, r := range best {
		r.Vector.addTo(sum, m.share(r.length)/(m.Weight*fedBack))
	}
	return NewVector(sum)
}

// chooser selects the passages to return.
type chooser struct {
	Index
	perPage    int
	least      float64
	duplicates bool // keep near-duplicates
	sure       int  // number of passages to look up in the view; others are only counted
}

// choose drops passages that are not relevant enough, near-duplicates of a better passage, and
// passages above the limit per page. Until c.sure passages are chosen, it also drops passages that
// the view does not contain.
func (c *chooser) choose(ctx context.Context, all []ranked) ([]ranked, error) {
	chosen := all[:0]
	pages := make(map[int64]int)
	for _, r := range all {
		if r.relevance < c.least || r.relevance == 0 {
			break
		}
		if pages[r.Page] >= c.perPage || !c.duplicates && slices.ContainsFunc(chosen, func(k ranked) bool { return Near(k.Fingerprint, r.Fingerprint) }) {
			continue
		}
		if len(chosen) < c.sure {
			if visible, err := c.IsVisible(ctx, r.Page); err != nil {
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
