package savings

import (
	"context"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// sampleSize is the number of pages that [Sample] reads.
const sampleSize = 200

// Sample reads some pages of a site, and returns site with their number added to Fetched and the
// size of their text added to Text. Use it for sites whose text was not counted during pulls.
func Sample(ctx context.Context, v millrace.View, site store.Traffic) (store.Traffic, error) {
	for p, err := range v.Scan(ctx, millrace.Scan{Limit: sampleSize, WithBlocks: true}) {
		if err != nil {
			return site, err
		}
		site.Fetched++
		site.Text += int64(len(p.Title) + len(millrace.Text(p.Blocks)))
	}
	return site, nil
}
