package watch

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/millrace/millrace"
)

// Sum returns the Sum of a [Folder] for a source whose versions show every change. It lists the whole
// source. A page without a version always counts as changed.
func Sum(src millrace.Source) func(context.Context) uint64 {
	return func(ctx context.Context) uint64 {
		start, h := time.Now(), fnv.New64a()
		for c, err := range src.Changes(ctx, "") {
			fmt.Fprintln(h, c.URL, c.Version, err)
			if c.Version == "" && c.Checkpoint == nil {
				fmt.Fprintln(h, start.UnixNano()) // the file may change unnoticed
			}
		}
		return h.Sum64()
	}
}
