package dashboard

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/store"
)

// figures are sums of a period, per bot, protocol, endpoint and outcome. Their size
// does not depend on the number of requests.
type figures struct {
	From, To  time.Time
	Per       store.Period
	Total     group
	Bots      []*group // most requests first
	Protocols []*group // protocols, in the same order
	Kinds     []*group // endpoints
	Ends      []*group // outcomes
	Savings   *analytics.Savings

	cells map[cell]float64
}

// group contains the sums of the requests that share a name, such as that of a bot or a protocol.
type group struct {
	Name   string
	Family string // operator of a bot
	store.Counts
	Unmodified, Missing, Refused, Mistaken, Failed int64
	Verified, Forged                               int64
	Before                                         int64            // requests in the period of the same length before question.Since
	Lately                                         int64            // successful content requests in periods that began after the last change of the policy
	Saved                                          *analytics.Saved // If nil, the group has no savings.
}

// cell identifies one period of one series.
type cell struct {
	start int64 // Unix time in seconds
	name  string
}

// question selects requests.
type question struct {
	From, To time.Time
	Per      store.Period
	Bot      string // If empty, all bots.
	Protocol string
	By       string // dimension of the series: protocol, bot, outcome or endpoint
	Measure  string // requests or bytes
	// Since excludes earlier sums from all figures except the cells and group.Before. If zero,
	// nothing is excluded.
	Since time.Time
}

// count sums the requests that a question selects.
func (d *Dashboard) count(ctx context.Context, q question) (*figures, error) {
	f := &figures{From: q.From, To: q.To, Per: q.Per, cells: map[cell]float64{}}
	bots, protocols, kinds, ends := map[string]*group{}, map[string]*group{}, map[string]*group{}, map[string]*group{}
	each := func(s *store.Sum) {
		name := s.Protocol
		switch q.By {
		case "bot":
			name = s.Bot
		case "outcome":
			name = string(s.Outcome)
		case "endpoint":
			name = string(s.Endpoint)
		}
		n := s.Events
		if q.Measure == "bytes" {
			n = s.Bytes
		}
		f.cells[cell{s.Start.Unix(), name}] += float64(n)
		bot := of(bots, s.Bot)
		if s.Start.Before(q.Since) {
			if !s.Start.Before(q.Since.Add(-q.To.Sub(q.Since))) {
				f.Total.Before += s.Events
				bot.Before += s.Events
			}
			return
		}
		f.Total.add(s)
		bot.add(s)
		if p := d.site.Policy; p != nil && !s.Start.Before(p.Updated) && s.Endpoint != store.EndpointDiscovery && (s.Outcome == store.Sent || s.Outcome == store.Unmodified) {
			bot.Lately += s.Events
		}
		of(protocols, s.Protocol).add(s)
		of(kinds, string(s.Endpoint)).add(s)
		of(ends, string(s.Outcome)).add(s)
		bot.Family = cmp.Or(bot.Family, s.Family)
	}
	if q.Per == store.Hour {
		// Savings have daily sums only.
		for s, err := range d.site.Usage.Sums(ctx, d.site.Name, store.SumQuery{From: q.From, To: q.To, Per: store.Hour}) {
			if err != nil {
				return nil, err
			}
			if q.matches(&s) {
				each(&s)
			}
		}
	} else {
		saved, err := analytics.Sum(ctx, &tee{d.site.Usage, q, each}, d.site.Name, q.From, q.To, d.averages(ctx), d.site.Coefficients, nil)
		if err != nil {
			return nil, err
		}
		f.Savings, f.Total.Saved = saved, &saved.Total
		for i := range saved.Bots {
			of(bots, saved.Bots[i].Bot).Saved = &saved.Bots[i].Saved
		}
		for i := range saved.Protocols {
			of(protocols, saved.Protocols[i].Protocol).Saved = &saved.Protocols[i].Saved
		}
	}
	f.Bots, f.Protocols, f.Kinds, f.Ends = most(bots), most(protocols), most(kinds), most(ends)
	return f, nil
}

// tee is a [store.Usage] whose Sums yields only the sums that match q and do not begin before
// q.Since. It also passes all sums that match q to the function each.
type tee struct {
	store.Usage
	q    question
	each func(*store.Sum)
}

func (t *tee) Sums(ctx context.Context, site string, q store.SumQuery) iter.Seq2[store.Sum, error] {
	return func(yield func(store.Sum, error) bool) {
		for s, err := range t.Usage.Sums(ctx, site, q) {
			if err == nil {
				if !t.q.matches(&s) {
					continue
				}
				if t.each(&s); s.Start.Before(t.q.Since) {
					continue
				}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

func (q *question) matches(s *store.Sum) bool {
	return (q.Bot == "" || s.Bot == q.Bot) && (q.Protocol == "" || s.Protocol == q.Protocol)
}

func of(groups map[string]*group, name string) *group {
	g := groups[name]
	if g == nil {
		g = &group{Name: name}
		groups[name] = g
	}
	return g
}

func most(groups map[string]*group) []*group {
	list := make([]*group, 0, len(groups))
	for _, g := range groups {
		if g.Events > 0 {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (g *group) add(s *store.Sum) {
	g.Events += s.Events
	g.Cached += s.Cached
	g.Results += s.Results
	g.Bytes += s.Bytes
	g.Size += s.Size
	g.Took += s.Took
	switch s.Outcome {
	case store.Unmodified:
		g.Unmodified += s.Events
	case store.Missing:
		g.Missing += s.Events
	case store.Refused:
		g.Refused += s.Events
	case store.Invalid:
		g.Mistaken += s.Events
	case store.Failed:
		g.Failed += s.Events
	}
	switch s.Identity {
	case store.Verified:
		g.Verified += s.Events
	case store.Forged:
		g.Forged += s.Events
	}
}

// Answered returns the number of successful requests, including those that got a 304.
func (g *group) Answered() int64 { return g.Events - g.Missing - g.Refused - g.Mistaken - g.Failed }

// Mean returns the mean duration.
func (g *group) Mean() time.Duration {
	if g.Events == 0 {
		return 0
	}
	return g.Took / time.Duration(g.Events)
}

// series returns the series of the chart, largest first.
func (f *figures) series() []*group {
	groups := map[string]*group{}
	for at, n := range f.cells {
		of(groups, at.name).Events += int64(n)
	}
	return most(groups)
}

// maxSeries limits the series in a chart. If there are more than maxSeries+1 groups, the groups
// after the first maxSeries are combined.
const maxSeries = 7

// chart returns a chart of the figures. A chart by days begins with the first day that has
// requests. step is the number of periods per row; label returns the display name of a group.
func (f *figures) chart(title, unit string, groups []*group, step int, label func(string) string) *chart {
	c := &chart{Title: title, Unit: unit}
	index := map[string]int{}
	for _, g := range groups {
		switch {
		case len(groups) > maxSeries+1 && len(c.Series) >= maxSeries:
			index[g.Name] = maxSeries
		default:
			index[g.Name] = len(c.Series)
			c.Series = append(c.Series, label(g.Name))
		}
	}
	if len(groups) > maxSeries+1 {
		c.Series = append(c.Series, "others")
	}
	period := time.Duration(f.Per) * time.Duration(max(step, 1))
	rows := int((f.To.Sub(f.From) + period - 1) / period)
	for i := range rows {
		c.Rows = append(c.Rows, chartRow{Start: f.From.Add(time.Duration(i) * period), Hour: f.Per == store.Hour, Values: make([]float64, len(c.Series))})
	}
	for at, n := range f.cells {
		row := int(time.Duration(at.start-f.From.Unix()) * time.Second / period)
		if i, ok := index[at.name]; ok && row >= 0 && row < rows {
			c.Rows[row].Values[i] += n
		}
	}
	if first := slices.IndexFunc(c.Rows, func(r chartRow) bool { return r.Total() != 0 }); first > 0 && f.Per == store.Day {
		c.Rows = c.Rows[first:]
	}
	return c
}

// label returns the display name of a protocol, an endpoint or an outcome.
func (d *Dashboard) label(name string) string {
	switch name {
	case "":
		return "none"
	case "html":
		return "HTML"
	case "site":
		return "robots.txt and similar"
	case "mcp":
		return "MCP"
	case string(store.Unmodified):
		return "not modified"
	case string(store.Missing):
		return "not found"
	case string(store.Invalid):
		return "invalid"
	case string(store.EndpointFetch):
		return "single pages"
	case string(store.EndpointIndex):
		return "lists"
	case string(store.EndpointSearch):
		return "searches"
	case string(store.EndpointDiscovery):
		return "discovery"
	case string(store.EndpointFile):
		return "other files"
	}
	for _, p := range d.site.Protocols {
		if p.Name == name {
			return p.Label
		}
	}
	for _, p := range d.site.Off {
		if p.Name == name {
			return p.Label
		}
	}
	return printable(name)
}
