package sqlite

import (
	"context"

	"github.com/millrace/millrace"
)

// weightColumns are the weights of pages. The index
// holds all that is asked of them, without what the pages say.
const weightColumns = `
ALTER TABLE raw ADD COLUMN html_bytes    INTEGER NOT NULL DEFAULT 0; -- of the HTML that it was made of, 0 = not known
ALTER TABLE raw ADD COLUMN html_received INTEGER NOT NULL DEFAULT 0; -- the same over the wire, 0 = not known
CREATE INDEX raw_weight ON raw (site, url, html_bytes, html_received) WHERE html_bytes > 0;
`

// weigh notes what a source knows of the weight of a page that is held.
func (a *application) weigh(url string, in, held millrace.Weight) error {
	w := in.Or(held)
	if w == held {
		return nil
	}
	return a.exec("UPDATE raw SET html_bytes = ?, html_received = ? WHERE site = ? AND url = ?", w.Bytes, w.Received, a.id, url)
}

// Weights implements [store.Site].
func (s *Site) Weights(ctx context.Context, urls []string) ([]millrace.Weight, error) {
	weights := make([]millrace.Weight, len(urls))
	for i, url := range urls {
		w := &weights[i]
		err := s.store.read.row(ctx, "SELECT html_bytes, html_received FROM raw WHERE site = ? AND url = ? AND html_bytes > 0",
			[]any{s.id, s.identity(url)}, &w.Bytes, &w.Received)
		if err != nil && !absent(err) {
			return nil, explain("weight of "+url, err)
		}
	}
	return weights, nil
}

// MeanWeight implements [store.Site].
func (s *Site) MeanWeight(ctx context.Context) (mean millrace.Weight, pages int64, err error) {
	var sum millrace.Weight
	var received int64 // pages whose Received is known
	for after, more := "", true; more; {
		n := 0
		err := s.store.read.rows(ctx, `SELECT url, html_bytes, html_received FROM raw INDEXED BY raw_weight
			WHERE site = ?1 AND url > ?2 AND html_bytes > 0 AND EXISTS (SELECT 1 FROM entry
				WHERE entry.site = ?1 AND entry.url = raw.url AND entry.until = 1099511627775 AND entry.kind < 3)
			ORDER BY url LIMIT ?3`, []any{s.id, after, chunk}, func(scan scanner) error {
			var w millrace.Weight
			if err := scan(&after, &w.Bytes, &w.Received); err != nil {
				return err
			}
			n++
			pages, sum.Bytes = pages+1, sum.Bytes+w.Bytes
			if w.Received > 0 {
				received, sum.Received = received+1, sum.Received+w.Received
			}
			return nil
		})
		if err != nil {
			return mean, 0, explain("mean weight of the pages of site "+s.name, err)
		}
		more = n == chunk
	}
	if pages > 0 {
		mean.Bytes = sum.Bytes / pages
	}
	if received > 0 {
		mean.Received = sum.Received / received
	}
	return mean, pages, nil
}
