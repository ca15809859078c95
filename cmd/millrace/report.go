package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

type reportCommand struct {
	common
	coefficients
	Source string `arg:"" optional:"" help:"What is served, as serve has it, to see what machines took of it and what that saved."`
	As     string `enum:",${origins},mirror" default:"" placeholder:"KIND" help:"How serve is told to read the source, if it is."`
	Store  string `placeholder:"FILE" help:"The store, if serve is given one, or a mirror that pull has written."`
	Since  string `placeholder:"DATE" help:"First day of what is shown of a site that is served, such as 2026-11-01 (default: 30 days). Pulls are shown as they are summed up, all together."`
	CSV    bool   `name:"csv" help:"Print a table for spreadsheets: a line for each day, machine and protocol."`
}

// savingsReport is what `millrace report --json` prints.
type savingsReport struct {
	Store string         `json:"store"`
	Since *time.Time     `json:"since,omitempty"` // nil: nothing was pulled yet
	Sites []*siteSavings `json:"sites"`
	Total *savings.Saved `json:"total,omitempty"`
	// Served is what machines took of sites that are served from the store.
	Served []*servedReport `json:"served"`
	// Coefficients are those of the estimates.
	Coefficients []savings.Coefficient `json:"coefficients"`

	first time.Time // day of what is shown of Served
}

// siteSavings is what was saved of one site.
type siteSavings struct {
	Site      string             `json:"site"`
	Since     time.Time          `json:"since"`
	Last      time.Time          `json:"last"`
	Pulls     int64              `json:"pulls"`
	Failed    int64              `json:"failed"`
	Protocols []*protocolSavings `json:"protocols"`
	Total     *savings.Saved     `json:"total"`
}

// protocolSavings is what was saved of one site by one protocol.
type protocolSavings struct {
	Protocol string         `json:"protocol"`
	Since    time.Time      `json:"since"`
	Last     time.Time      `json:"last"`
	Pulls    int64          `json:"pulls"`
	Failed   int64          `json:"failed"`
	Saved    *savings.Saved `json:"saved"`
}

// Run prints what the pulls into a mirror have saved, and what machines took of a
// site that is served from a store.
func (c *reportCommand) Run(ctx context.Context, p *process) error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.CSV && c.JSON {
		return usageError("--csv and --json: one of them")
	}
	now := time.Now()
	since, err := c.since(now)
	if err != nil {
		return err
	}
	if c.Store == "" && c.Source == "" {
		return usageError("a report on what? Name the SOURCE that is served, or a mirror with --store FILE")
	}
	if c.Store, err = (&keyStore{Source: c.Source, As: c.As, Store: c.Store}).file(p); err != nil {
		return err
	}
	switch _, err := os.Stat(c.Store); {
	case err != nil && c.Source != "":
		return fmt.Errorf("store %s: %w: it is made by millrace serve %s", c.Store, millrace.ErrNotFound, c.Source)
	case err != nil:
		return fmt.Errorf("store %s: %w: write one with millrace pull URL --store %s", c.Store, millrace.ErrNotFound, c.Store)
	}
	st, err := p.openToRead(ctx, c.Store)
	if err != nil {
		return err
	}
	r, err := c.gather(ctx, p, st)
	if err == nil {
		var served []*servedReport
		served, err = c.served(ctx, p, st, since, now)
		if r != nil {
			r.Served, r.first = append(r.Served, served...), since
		}
	}
	if closeErr := st.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if c.CSV {
		return r.csv(p.stdout)
	}
	return p.report(r, r.text)
}

// gather makes the report of what is booked in a store.
func (c *reportCommand) gather(ctx context.Context, p *process, st store.Store) (*savingsReport, error) {
	all, err := st.Costs().List(ctx)
	if err != nil {
		return nil, err
	}
	r := &savingsReport{Store: c.Store, Sites: []*siteSavings{}, Served: []*servedReport{}, Coefficients: c.values().List()}
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Site == all[0].Site {
			n++
		}
		s := c.site(ctx, p, st, all[:n])
		if r.Total == nil {
			r.Total, r.Since = new(*s.Total), &s.Since
		} else {
			r.Total.Add(s.Total)
			if s.Since.Before(*r.Since) {
				r.Since = &s.Since
			}
		}
		r.Sites = append(r.Sites, s)
		all = all[n:]
	}
	return r, nil
}

// site sums up what is booked of one site.
func (c *reportCommand) site(ctx context.Context, p *process, st store.Store, costs []store.SiteCost) *siteSavings {
	s := &siteSavings{Site: costs[0].Site, Since: costs[0].Since, Last: costs[0].Last}
	var known store.Traffic
	for _, a := range costs {
		known.Add(a.Traffic)
		if a.Since.Before(s.Since) {
			s.Since = a.Since
		}
		if a.Last.After(s.Last) {
			s.Last = a.Last
		}
	}
	s.Pulls, s.Failed = known.Pulls, known.Failed
	sum := known
	if known.Fetched == 0 && known.Pages > 0 {
		_, v, err := headOf(ctx, st, s.Site)
		if err == nil {
			known, err = savings.Sample(ctx, v, known)
		}
		if err != nil {
			p.log.Warn("how much text the pages have cannot be read", "site", s.Site, "error", err)
		}
	}
	for _, a := range costs {
		s.Protocols = append(s.Protocols, &protocolSavings{
			Protocol: a.Protocol, Since: a.Since, Last: a.Last, Pulls: a.Pulls, Failed: a.Failed, Saved: savings.Of(a.Traffic, known, c.values()),
		})
	}
	s.Total = savings.Of(sum, known, c.values())
	return s
}

// text prints the report for a person.
func (r *savingsReport) text(w *bytes.Buffer) {
	for _, s := range r.Sites {
		fmt.Fprintf(w, "%s since %s\n", s.Site, s.Since.Format(time.DateOnly))
		for _, q := range s.Protocols {
			fmt.Fprintf(w, "  %s: %s, %.0f requests, %s received\n", label(q.Protocol), pullsText(q.Pulls, q.Failed),
				q.Saved.Requests.Spent, humanize.Bytes(int64(q.Saved.Bytes.Spent)))
			printSaved(w, "    ", q.Saved)
		}
		if len(s.Protocols) > 1 {
			fmt.Fprintf(w, "  all: %s\n", pullsText(s.Pulls, s.Failed))
			printSaved(w, "    ", s.Total)
		}
	}
	if len(r.Sites) > 1 {
		fmt.Fprintf(w, "all sites since %s\n", r.Since.Format(time.DateOnly))
		printSaved(w, "  ", r.Total)
	}
	if len(r.Sites) > 0 && len(r.Served) > 0 {
		w.WriteByte('\n')
	}
	for _, s := range r.Served {
		s.text(w)
	}
	if len(r.Sites) == 0 && len(r.Served) == 0 {
		fmt.Fprintf(w, "nothing was pulled into %s yet, and no machine has asked for anything that is served from it since %s\n", r.Store, r.first.Format(time.DateOnly))
	}
	w.WriteByte('\n')
	if len(r.Served) > 0 {
		w.WriteString("served: against each page that was asked for as HTML, unconditionally, all of it read; lists and feeds are cost alone\n")
	}
	if len(r.Sites) > 0 || len(r.Served) == 0 {
		w.WriteString("pulled: against every page once a pull as HTML, unconditionally, all of it read\n")
	}
	w.WriteString("estimates are by\n")
	for _, k := range r.Coefficients {
		fmt.Fprintf(w, "  %s %v %s: %s\n", k.Name, k.Value, k.Unit, k.Source)
	}
}

func pullsText(pulls, failed int64) string {
	s := humanize.Quantity(pulls, "pull")
	if failed > 0 {
		s += fmt.Sprintf(", %d failed", failed)
	}
	return s
}
