package protocoltest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/chunk"
)

var _ millrace.Searcher = (*View)(nil)

// Search finds the passages that contain words of the query, in their text or in the title of their
// page. The relevance is the fraction of words that were found.
func (v *View) Search(ctx context.Context, q millrace.Query) (*millrace.Found, error) {
	words := strings.Fields(strings.ToLower(q.Text))
	var hits []millrace.Hit
	for _, id := range v.ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := v.pages[id]
		if p.Kind == millrace.Archive || q.Page != "" && canon.Relative(v.site.Base, q.Page) != id {
			continue
		}
		var found []millrace.Hit
		for _, passage := range chunk.Passages(p) {
			text := strings.ToLower(p.Title + "\n" + strings.Join(passage.Headings, "\n") + "\n" + passage.Text)
			n := 0
			for _, w := range words {
				if strings.Contains(text, w) {
					n++
				}
			}
			relevance := math.Round(float64(n)/float64(max(1, len(words)))*1e4) / 1e4
			if n == 0 || relevance < q.MinRelevance {
				continue
			}
			found = append(found, millrace.Hit{
				URL: p.URL, Title: p.Title, Chunk: passage.ID, Type: passage.Type, Headings: passage.Headings,
				Text: passage.Text, Snippet: passage.Text, Relevance: relevance,
			})
		}
		byRelevance(found)
		if most := cmp.Or(q.PerPage, 3); q.Page == "" && len(found) > most {
			found = found[:most]
		}
		hits = append(hits, found...)
	}
	byRelevance(hits)
	out := &millrace.Found{Total: len(hits)}
	hits = hits[min(q.Skip, len(hits)):]
	out.Hits = hits[:min(cmp.Or(q.Limit, 10), len(hits))]
	return out, nil
}

func byRelevance(hits []millrace.Hit) {
	slices.SortStableFunc(hits, func(a, b millrace.Hit) int { return cmp.Compare(b.Relevance, a.Relevance) })
}
