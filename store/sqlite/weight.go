package sqlite

import (
	"context"

	"github.com/millrace/millrace"
)

// weightColumns is the migration that brings the weights of pages. The index
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

// weighed is how many pages are summed at a time: a reading that is open for
// longer keeps the log of the file from being emptied.
const weighed = 10_000

// MeanWeight implements [store.Site].
func (s *Site) MeanWeight(ctx context.Context) (mean millrace.Weight, pages int64, err error) {
	var sum millrace.Weight
	var received int64 // pages whose Received is known
	for after, more := "", true; more; {
		var looked, n, known int64
		var w millrace.Weight
		err := s.store.read.row(ctx, `SELECT count(*), coalesce(max(url), ''),
				coalesce(sum(visible), 0), coalesce(sum(visible * html_bytes), 0),
				coalesce(sum(visible * (html_received > 0)), 0), coalesce(sum(visible * html_received), 0)
			FROM (SELECT url, html_bytes, html_received, EXISTS (SELECT 1 FROM entry WHERE entry.site = ?1 AND entry.url = held.url
					AND entry.until = 1099511627775 AND entry.kind < 3) AS visible
				FROM (SELECT url, html_bytes, html_received FROM raw INDEXED BY raw_weight
					WHERE site = ?1 AND url > ?2 AND html_bytes > 0 ORDER BY url LIMIT ?3) AS held)`,
			[]any{s.id, after, weighed}, &looked, &after, &n, &w.Bytes, &known, &w.Received)
		if err != nil {
			return mean, 0, explain("mean weight of the pages of site "+s.name, err)
		}
		pages, sum.Bytes = pages+n, sum.Bytes+w.Bytes
		received, sum.Received = received+known, sum.Received+w.Received
		more = looked == weighed
	}
	if pages > 0 {
		mean.Bytes = sum.Bytes / pages
	}
	if received > 0 {
		mean.Received = sum.Received / received
	}
	return mean, pages, nil
}
