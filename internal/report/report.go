// Package report summarizes the requests of machines to the sites of a store, and the savings
// of pulls into it.
package report

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/internal/sitelist"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// Options select the contents of a report.
type Options struct {
	Store        string    // name of the store
	Label        string    // label of the mirrored sites to report, without published sites. If empty, all sites.
	Since        time.Time // start of the report on machine requests; earlier requests are left out
	Coefficients savings.Coefficients
	Logger       *slog.Logger // logs read errors
}

// Report is the report on one store.
type Report struct {
	Store        string                `json:"store"`           // name of the store
	Since        *time.Time            `json:"since,omitempty"` // time of the first pull; absent if nothing was pulled
	Fleet        *sitelist.Summary     `json:"fleet,omitempty"` // the sites that watch --all pulls; absent if there are none
	Sites        []*Pulled             `json:"sites"`           // mirrored sites
	Total        *savings.Saved        `json:"total,omitempty"` // sums over all mirrored sites
	Served       []*Served             `json:"served"`          // published sites of the store
	Coefficients []savings.Coefficient `json:"coefficients"`    // coefficients of the estimates

	first time.Time // first day of Served
}

// Pulled contains the savings of one site.
type Pulled struct {
	Site      string         `json:"site"`
	Since     time.Time      `json:"since"`     // time of the first pull
	Last      time.Time      `json:"last"`      // time of the last pull
	Pulls     int64          `json:"pulls"`     // number of pulls
	Failed    int64          `json:"failed"`    // number of failed pulls
	Protocols []*PulledBy    `json:"protocols"` // sums by protocol
	Total     *savings.Saved `json:"total"`     // costs and savings of all pulls of the site
}

// PulledBy contains the savings of one site by one protocol.
type PulledBy struct {
	Protocol string         `json:"protocol"`
	Since    time.Time      `json:"since"`  // time of the first pull
	Last     time.Time      `json:"last"`   // time of the last pull
	Pulls    int64          `json:"pulls"`  // number of pulls
	Failed   int64          `json:"failed"` // number of failed pulls
	Saved    *savings.Saved `json:"saved"`  // costs and savings of the pulls
}

// Of returns the report on a store.
func Of(ctx context.Context, st store.Store, o *Options) (*Report, error) {
	costs, err := st.Costs().List(ctx)
	if err != nil {
		return nil, err
	}
	if o.Label != "" {
		names, err := ingest.SitesWithLabel(ctx, st, o.Label)
		if err != nil {
			return nil, err
		}
		costs = slices.DeleteFunc(costs, func(c store.SiteCost) bool {
			_, labeled := slices.BinarySearch(names, c.Site)
			return !labeled
		})
	}
	r := &Report{Store: o.Store, Sites: []*Pulled{}, Served: []*Served{}, Coefficients: savings.List(o.Coefficients), first: o.Since}
	for len(costs) > 0 {
		n := 1
		for n < len(costs) && costs[n].Site == costs[0].Site {
			n++
		}
		s := o.pulled(ctx, st, costs[:n])
		if r.Total == nil {
			r.Total, r.Since = new(*s.Total), &s.Since
		} else {
			r.Total.Add(s.Total)
			if s.Since.Before(*r.Since) {
				r.Since = &s.Since
			}
		}
		r.Sites = append(r.Sites, s)
		costs = costs[n:]
	}
	stats, err := st.Fleet().Stats(ctx, o.Label)
	if err == nil {
		r.Fleet, err = sitelist.SummaryOf(ctx, st.Fleet(), o.Label, &stats)
	}
	if err != nil {
		return nil, err
	}
	if o.Label != "" {
		return r, nil
	}
	served, err := o.served(ctx, st)
	r.Served = append(r.Served, served...)
	return r, err
}

// pulled returns the sums of the stored costs of one site.
func (o *Options) pulled(ctx context.Context, st store.Store, costs []store.SiteCost) *Pulled {
	s := &Pulled{Site: costs[0].Site, Since: costs[0].Since, Last: costs[0].Last}
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
		_, v, err := ingest.Head(ctx, st, s.Site)
		if err == nil {
			known, err = savings.Sample(ctx, v, known)
		}
		if err != nil {
			o.Logger.Warn("could not read text sizes", "site", s.Site, "err", err)
		}
	}
	for _, a := range costs {
		s.Protocols = append(s.Protocols, &PulledBy{
			Protocol: a.Protocol, Since: a.Since, Last: a.Last, Pulls: a.Pulls, Failed: a.Failed, Saved: savings.Of(a.Traffic, known, o.Coefficients),
		})
	}
	s.Total = savings.Of(sum, known, o.Coefficients)
	return s
}

// maxPulled is the maximum number of mirrored sites in a text.
const maxPulled = 50

// most returns the sites to list in a text. If there are too many, these are the sites from which
// the most bytes were received.
func (r *Report) most() []*Pulled {
	if len(r.Sites) <= maxPulled {
		return r.Sites
	}
	sites := slices.Clone(r.Sites)
	slices.SortStableFunc(sites, func(a, b *Pulled) int { return cmp.Compare(b.Total.Bytes.Spent, a.Total.Bytes.Spent) })
	return sites[:maxPulled]
}

// Text writes the report for people.
func (r *Report) Text(w *bytes.Buffer) {
	if r.Fleet != nil {
		r.Fleet.WriteText(w)
		w.WriteByte('\n')
	}
	for _, s := range r.most() {
		fmt.Fprintf(w, "%s since %s\n", s.Site, s.Since.Format(time.DateOnly))
		for _, q := range s.Protocols {
			fmt.Fprintf(w, "  %s: %s, %.0f requests, %s received\n", all.Label(q.Protocol), pullsText(q.Pulls, q.Failed),
				q.Saved.Requests.Spent, humanize.Bytes(int64(q.Saved.Bytes.Spent)))
			w.WriteString(q.Saved.Lines("    "))
		}
		if len(s.Protocols) > 1 {
			fmt.Fprintf(w, "  all: %s\n", pullsText(s.Pulls, s.Failed))
			w.WriteString(s.Total.Lines("    "))
		}
	}
	if more := len(r.Sites) - maxPulled; more > 0 {
		fmt.Fprintf(w, "and %d more sites; --json lists all\n", more)
	}
	if len(r.Sites) > 1 {
		fmt.Fprintf(w, "all sites since %s\n", r.Since.Format(time.DateOnly))
		w.WriteString(r.Total.Lines("  "))
	}
	if len(r.Sites) > 0 && len(r.Served) > 0 {
		w.WriteByte('\n')
	}
	for _, s := range r.Served {
		s.text(w)
	}
	switch {
	case len(r.Sites) > 0 || len(r.Served) > 0:
	case r.Fleet != nil:
		fmt.Fprintf(w, "no page of these sites has been pulled yet; millrace watch --all --store %s pulls them\n", r.Store)
		return
	default:
		fmt.Fprintf(w, "nothing has been pulled into %s yet, and machines have requested nothing from it since %s\n", r.Store, r.first.Format(time.DateOnly))
	}
	w.WriteByte('\n')
	if len(r.Served) > 0 && r.Served[0].Log == nil {
		w.WriteString("served: compared with the full HTML of each requested page without conditional requests; lists and feeds count only as costs\n")
	}
	if len(r.Sites) > 0 || len(r.Served) == 0 {
		w.WriteString("pulled: compared with the full HTML of every page once per pull without conditional requests\n")
	}
	used := r.Coefficients
	if len(r.Served) > 0 && r.Served[0].Log != nil {
		used = r.Served[0].Log.coefficients(used)
	}
	if len(used) > 0 {
		w.WriteString("estimates use\n")
	}
	for _, k := range used {
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
