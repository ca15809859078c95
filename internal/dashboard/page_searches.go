package dashboard

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"

	"github.com/millrace/millrace/store"
)

// searchesPage is the data about the queries of bots.
type searchesPage struct {
	Recorded bool
	Span     period
	Tiles    []tile
	Hashed   bool // queries are stored as hashes
	Top      []store.TopItem
	Empty    []store.TopItem // queries without results, most frequent first
	Recent   []store.Event   // newest first
}

const (
	searchesTop    = 1000 // number of queries read to find those without results
	maxSearches    = 50
	searchesRecent = 30
)

// hashOfQuery matches a query that is stored as a hash.
var hashOfQuery = regexp.MustCompile(`^#[0-9a-f]{24}$`)

// searches shows queries, and those without results.
func (d *Dashboard) searches(r *http.Request) (*reply, error) {
	p := &searchesPage{Recorded: d.site.Usage != nil, Span: d.period(r)}
	if !p.Recorded {
		return &reply{Data: p}, nil
	}
	ctx, usage, site := r.Context(), d.site.Usage, d.site.Name
	var asked, failed, found, empty int64
	for s, err := range usage.Sums(ctx, site, store.SumQuery{From: p.Span.From, To: p.Span.To, Per: store.Day}) {
		if err != nil {
			return nil, err
		}
		if s.Endpoint == store.EndpointSearch {
			asked += s.Events
			found += s.Results
			if s.Outcome != store.Sent && s.Outcome != store.Unmodified {
				failed += s.Events
			}
		}
	}
	top, err := usage.Top(ctx, site, store.TopQueries, p.Span.From, p.Span.To, searchesTop)
	if err != nil {
		return nil, err
	}
	p.Hashed = len(top) > 0 && hashOfQuery.MatchString(top[0].Name)
	p.Top = top[:min(len(top), maxSearches)]
	for _, item := range top {
		if empty += item.Empty; item.Empty > 0 {
			p.Empty = append(p.Empty, item)
		}
	}
	slices.SortStableFunc(p.Empty, func(a, b store.TopItem) int { return cmp.Compare(b.Empty, a.Empty) })
	p.Empty = p.Empty[:min(len(p.Empty), maxSearches)]
	p.Tiles = []tile{
		{Label: "Searches", Figure: count(asked)},
		{Label: "Without results", Figure: count(empty), Note: "of the most frequent queries"},
		{Label: "Results", Figure: count(found), Note: "of all searches"},
		{Label: "Failed", Figure: count(failed), Note: "refused, invalid or failed"},
	}
	p.Recent, err = d.latest(ctx, p.Span, store.EventQuery{Endpoint: store.EndpointSearch, Limit: searchesRecent},
		func(s *store.Sum) bool { return s.Endpoint == store.EndpointSearch })
	return &reply{Data: p}, err
}
