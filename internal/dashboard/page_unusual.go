package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/analytics"
)

// unusualPage is the data about unusual traffic.
type unusualPage struct {
	Recorded bool
	Span     period
	Found    []*unusualGroup // most requests first
	Computed time.Time
}

// unusualGroup contains the findings of one pattern.
type unusualGroup struct {
	Title  string
	Advice []string // distinct pieces of advice
	Found  []analytics.Unusual
}

// patternTitles are the titles of the patterns.
var patternTitles = map[analytics.Pattern]string{
	analytics.Refetches:    "Unchanged documents fetched again",
	analytics.Burst:        "Many pages at once",
	analytics.Forged:       "Forged names",
	analytics.MissingPages: "Requests for missing pages",
	analytics.Surge:        "Far more than usual",
}

// unusualFor is the lifetime of a cached result. Computing a result reads many events.
const unusualFor = 2 * time.Minute

// unusualCache caches results by number of days.
type unusualCache struct {
	mu   sync.Mutex // held while computing
	last map[int]*unusualPage
}

// unusual shows unusual traffic, with advice.
func (d *Dashboard) unusual(r *http.Request) (*reply, error) {
	p := &unusualPage{Recorded: d.site.Usage != nil, Span: d.period(r)}
	if !p.Recorded {
		return &reply{Data: p}, nil
	}
	p, err := d.unusualCache.of(r.Context(), d, p)
	return &reply{Data: p}, err
}

// of returns a cached result, or computes one.
func (l *unusualCache) of(ctx context.Context, d *Dashboard, p *unusualPage) (*unusualPage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was := l.last[p.Span.Days]; was != nil && was.Span.To.Equal(p.Span.To) {
		if age := d.now().Sub(was.Computed); age >= 0 && age < unusualFor {
			return was, nil
		}
	}
	pages := int64(0)
	if ed := d.site.Server.Current(); ed != nil {
		pages = int64(ed.View.Site().Pages)
	}
	found, err := analytics.FindUnusual(ctx, d.site.Usage, d.site.Name, p.Span.From, pages)
	if err != nil {
		return nil, err
	}
	groups := map[analytics.Pattern]*unusualGroup{}
	for _, u := range found {
		g := groups[u.Pattern]
		if g == nil {
			g = &unusualGroup{Title: cmp.Or(patternTitles[u.Pattern], string(u.Pattern))}
			groups[u.Pattern], p.Found = g, append(p.Found, g)
		}
		g.Found = append(g.Found, u)
		if !slices.Contains(g.Advice, u.Advice) {
			g.Advice = append(g.Advice, u.Advice)
		}
	}
	p.Computed = d.now()
	if l.last == nil {
		l.last = make(map[int]*unusualPage)
	}
	l.last[p.Span.Days] = p
	return p, nil
}
