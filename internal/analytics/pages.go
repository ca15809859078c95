package analytics

import (
	"context"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/savings"
)

// Pages holds the number of a site's pages and their mean HTML size, which replaces the unknown
// size of a page.
type Pages struct {
	Count int64        `json:"pages"`
	HTML  savings.HTML `json:"html"` // mean size of a page
}

// Measured is the input of [Measure]. A site of a store implements it.
type Measured interface {
	// MeanHTMLSize returns the mean of the known HTML sizes, and the number of pages whose HTML
	// size is known.
	MeanHTMLSize(ctx context.Context) (mean millrace.HTMLSize, pages int64, err error)
}

// textSample is the number of pages whose text Measure reads.
const textSample = 200

// Measure computes the Pages of a site. v is a view of the site. Callers should cache the result,
// because Measure scans every page.
func Measure(ctx context.Context, site Measured, v millrace.View, c savings.Coefficients) (Pages, error) {
	mean, n, err := site.MeanHTMLSize(ctx)
	if err != nil {
		return Pages{}, err
	}
	p := Pages{Count: int64(v.Site().Pages)}
	known := savings.HTML{Received: float64(mean.Received), Bytes: float64(mean.Bytes), Documents: n}
	if p.HTML = savings.Mean(c, known, n >= p.Count, 0); p.HTML.From != savings.FromNone || p.Count == 0 {
		return p, nil
	}
	var text, sample int
	for page, err := range v.Scan(ctx, millrace.Scan{Limit: textSample, WithBlocks: true}) {
		if err != nil {
			return Pages{}, err
		}
		sample++
		text += len(page.Title) + len(millrace.Text(page.Blocks))
	}
	if sample > 0 {
		p.HTML = savings.Mean(c, known, false, float64(text)/float64(sample))
	}
	return p, nil
}
