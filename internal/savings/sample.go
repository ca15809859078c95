package savings

import (
	"context"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// sampleSize is the number of pages that [Sample] reads.
const sampleSize = 200

// Sample estimates the size of the text of a site's pages from a sample, and adds it to the
// costs. Use it for sites whose pages were fetched without counting their text.
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
