package agent

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/millrace/millrace"
)

// quotaSource is a source that ends when a page is skipped because of a quota.
type quotaSource struct {
	millrace.Source
	// full is called when a page is skipped. If it returns an error, the stream ends with that error.
	full func() error
}

// Changes yields the changes of the source.
func (w *quotaSource) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range w.Source.Changes(ctx, since) {
			if isSkip(err) {
				err = cmp.Or(w.full(), err)
			}
			if !yield(c, err) || err != nil && !isSkip(err) {
				return
			}
		}
	}
}

func isSkip(err error) bool {
	_, is := errors.AsType[*millrace.SkipError](err)
	return is
}
