package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace"
)

// Index is the stored index of a site. During a search, all methods must read the same state of the
// index.
type Index interface {
	// Statistics returns the statistics of the whole site.
	Statistics() Statistics
	// Frequency returns the number of passages with a term.
	Frequency(term string) (int, error)
	// Terms calls f with each term that starts with a prefix, in order, and the number of passages
	// with the term. It stops if f returns false.
	Terms(prefix string, f func(term string, n int) bool) error
	// Match returns the ids of at most limit passages that meet m, in ascending order.
	Match(m Match, limit int) ([]int64, error)
	// Best is like Match, but selects the passages with the best BM25 scores and returns the best
	// first.
	Best(m Match, limit int) ([]int64, error)
	// Passages calls f with the data of passages for ranking by words. The slices are valid
	// only until f returns.
	Passages(ids []int64, f func(p Passage) error) error
	// Details calls f with the remaining data of passages for ranking.
	Details(ids []int64, f func(d Detail) error) error
	// IsVisible reports whether the searched view has a page in the indexed version.
	IsVisible(ctx context.Context, page int64) (bool, error)
	// Hit sets the fields of h from URL through Text to those of a passage. It returns the
	// language of the page.
	Hit(id int64, h *millrace.Hit) (language string, err error)
	// QueryVector returns the vector of the question and its weight in the ranking. terms are the
	// terms of the question.
	QueryVector(terms []string) (QueryVector, error)
	// Nearest returns the ids of at most limit passages that meet m and whose vectors are most
	// similar to v. It may return none, for example for a large site.
	Nearest(v Vector, m Match, limit int) ([]int64, error)
}

// QueryVector is the vector of a question, and how it affects the ranking.
type QueryVector struct {
	Vector     Vector  // direction of the question. If nil, passages are ranked by words only.
	Weight     float64 // weight of similarity; that of words is 1
	HalfLength int     // number of words of a passage at which its similarity has half that weight
	Note       error   // why passages are ranked by words only, if the user should know it
}

// share returns the weight of the similarity for a passage of length words.
func (m QueryVector) share(length int) float64 {
	if m.HalfLength == 0 {
		return m.Weight
	}
	return m.Weight * float64(length) / float64(length+m.HalfLength)
}

// Statistics are the statistics of the indexed passages.
type Statistics struct {
	Passages  int
	Length    float64  // average of Entry.Length over the passages
	Languages []string // languages of the pages, the most common first
}

// Passage is the data of a passage for ranking by words.
type Passage struct {
	ID      int64
	Length  int // see Entry.Length
	Profile Profile
}

// Detail is the remaining data of a passage for ranking.
type Detail struct {
	ID          int64
	Page        int64  // id of the page
	URL         string // URL of the page, relative to the base
	Order       int    // position of the passage in the page
	Fingerprint uint64 // fingerprint of the text; see [Fingerprint]
	Vector      Vector // may be nil
}

const (
	defaultLimit   = 10
	defaultPerPage = 3
)

// cutNote returns an error if Parse ignores the end of a question, else nil.
func cutNote(text string) error {
	if head(text, millrace.MaxQuery) == text {
		return nil
	}
	return millrace.Coded("query-truncated", fmt.Errorf("only the first %d characters of the question are used", millrace.MaxQuery))
}

// Run answers a question. The package comment describes the order and the relevance of the hits.
func Run(ctx context.Context, ix Index, a *Analyzer, q millrace.Query) (*millrace.Found, error) {
	found := &millrace.Found{}
	st := ix.Statistics()
	parsed := Parse(q.Text)
	if parsed.Empty() || st.Passages == 0 {
		return found, nil
	}
	trial := trialOf(ctx)
	p, err := newPlan(parsed, a, st, ix, trial)
	if err != nil {
		return nil, err
	}
	ids, err := p.gather(ctx, ix)
	if err != nil {
		return nil, err
	}
	if len(ids) < few {
		text, ok, err := p.correct(ix, a, q.Text)
		if err != nil {
			return nil, err
		}
		if ok {
			corrected, err := newPlan(Parse(text), a, st, ix, trial)
			if err != nil {
				return nil, err
			}
			more, err := corrected.gather(ctx, ix)
			if err != nil {
				return nil, err
			}
			if len(more) > len(ids) {
				p, ids, found.Corrected = corrected, more, text
			}
		}
	}
	query, err := ix.QueryVector(p.terms)
	if err != nil {
		return nil, err
	}
	found.Note = cutNote(q.Text)
	for _, note := range []error{p.note, query.Note} {
		switch {
		case found.Note == nil:
			found.Note = note
		case note != nil:
			found.Note = fmt.Errorf("%w; %w", found.Note, note)
		}
	}
	if trial.VectorWeight != 0 {
		query.Weight *= trial.VectorWeight
	}
	if query.Vector != nil && len(ids) < few {
		near, err := ix.Nearest(query.Vector, p.filter, deep-few)
		if err != nil {
			return nil, err
		}
		slices.Sort(near)
		ids = append(ids, near...)
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	per := cmp.Or(max(q.PerPage, 0), defaultPerPage)
	if q.Page != "" {
		per = math.MaxInt
	}
	skip, limit := max(q.Skip, 0), cmp.Or(max(q.Limit, 0), defaultLimit)
	c := chooser{Index: ix, perPage: per, least: q.MinRelevance, duplicates: trial.Duplicates, sure: skip + limit}
	hits, err := p.rank(ctx, &c, st, ids, query)
	if err != nil {
		return nil, err
	}
	found.Total = len(hits)
	hits = hits[min(skip, len(hits)):]
	hits = hits[:min(len(hits), limit)]
	for _, r := range hits {
		h := millrace.Hit{Relevance: r.relevance}
		language, err := ix.Hit(r.ID, &h)
		if err != nil {
			return nil, err
		}
		h.Snippet, h.Marks = a.Snippet(h.Text, language, p.weights())
		found.Hits = append(found.Hits, h)
	}
	return found, nil
}
