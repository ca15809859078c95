package search

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/millrace/millrace"
)

// FitOptions are what [Fit] may be told. The zero value works.
type FitOptions struct {
	Dimensions int // of the vectors, at most; 0 = 128
	Vocabulary int // the most terms that have a meaning; 0 = 30,000, at most 65,535
	// Entries is how many different terms of passages are looked at, added up
	// over the passages: a larger site is sampled. It bounds time and memory:
	// 5 bytes and about 2 µs each. 0 = 8,000,000, some 100,000 passages.
	Entries int
}

const (
	// On Cranfield, 96 to 192 dimensions are equally good, 48 and 64 worse.
	// Scaling them by powers of the singular values only did harm.
	defaultDimensions = 128
	defaultVocabulary = 30_000
	defaultEntries    = 8_000_000

	// minFit is how many different passages a model is made of at the least:
	// below, what goes with what is chance.
	minFit = 100
	// perDimension passages are needed for each dimension. On parts of the
	// Cranfield collection with 150 to 1,000 passages, 8 was never worse than
	// 4, 2 and 1 for weights up to 0.2, and mixed above.
	perDimension = 8
	// oversampling dimensions are computed and thrown away, and rounds of
	// the iteration bring the rest close to the largest singular values. With
	// 1 and 2 rounds nDCG@10 on Cranfield is .011 and .005 lower, with 3 and
	// with 7 it is the same.
	oversampling = 16
	rounds       = 4
	// maxDistinct different terms of one passage count.
	maxDistinct = 4096
)

// Fit learns from passages which terms mean alike: those that stand with the
// same others. It is latent semantic analysis, a truncated singular value
// decomposition of the matrix of passages and terms.
//
// The terms of a passage come as the Analyzer gives them, repeats included,
// without stop words; a slice is not kept. passages is ranged over once. The
// same passages give the same model, in whatever order they come and on
// however many cores; passages with the same terms count once. Time and
// memory are bounded by o. ErrUnavailable: there are too few passages. An
// error of passages ends Fit and comes through.
func Fit(ctx context.Context, passages iter.Seq2[[]string, error], o *FitOptions) (*Model, error) {
	if o == nil {
		o = &FitOptions{}
	}
	s := newSample(cmp.Or(max(o.Entries, 0), defaultEntries))
	n := 0
	for terms, err := range passages {
		if err != nil {
			return nil, fmt.Errorf("fit: %w", err)
		}
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("fit: %w", ctx.Err())
		}
		s.add(terms)
	}
	a := s.matrix(min(cmp.Or(max(o.Vocabulary, 0), defaultVocabulary), math.MaxUint16))
	if len(a.rows) < minFit || len(a.terms) == 0 {
		return nil, fmt.Errorf("fit: %d passages that say something: %w", len(a.rows), millrace.ErrUnavailable)
	}
	k := min(cmp.Or(max(o.Dimensions, 0), defaultDimensions), len(a.rows)/perDimension, len(a.terms))
	basis, sigma, err := a.decompose(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	return newModel(a, basis, sigma), nil
}
