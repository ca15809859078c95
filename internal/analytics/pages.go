package analytics

import (
	"context"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/savings"
)

// Pages is what the pages of a site are, for those of which nothing else is
// known.
type Pages struct {
	Count int64        `json:"pages"`
	HTML  savings.HTML `json:"html"` // the mean of one
}

// Measured is what [Measure] looks at. It is a part of the sites of a store.
type Measured interface {
	// MeanHTMLSize returns the mean of the weights that are known, and of how
	// many pages they are.
	MeanHTMLSize(ctx context.Context) (mean millrace.HTMLSize, pages int64, err error)
}

// textSample is how many pages tell how much text those of a site have.
const textSample = 200

// Measure finds out what the pages of a site are. v is a view of them. It looks
// at every page: keep it.
func Measure(ctx context.Context, site Measured, v millrace.View, c savings.Coefficients) (Pages, error) {
	mean, n, err := site.MeanHTMLSize(ctx)
	if err != nil {
		return Pages{}, err
	}
	p := Pages{Count: int64(v.Site().Pages)}
	known := savings.HTML{Received: float64(mean.Received), Bytes: float64(mean.Bytes), Documents: n}
	if p.HTML = c.Mean(known, n >= p.Count, 0); p.HTML.From != savings.FromNone || p.Count == 0 {
		return p, nil
	}
	var text, sample int
	for page, err := range v.Scan(ctx, millrace.Scan{Limit: textSample, Bodies: true}) {
		if err != nil {
			return Pages{}, err
		}
		sample++
		text += len(page.Title) + len(millrace.Text(page.Blocks))
	}
	if sample > 0 {
		p.HTML = c.Mean(known, false, float64(text)/float64(sample))
	}
	return p, nil
}
