package search

import "context"

// Trial disables parts of the search, so that benchmarks can measure each part. The zero value
// disables nothing.
type Trial struct {
	AnyOnly      bool    // skip the search for passages with every word
	EveryOnly    bool    // search only for passages with every word
	Duplicates   bool    // keep near-duplicates
	StopWords    bool    // also search for stop words
	VectorWeight float64 // factor for the weight of similarity. If zero, 1.
}

type trialKey struct{}

// WithTrial returns a context in which [Run] uses a trial.
func WithTrial(ctx context.Context, t Trial) context.Context {
	return context.WithValue(ctx, trialKey{}, t)
}

func trialOf(ctx context.Context) Trial {
	t, _ := ctx.Value(trialKey{}).(Trial)
	return t
}
