package search

import "context"

// Trial switches parts of answering off, to show what each of them is worth:
// the benchmarks print it. The zero value answers as everybody is answered.
type Trial struct {
	AnyOnly    bool    // do not look for passages with every word first
	EveryOnly  bool    // and no others
	Duplicates bool    // keep passages that say nearly the same
	StopWords  bool    // look for the stop words of a question, too
	Meaning    float64 // how many times as much meaning counts beside words; 0 = once
}

type trialKey struct{}

// WithTrial returns a context in which [Run] answers by a trial.
func WithTrial(ctx context.Context, t Trial) context.Context {
	return context.WithValue(ctx, trialKey{}, t)
}

func trialOf(ctx context.Context) Trial {
	t, _ := ctx.Value(trialKey{}).(Trial)
	return t
}
