package watch

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/millrace/millrace"
)

// Sum is the Sum of a [Folder] that is a source whose versions tell of every
// change: it goes through all of them.
func Sum(src millrace.Source) func(context.Context) uint64 {
	return func(ctx context.Context) uint64 {
		start, h := time.Now(), fnv.New64a()
		for c, err := range src.Changes(ctx, "") {
			fmt.Fprintln(h, c.URL, c.Version, err)
			if c.Version == "" && c.Checkpoint == nil {
				fmt.Fprintln(h, start.UnixNano()) // it may change without a trace
			}
		}
		return h.Sum64()
	}
}
