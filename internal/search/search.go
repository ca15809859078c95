package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace"
)

// Index is one state of a site as a store keeps it for searching. Its methods
// agree with each other for as long as one search lasts.
type Index interface {
	// Statistics are those of the whole site.
	Statistics() Statistics
	// Frequency returns the number of passages with a term.
	Frequency(term string) (int, error)
	// Terms yields terms that start with a prefix and how many passages have
	// each, in order, until f returns false.
	Terms(prefix string, f func(term string, n int) bool) error
	// Match returns passages, at most so many, ordered by id.
	Match(m Match, limit int) ([]int64, error)
	// Best is like Match, but gives those with the highest rank by BM25.
	Best(m Match, limit int) ([]int64, error)
	// Passages returns what ranking by words has to know of passages. The
	// slices that f is given are only good until it returns.
	Passages(ids []int64, f func(p Passage) error) error
	// Details returns the rest, of the passages that are left then.
	Details(ids []int64, f func(d Detail) error) error
	// Shown reports whether the view that is searched has a page as it is indexed.
	Shown(ctx context.Context, page int64) (bool, error)
	// Hit fills the fields of a hit that the index keeps, all up to Text, and
	// tells the language of the page.
	Hit(id int64, h *millrace.Hit) (language string, err error)
	// Meaning returns what the question means, which may depend on its terms.
	Meaning(terms []string) (Meaning, error)
	// Nearest returns passages with the directions most similar to one, if the
	// site is small enough for that.
	Nearest(v Vector, m Match, limit int) ([]int64, error)
}

// Meaning is what a question means.
type Meaning struct {
	Vector Vector  // nil: meaning is not looked at
	Weight float64 // of similarity beside words, from 0 to 1
	Short  int     // a passage with fewer words has no direction of its own
	Note   error   // why meaning is not looked at, if the user should know
}

// Statistics are about the passages that are current.
type Statistics struct {
	Passages  int
	Length    float64  // of an average passage, as in [Entry]
	Languages []string // of the pages, the most common first
}

// Passage is what ranking by words has to know of a passage.
type Passage struct {
	ID      int64
	Length  int // as in [Entry]
	Profile Profile
}

// Detail is what ranking has to know beside that.
type Detail struct {
	ID     int64
	Page   int64  // id of the page
	URL    string // identity of the page
	Order  int    // in the page
	Print  uint64 // of its text, see [Fingerprint]
	Vector Vector // nil = none
}

const (
	defaultLimit   = 10
	defaultPerPage = 3
)

// cutNote returns why the end of a question does not count, nil if it does.
func cutNote(text string) error {
	if head(text, millrace.MaxQuery) == text {
		return nil
	}
	return millrace.Coded("query-cut", fmt.Errorf("the first %d characters of the question count", millrace.MaxQuery))
}

// Run answers a question. See the package's comment for what relevance is.
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
	if len(ids) == 0 {
		text, ok, err := p.correct(ix, a, q.Text)
		if err != nil {
			return nil, err
		}
		if ok {
			if p, err = newPlan(Parse(text), a, st, ix, trial); err != nil {
				return nil, err
			}
			if ids, err = p.gather(ctx, ix); err != nil {
				return nil, err
			}
			if len(ids) > 0 {
				found.Corrected = text
			}
		}
	}
	meaning, err := ix.Meaning(p.terms)
	if err != nil {
		return nil, err
	}
	found.Note = cutNote(q.Text)
	for _, note := range []error{p.note, meaning.Note} {
		switch {
		case found.Note == nil:
			found.Note = note
		case note != nil:
			found.Note = fmt.Errorf("%w; %w", found.Note, note)
		}
	}
	if trial.Meaning != 0 {
		meaning.Weight = min(1, meaning.Weight*trial.Meaning)
	}
	if meaning.Vector != nil && len(ids) < few {
		near, err := ix.Nearest(meaning.Vector, p.filter, deep-few)
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
	c := chooser{Index: ix, perPage: per, least: q.Least, duplicates: trial.Duplicates, sure: skip + limit}
	hits, err := p.rank(ctx, &c, st, ids, meaning)
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
