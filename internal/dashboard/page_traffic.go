package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// trafficPage is the data about requests by sender, protocol and time.
type trafficPage struct {
	question
	Range   string // name of the selected range. If empty, the query contains from or to.
	Ranges  []choice
	Bys     []choice
	Choices []choice // choices for Measure
	Filters []filter // active filters
	First   string   // the first day, in the date format of the form
	Last    string
	Figures *figures
	Chart   *chart
	Most    int64
	Silent  bool
}

// choice is one of several options.
type choice struct {
	Value, Label string
	Here         bool // the choice is selected
}

// filter restricts the figures to one value.
type filter struct{ Label, Value, Without string }

// span is a period until now.
type span struct {
	name, label string
	length      time.Duration
	per         store.Period
}

// ranges are the periods with links. Hourly figures have no savings, because savings are daily.
var ranges = []span{
	{"24h", "24 hours", 24 * time.Hour, store.Hour},
	{"7d", "7 days", 7 * 24 * time.Hour, store.Day},
	{"30d", "30 days", 30 * 24 * time.Hour, store.Day},
	{"90d", "90 days", 90 * 24 * time.Hour, store.Day},
	{"1y", "A year", 364 * 24 * time.Hour, store.Day},
}

const (
	defaultRange = "30d"
	maxDays      = 5 * 366 // maximum length of a typed period
	dayRows      = 100     // maximum number of daily rows; longer periods have weekly rows
)

func (d *Dashboard) traffic(r *http.Request) (*reply, error) {
	if d.site.Usage == nil {
		return &reply{Data: &trafficPage{Silent: true}}, nil
	}
	p, err := d.trafficQuestion(r)
	if err != nil {
		return nil, err
	}
	if p.Figures, err = d.count(r.Context(), p.question); err != nil {
		return nil, err
	}
	f := p.Figures
	groups, step, unit := f.Protocols, 1, "hour"
	switch p.By {
	case "bot":
		groups = f.Bots
	case "outcome":
		groups = f.Ends
	case "endpoint":
		groups = f.Kinds
	}
	if p.Per == store.Day {
		if unit = "day"; f.To.Sub(f.From) > dayRows*24*time.Hour {
			step, unit = 7, "week"
		}
	}
	by := map[string]string{"endpoint": "kind of document"}[p.By]
	what, form := "Requests", "count"
	if p.Measure == "bytes" {
		what, form = "Bytes sent", "bytes"
		groups = slices.Clone(groups)
		slices.SortStableFunc(groups, func(a, b *group) int { return int(max(min(b.Bytes-a.Bytes, 1), -1)) })
	}
	p.Chart = f.chart(fmt.Sprintf("%s by %s, per %s", what, cmp.Or(by, p.By), unit), form, groups, step, d.label)
	if len(f.Bots) > 0 {
		p.Most = f.Bots[0].Events
	}
	return &reply{Data: p}, nil
}

// trafficQuestion parses the query. An invalid time is an error; any other invalid
// word selects the default.
func (d *Dashboard) trafficQuestion(r *http.Request) (*trafficPage, error) {
	q := r.URL.Query()
	p := &trafficPage{question: question{Bot: printable(q.Get("bot")), Protocol: printable(q.Get("protocol"))}, Range: q.Get("range")}
	one := func(name string, all ...choice) (string, []choice) {
		i := max(0, slices.IndexFunc(all, func(c choice) bool { return c.Value == q.Get(name) }))
		all[i].Here = true
		return all[i].Value, all
	}
	p.By, p.Bys = one("by", choice{"protocol", "Protocol", false}, choice{"bot", "Bot", false}, choice{"endpoint", "Document type", false}, choice{"outcome", "Outcome", false})
	p.Measure, p.Choices = one("measure", choice{"requests", "Requests", false}, choice{"bytes", "Bytes", false})
	tomorrow := midnight(d.now()).AddDate(0, 0, 1)
	p.From, p.To, p.Per = tomorrow.AddDate(0, 0, -30), tomorrow, store.Day
	if q.Get("from") != "" || q.Get("to") != "" {
		p.Range = ""
		for _, at := range []struct {
			name string
			to   *time.Time
			more int
		}{{"from", &p.From, 0}, {"to", &p.To, 1}} {
			if v := q.Get(at.name); v != "" {
				t, err := time.Parse(time.DateOnly, v)
				if err != nil {
					return nil, fmt.Errorf("%w: %s: must be a date, such as 2026-01-31", millrace.ErrInvalid, at.name)
				}
				*at.to = t.AddDate(0, 0, at.more)
			}
		}
		if days := p.To.Sub(p.From) / (24 * time.Hour); days < 1 || days > maxDays {
			return nil, fmt.Errorf("%w: the first day must be before the last, by at most %d days", millrace.ErrInvalid, maxDays)
		}
	} else if i := slices.IndexFunc(ranges, func(x span) bool { return x.name == p.Range }); i >= 0 {
		p.Per = ranges[i].per
		if p.Per == store.Hour {
			p.To = d.now().UTC().Truncate(time.Hour).Add(time.Hour)
		}
		p.From = p.To.Add(-ranges[i].length)
	} else {
		p.Range = defaultRange
	}
	for _, x := range ranges {
		p.Ranges = append(p.Ranges, choice{x.name, x.label, x.name == p.Range})
	}
	p.First, p.Last = p.From.Format(time.DateOnly), p.To.Add(-time.Second).Format(time.DateOnly)
	if p.Bot != "" {
		p.Filters = append(p.Filters, filter{"Bot", p.Bot, p.With("bot", "")})
	}
	if p.Protocol != "" {
		p.Filters = append(p.Filters, filter{"Protocol", d.label(p.Protocol), p.With("protocol", "")})
	}
	return p, nil
}

// With returns the URL of the page with one value changed.
func (p *trafficPage) With(name, value string) string {
	set := map[string]string{"range": p.Range, "by": p.By, "measure": p.Measure, "bot": p.Bot, "protocol": p.Protocol}
	if p.Range == "" {
		set["from"], set["to"] = p.First, p.Last
	}
	if name == "range" {
		delete(set, "from")
		delete(set, "to")
	}
	set[name] = value
	var query []any
	for k, v := range set {
		query = append(query, k, v)
	}
	return withQuery("/traffic", query...)
}
