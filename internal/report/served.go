package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// Served contains the requests of machines to one site, and their savings.
type Served struct {
	Site string `json:"site"`
	*analytics.Savings
	Rows    []analytics.DaySaved `json:"rows"`          // sums by day, bot and protocol
	Unusual []analytics.Unusual  `json:"unusual"`       // unusual patterns
	Log     *Log                 `json:"log,omitempty"` // access logs from which the figures come; absent if they come from a store
}

// unusualSpan is the maximum period to search for unusual patterns.
const unusualSpan = 7 * 24 * time.Hour

// served returns a report for each site of a store that received requests from machines.
func (o *Options) served(ctx context.Context, st store.Store) ([]*Served, error) {
	usage := st.Usage()
	names, err := ingest.SiteNames(ctx, st)
	if err != nil {
		return nil, err
	}
	var out []*Served
	for _, name := range names {
		pages := o.averages(ctx, st, name)
		r := &Served{Site: name, Rows: []analytics.DaySaved{}, Unusual: []analytics.Unusual{}}
		r.Savings, err = analytics.Sum(ctx, usage, name, o.Since, time.Time{}, pages, o.Coefficients, func(d analytics.DaySaved) { r.Rows = append(r.Rows, d) })
		if err != nil {
			return nil, err
		}
		if len(r.Rows) == 0 {
			continue
		}
		from := o.Since
		if least := time.Now().Add(-unusualSpan); from.Before(least) {
			from = least
		}
		found, err := analytics.FindUnusual(ctx, usage, name, from, pages.Count)
		if err != nil {
			return nil, err
		}
		r.Unusual = append(r.Unusual, found...)
		out = append(out, r)
	}
	return out, nil
}

// averages returns the number and the mean HTML size of a site's pages. It logs errors, and leaves
// the affected values zero.
func (o *Options) averages(ctx context.Context, st store.Store, name string) analytics.Pages {
	site, v, err := ingest.Head(ctx, st, name)
	var pages analytics.Pages
	if err == nil {
		pages, err = analytics.Measure(ctx, site, v, o.Coefficients)
	}
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		o.Logger.Warn("could not read HTML sizes", "site", name, "err", err)
	}
	return pages
}

// text writes r for people.
func (r *Served) text(w *bytes.Buffer) {
	if r.Log != nil {
		r.Log.text(w, r.Site)
		return
	}
	t := &r.Total
	fmt.Fprintf(w, "%s: %s of %s since %s, the first on %s\n", r.Site, humanize.Quantity(t.Requests, "request"),
		humanize.Quantity(int64(len(r.Bots)), "machine"), r.From.Format(time.DateOnly), r.Days[0].Day.Format(time.DateOnly))
	fmt.Fprintf(w, "  %s compared with the same pages as HTML%s\n", savings.Text(t.Bytes, t.Tokens, t.KWh, nil), basisText(t.Bytes.Basis))
	fmt.Fprintf(w, "  %s sent for %s%s; %d of %d responses were 304%s\n", humanize.Bytes(int64(t.Bytes.Spent)), pagesText(t), listsText(t),
		t.NotModified, t.Answered, humanize.Rate(t.NotModifiedRate))
	if z := &t.ZeroFetch; z.Pages > 0 {
		fmt.Fprintf(w, "  in addition, lists named %s that were not requested that day; they saved at most that many requests (%s as HTML, an estimate)\n",
			humanize.Quantity(z.Pages, "page"), humanize.Bytes(int64(z.Bytes)))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, s *analytics.Saved) {
		fmt.Fprintf(table, "    %s\t%d\t%d\t%s\t%s\t%s\t%d\n", name, s.Requests, s.Pages+s.Carried,
			shareText(s.NotModifiedRate), humanize.Bytes(int64(s.Bytes.Spent)), humanize.Bytes(int64(s.Bytes.Saved)), s.ZeroFetch.Pages)
	}
	const columns = "\trequests\tpages\t304\tsent\tsaved\tnot requested\n"
	fmt.Fprintf(table, "  by protocol"+columns)
	for i := range r.Protocols {
		row(all.Label(r.Protocols[i].Protocol), &r.Protocols[i].Saved)
	}
	fmt.Fprintf(table, "  by machine"+columns)
	for i := range r.Bots {
		b := &r.Bots[i]
		name := b.Bot
		if b.Family != "" {
			name += ", " + b.Family
		}
		row(name, &b.Saved)
	}
	fmt.Fprintf(table, "  by day"+columns)
	for i := range r.Days {
		row(r.Days[i].Day.Format(time.DateOnly), &r.Days[i].Saved)
	}
	_ = table.Flush()
	for i := range r.Unusual {
		u := &r.Unusual[i]
		fmt.Fprintf(w, "  unusual, %s: %s\n    %s", u.From.Format(time.DateOnly), u.Summary, u.Advice)
		if u.Flag != "" {
			fmt.Fprintf(w, " (%s)", u.Flag)
		}
		fmt.Fprintln(w)
	}
}

// listsText describes the share of lists in the traffic.
func listsText(s *analytics.Saved) string {
	switch {
	case s.Lists == 0:
		return ""
	case s.Carried > 0:
		return ", " + humanize.Bytes(s.Lists) + " in lists and collections"
	}
	return ", " + humanize.Bytes(s.Lists) + " in lists"
}

func basisText(b savings.Basis) string {
	if b == savings.Measured {
		return ", measured"
	}
	return ", an estimate"
}

// pagesText describes the number of pages sent, with those in collections.
func pagesText(s *analytics.Saved) string {
	text := humanize.Quantity(s.Pages, "page")
	if s.Carried > 0 {
		text += fmt.Sprintf(" and %d in collections", s.Carried)
	}
	return text
}

// shareText formats a rate for a table.
func shareText(r *float64) string {
	if r == nil {
		return "-"
	}
	return strconv.FormatFloat(*r*100, 'f', 1, 64) + " %"
}
