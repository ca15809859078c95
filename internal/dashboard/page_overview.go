package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace/store"
)

// overviewPage is the summary of the last week.
type overviewPage struct {
	Tiles     []tile
	Chart     *chart
	Bots      []*group // bots with the most requests
	NBots     int
	Protocols []*group
	Most      int64 // requests of the first bot
	Notices   []notice
	Scan      *SourceScan
	Edition   *editionState
	Rows      int  // number of published protocols
	Silent    bool // requests are not recorded
	NoBots    bool // no bot has sent a request
	Estimate  bool // some savings are estimates
}

// editionState is the state of the edition.
type editionState struct {
	Seq   uint64
	Time  time.Time
	Pages int
	// Lag is the time from the last change to its edition; 0 = no edition by this process.
	// Waiting is the age of the oldest unpublished change; 0 = none.
	Lag, Waiting time.Duration
}

// notice is a problem that needs attention.
type notice struct {
	Kind string // warn or bad
	Word string
	Text string
	To   string // link; "" = none
	Link string // text of the link
}

const (
	overviewDays = 30 // days of the chart
	overviewWeek = 7  // days of the figures
	overviewBots = 8
)

func (d *Dashboard) overview(r *http.Request) (*reply, error) {
	ctx := r.Context()
	p := &overviewPage{Rows: len(d.site.Protocols), Silent: d.site.Usage == nil}
	if d.site.LastScan != nil {
		p.Scan = d.site.LastScan()
	}
	p.Edition = d.edition()
	if !p.Silent {
		if err := d.overviewFigures(ctx, p); err != nil {
			return nil, err
		}
	}
	p.notice(d)
	return &reply{Data: p}, nil
}

// edition returns the state of the edition, or nil before the first one.
func (d *Dashboard) edition() *editionState {
	if d.site.Server == nil {
		return nil
	}
	ed := d.site.Server.Current()
	if ed == nil {
		return nil
	}
	s := ed.View.Site()
	last, waiting := d.site.Server.Lag()
	return &editionState{s.Seq, s.Time, s.Pages, last, waiting}
}

func (d *Dashboard) overviewFigures(ctx context.Context, p *overviewPage) error {
	tomorrow := midnight(d.now()).AddDate(0, 0, 1)
	first := tomorrow.AddDate(0, 0, -overviewWeek)
	week, err := d.count(ctx, question{From: tomorrow.AddDate(0, 0, -overviewDays), Since: first, To: tomorrow, Per: store.Day})
	if err != nil {
		return err
	}
	p.Chart = week.chart(fmt.Sprintf("Requests of machines per day, last %d days", overviewDays), "count", week.series(), 1, d.label)
	p.NoBots = len(week.cells) == 0
	before := int64(0)
	for at, n := range week.cells {
		if at.start < first.Unix() && at.start >= first.AddDate(0, 0, -overviewWeek).Unix() {
			before += int64(n)
		}
	}
	t := &week.Total
	p.Tiles = []tile{{Label: "Requests", Figure: count(t.Events), Note: against(t.Events, before)}}
	verified := 0
	for _, g := range week.Bots {
		if g.Verified > 0 {
			verified++
		}
	}
	machines := tile{Label: "Machines", Figure: count(len(week.Bots))}
	if verified > 0 {
		machines.Note = fmt.Sprintf("%d with verified identity", verified)
	}
	p.Tiles = append(p.Tiles, machines,
		tile{Label: "Not modified", Figure: percent(t.Unmodified, t.Answered()), Note: "of successful requests"},
		tile{Label: "Sent", Figure: size(t.Bytes), Note: "on the wire"})
	if s := t.Saved; s != nil {
		saved := tile{Label: "Saved", Figure: size(s.Bytes.Saved), Note: "compared with HTML"}
		if s.Bytes.Saved < 0 {
			saved.Label, saved.Figure = "Extra cost", size(-s.Bytes.Saved)
		} else if s.Bytes.Saved > 0 {
			saved.Kind = "good"
		}
		p.Estimate = s.Bytes.Basis == "estimate"
		p.Tiles = append(p.Tiles, saved,
			tile{Label: "Tokens saved", Figure: short(s.Tokens.Saved), Note: "an estimate"},
			tile{Label: "Energy saved", Figure: energyOf(s.KWh.Saved), Note: "of the network, an estimate"})
	}
	failed := tile{Label: "Failed", Figure: count(t.Failed)}
	if t.Events > 0 {
		failed.Note = percent(t.Failed, t.Events) + " of requests"
	}
	if t.Failed > 0 {
		failed.Kind = "bad"
		p.Notices = append(p.Notices, notice{"bad", "Failed", plural(t.Failed, "request has", "requests have") + " failed in the last 7 days.", "/errors", "Errors"})
	}
	p.Tiles = append(p.Tiles, failed)
	if t.Forged > 0 {
		p.Notices = append(p.Notices, notice{"warn", "Forged", plural(t.Forged, "request came", "requests came") + " with a forged bot name in the last 7 days.", "/unusual", "Unusual"})
	}
	p.NBots, p.Bots, p.Protocols = len(week.Bots), week.Bots[:min(overviewBots, len(week.Bots))], week.Protocols
	if len(p.Bots) > 0 {
		p.Most = p.Bots[0].Events
	}
	return nil
}

// notice adds the notices to the page.
func (p *overviewPage) notice(d *Dashboard) {
	if p.Edition == nil {
		p.Notices = append(p.Notices, notice{"bad", "Nothing published", "No edition is published yet, so machines get nothing.", "", ""})
	}
	if l := p.Scan; l != nil {
		if l.Err != nil {
			p.Notices = append(p.Notices, notice{"bad", "Source", "The last scan of the source failed. The previously scanned pages stay published.", "/errors", "Errors"})
		}
		if l.SkippedN > 0 {
			p.Notices = append(p.Notices, notice{"warn", "Skipped", plural(l.SkippedN, "page was", "pages were") + " skipped in the last scan of the source.", "/errors", "Errors"})
		}
	}
	if d.site.Dropped != nil {
		if n := d.site.Dropped(); n > 0 {
			p.Notices = append(p.Notices, notice{"warn", "Not counted", plural(n, "request", "requests") + " could not be recorded since the server started: the figures are too low.", "", ""})
		}
	}
}

// midnight returns the start of a day in UTC.
func midnight(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// against compares a number with that of the previous week.
func against(now, before int64) string {
	switch {
	case before == 0:
		return "none the week before"
	case now == before:
		return "same as the week before"
	case now > before && now >= 10*before:
		return fmt.Sprintf("%s times the week before", count(now/before))
	case now > before:
		return "+" + percent(now-before, before) + " on the week before"
	}
	return "−" + percent(before-now, before) + " on the week before"
}

// short formats a large number with about three digits: 12.3 M.
func short(n float64) string {
	sign := ""
	if n < 0 {
		sign, n = "−", -n
	}
	unit := 0
	for n >= 9999.5 && unit == 0 || n >= 999.5 && unit > 0 && unit < 4 {
		n, unit = n/1000, unit+1
	}
	if unit == 0 {
		return sign + count(n)
	}
	form := "%.0f"
	if n < 99.95 {
		form = "%.1f"
	}
	return sign + fmt.Sprintf(form, n) + " " + []string{"", "k", "M", "G", "T"}[unit]
}

// energyOf formats kilowatt-hours.
func energyOf(kwh float64) string {
	sign := ""
	if kwh < 0 {
		sign, kwh = "−", -kwh
	}
	switch {
	case kwh == 0:
		return "0 Wh"
	case kwh < 0.0001:
		return "about 0 Wh"
	case kwh < 1:
		return sign + fmt.Sprintf("%.1f Wh", 1000*kwh)
	}
	return sign + fmt.Sprintf("%.1f kWh", kwh)
}
