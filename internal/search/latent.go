package search

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/millrace/millrace"
)

// FitOptions configure [Fit]. The zero value works.
type FitOptions struct {
	Dimensions int // maximum size of vectors. If zero, 128.
	Vocabulary int // maximum number of terms with a vector, at most 65,535. If zero, 30,000.
	// Entries is the maximum number of pairs of a passage and one of its terms. If a site has
	// more, Fit uses a sample of its passages. An entry takes 5 bytes and about 2 µs. If zero,
	// 8,000,000, which is about 100,000 passages.
	Entries int
}

const (
	// On Cranfield, 96 to 192 dimensions are equally good; 48 and 64 are worse. Scaling the
	// dimensions by powers of the singular values is worse too.
	defaultDimensions = 128
	defaultVocabulary = 30_000
	defaultEntries    = 8_000_000

	// minFit is the minimum number of different passages for a model. With fewer passages, words
	// often occur together only by chance.
	minFit = 100
	// perDimension is the number of passages needed for each dimension. On parts of the
	// Cranfield collection with 150 to 1,000 passages, 8 was never worse than 4, 2 and 1 for
	// similarity weights up to 0.2. For higher weights, results were mixed.
	perDimension = 8
	// oversampling is the number of extra dimensions that Fit computes and drops. With them, few
	// rounds of the iteration bring the other dimensions close to those of the largest singular
	// values. With 1 and 2 rounds, nDCG@10 on Cranfield is .011 and .005 lower; with 3 and 7
	// rounds, it is equal.
	oversampling = 16
	rounds       = 4
	// maxDistinct is the maximum number of different terms of one passage that Fit uses.
	maxDistinct = 4096
)

// Fit computes latent vectors for the most useful terms of passages: terms that occur with similar
// other terms have similar vectors. It uses latent semantic analysis, a truncated singular value
// decomposition of the matrix of passages and terms.
//
// Each passage is the slice of its terms from the Analyzer, with repeats and without stop words.
// Fit does not keep the slices and ranges over passages once. The same passages produce the same
// model in any order and on any number of cores. Of several passages with equal terms, Fit uses
// only one. o limits time and memory. If there are too few passages, Fit returns ErrUnavailable.
// If passages yields an error, Fit returns it.
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
		return nil, fmt.Errorf("fit: only %d usable passages: %w", len(a.rows), millrace.ErrUnavailable)
	}
	k := min(cmp.Or(max(o.Dimensions, 0), defaultDimensions), len(a.rows)/perDimension, len(a.terms))
	basis, sigma, err := a.decompose(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	return newModel(a, basis, sigma), nil
}
