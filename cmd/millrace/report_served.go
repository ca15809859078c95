package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/savings"
)

// servedReport is what machines took of one site that is served, and what that
// saved.
type servedReport struct {
	Site string `json:"site"`
	*analytics.Savings
	Rows    []analytics.DaySaved `json:"rows"` // by day, bot and protocol
	Unusual []analytics.Unusual  `json:"unusual"`
}

const (
	reportDays  = 30                 // that are reported, unless others are asked for
	unusualSpan = 7 * 24 * time.Hour // in which unusual patterns are looked for, at most
)

// since gives the first day of the report.
func (c *reportCommand) since(now time.Time) (time.Time, error) {
	if c.Since == "" {
		return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-reportDays), nil
	}
	t, err := time.Parse(time.DateOnly, c.Since)
	if err != nil {
		return t, usageError(fmt.Sprintf("--since %s: write a day, such as 2026-11-01", c.Since))
	}
	return t, nil
}

// served reports on the sites of a store that machines have asked for something.
func (c *reportCommand) served(ctx context.Context, p *process, st store.Store, since, now time.Time) ([]*servedReport, error) {
	usage, ok := st.(store.Usage)
	if !ok {
		return nil, nil
	}
	names, err := ingest.SiteNames(ctx, st)
	if err != nil {
		return nil, err
	}
	var out []*servedReport
	for _, name := range names {
		pages := c.yardstick(ctx, p, st, name)
		r := &servedReport{Site: name, Rows: []analytics.DaySaved{}, Unusual: []analytics.Unusual{}}
		r.Savings, err = analytics.Sum(ctx, usage, name, since, time.Time{}, pages, c.values(), func(d analytics.DaySaved) { r.Rows = append(r.Rows, d) })
		if err != nil {
			return nil, err
		}
		if len(r.Rows) == 0 {
			continue
		}
		from := since
		if least := now.Add(-unusualSpan); from.Before(least) {
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

// yardstick finds out what the pages of a site are. What is not known of them is
// told.
func (c *reportCommand) yardstick(ctx context.Context, p *process, st store.Store, name string) analytics.Pages {
	site, v, err := headOf(ctx, st, name)
	var pages analytics.Pages
	if err == nil {
		pages, err = analytics.Measure(ctx, site, v, c.values())
	}
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		p.log.Warn("what the pages are as HTML is not known", "site", name, "error", err)
	}
	return pages
}

// text prints it for a person.
func (r *servedReport) text(w *bytes.Buffer) {
	t := &r.Total
	fmt.Fprintf(w, "%s: %s of %s since %s, the first on %s\n", humanize.Printable(r.Site), humanize.Quantity(t.Requests, "request"),
		humanize.Quantity(int64(len(r.Bots)), "machine"), r.From.Format(time.DateOnly), r.Days[0].Day.Format(time.DateOnly))
	fmt.Fprintf(w, "  %s against the same pages as HTML%s\n", savings.Text(t.Bytes, t.Tokens, t.KWh, nil), basisText(t.Bytes.Basis))
	fmt.Fprintf(w, "  %s went out for %s%s; %d of %d answers were a 304%s\n", humanize.Bytes(int64(t.Bytes.Spent)), pagesText(t), listsText(t),
		t.NotModified, t.Answered, humanize.Rate(t.NotModifiedRate))
	if z := &t.ZeroFetch; z.Pages > 0 {
		fmt.Fprintf(w, "  beside that, lists named %s that were not asked for that day: at most so many requests were needless, %s as HTML, an estimate\n",
			humanize.Quantity(z.Pages, "page"), humanize.Bytes(int64(z.Bytes)))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, s *analytics.Saved) {
		fmt.Fprintf(table, "    %s\t%d\t%d\t%s\t%s\t%s\t%d\n", humanize.Printable(name), s.Requests, s.Pages+s.Carried,
			shareText(s.NotModifiedRate), humanize.Bytes(int64(s.Bytes.Spent)), humanize.Bytes(int64(s.Bytes.Saved)), s.ZeroFetch.Pages)
	}
	const columns = "\trequests\tpages\t304\tsent\tsaved\tnot asked for\n"
	fmt.Fprintf(table, "  by protocol"+columns)
	for i := range r.Protocols {
		row(label(r.Protocols[i].Protocol), &r.Protocols[i].Saved)
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
		fmt.Fprintf(w, "  unusual, %s: %s\n    %s", u.From.Format(time.DateOnly), humanize.Printable(u.Says), u.Advice)
		if u.Flag != "" {
			fmt.Fprintf(w, " (%s)", humanize.Printable(u.Flag))
		}
		fmt.Fprintln(w)
	}
}

// listsText says how much of what went out was no page.
func listsText(s *analytics.Saved) string {
	switch {
	case s.Lists == 0:
		return ""
	case s.Carried > 0:
		return ", " + humanize.Bytes(s.Lists) + " of it lists and collections"
	}
	return ", " + humanize.Bytes(s.Lists) + " of it lists"
}

func basisText(b savings.Basis) string {
	if b == savings.Measured {
		return ", measured"
	}
	return ", an estimate"
}

// pagesText says how many pages were told of.
func pagesText(s *analytics.Saved) string {
	text := humanize.Quantity(s.Pages, "page")
	if s.Carried > 0 {
		text += fmt.Sprintf(" and %d in collections", s.Carried)
	}
	return text
}

// shareText gives a rate in a table.
func shareText(r *float64) string {
	if r == nil {
		return "-"
	}
	return strconv.FormatFloat(*r*100, 'f', 1, 64) + " %"
}

// csvColumns are the columns of `millrace report --csv`. Those of pulls have no
// day and no bot; what a row cannot know is empty.
var csvColumns = []string{
	"kind", "site", "day", "bot", "family", "protocol", "requests", "pages", "carried", "measured", "answered", "not_modified",
	"bytes", "bytes_instead_of", "bytes_saved", "bytes_basis", "tokens", "tokens_instead_of", "tokens_saved",
	"kwh", "kwh_instead_of", "kwh_saved", "zero_fetch_pages", "zero_fetch_bytes", "zero_fetch_tokens", "zero_fetch_kwh", "lists_bytes",
}

// csv prints a row for each site, day, bot and protocol that was served, and one
// for each site and protocol that was pulled.
func (r *savingsReport) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(csvColumns) // Flush tells
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	figures := func(bytes, tokens, kwh *savings.Figure) []string {
		return []string{
			number(bytes.Spent), number(bytes.Instead), number(bytes.Saved), string(bytes.Basis),
			number(tokens.Spent), number(tokens.Instead), number(tokens.Saved), number(kwh.Spent), number(kwh.Instead), number(kwh.Saved),
		}
	}
	for _, s := range r.Served {
		for i := range s.Rows {
			d := &s.Rows[i]
			z := &d.ZeroFetch
			line := []string{
				"served", s.Site, d.Day.Format(time.DateOnly), d.Bot, d.Family, d.Protocol, count(d.Requests),
				count(d.Pages), count(d.Carried), count(d.Measured), count(d.Answered), count(d.NotModified),
			}
			line = append(line, figures(&d.Bytes, &d.Tokens, &d.KWh)...)
			_ = out.Write(append(line, count(z.Pages), number(z.Bytes), number(z.Tokens), number(z.KWh), count(d.Lists)))
		}
	}
	for _, s := range r.Sites {
		for _, q := range s.Protocols {
			v := q.Saved
			line := []string{"pulled", s.Site, "", "", "", q.Protocol, number(v.Requests.Spent), count(v.Pages), "", "", "", count(v.NotModified)}
			line = append(line, figures(&v.Bytes, &v.Tokens, &v.KWh)...)
			_ = out.Write(append(line, "", "", "", "", ""))
		}
	}
	out.Flush()
	return out.Error()
}
