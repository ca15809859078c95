package sitelist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/store"
)

// maxShown is the maximum number of invalid entries in a text.
const maxShown = 20

// WriteText writes the invalid entries and the totals. did says what the command does, such as
// "added". refused says that it did nothing because of invalid entries.
func (r *Report) WriteText(w io.Writer, did string, refused bool) {
	for _, e := range r.Entries[:min(len(r.Entries), maxShown)] {
		if e.Line > 0 {
			fmt.Fprintf(w, "%s: line %d: %s: %s\n", e.Source, e.Line, e.Code, e.Error)
		} else {
			fmt.Fprintf(w, "%s: %s\n", e.Code, e.Error)
		}
	}
	if more := r.Invalid - maxShown; more > 0 {
		fmt.Fprintf(w, "and %d more; --json lists the first %d\n", more, maxSample)
	}
	codes := slices.SortedFunc(maps.Keys(r.Rules), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Rules[b], r.Rules[a]), strings.Compare(a, b))
	})
	for _, code := range codes {
		fmt.Fprintf(w, "%8d  %s\n", r.Rules[code], code)
	}
	switch {
	case refused && did == "added" && r.Sites > 0:
		fmt.Fprintf(w, "invalid entries: %d; nothing was added; use --skip-invalid to add the valid ones\n", r.Invalid)
	case refused:
		fmt.Fprintf(w, "invalid entries: %d; nothing was %s; correct the list\n", r.Invalid, did)
	case did == "added":
		fmt.Fprintf(w, "%s: %d added, %d changed; invalid entries: %d\n", humanize.Quantity(int64(r.Sites), "site"), r.Added, r.Changed, r.Invalid)
	default:
		fmt.Fprintf(w, "%s %s\n", humanize.Quantity(int64(r.Changed), "site"), did)
	}
}

// Fleet describes the sites of a store.
type Fleet struct {
	Time     time.Time      `json:"-"`                // when the sites were counted
	Sites    int            `json:"sites"`            // number of sites
	Hosts    int            `json:"hosts"`            // number of hosts
	Groups   int            `json:"groups"`           // number of groups of hosts; one worker at a time reads each
	Paused   int            `json:"paused"`           // paused sites; they do not count as new, failing or due
	New      int            `json:"new"`              // sites that were never pulled
	Failing  int            `json:"failing"`          // sites whose last pull failed
	Webhooks int            `json:"webhooks"`         // sites with a webhook of their own
	Due      int            `json:"due"`              // sites that are due now
	Leased   int            `json:"leased"`           // groups from which workers are pulling now
	Errors   map[string]int `json:"errors,omitempty"` // failing sites by the code of the error
	Requests int64          `json:"requests"`         // requests sent by all pulls
	Received int64          `json:"received"`         // bytes received by all pulls
	Lag50    float64        `json:"lag_p50"`          // half of the sites became due at most this many seconds ago
	Lag90    float64        `json:"lag_p90"`          // the same for 90 % of the sites
	Lag99    float64        `json:"lag_p99"`          // the same for 99 % of the sites
	LagMax   float64        `json:"lag_max"`          // the same for all sites
}

// Of describes the sites of a fleet.
func Of(s store.FleetStats) Fleet {
	return Fleet{
		s.Time, s.Sites, s.Hosts, s.Groups, s.Paused, s.New, s.Failing, s.Webhooks, s.Due, s.Leased, s.Errors, s.Requests, s.Received,
		s.Lag[0].Seconds(), s.Lag[1].Seconds(), s.Lag[2].Seconds(), s.Lag[3].Seconds(),
	}
}

// Text describes the fleet in a line.
func (f Fleet) Text() string {
	lag := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)).Round(time.Second) }
	return fmt.Sprintf("%s on %s: %d paused, %d new, %d failing, %d due, %d being pulled; lag: 50 %% %s, 90 %% %s, 99 %% %s, maximum %s",
		humanize.Quantity(int64(f.Sites), "site"), humanize.Quantity(int64(f.Hosts), "host"), f.Paused, f.New, f.Failing, f.Due, f.Leased, lag(f.Lag50), lag(f.Lag90), lag(f.Lag99), lag(f.LagMax))
}

// Listing is the report of `millrace sites list`.
type Listing struct {
	Fleet Fleet  `json:"fleet"` // counts of the sites
	Sites []Site `json:"sites"` // the sites, ordered by URL
}

// Site is one site of a [Listing].
type Site struct {
	URL      string     `json:"url"`                // URL of the site
	Labels   []string   `json:"labels,omitempty"`   // ordered by name
	Priority int        `json:"priority"`           // 1 is low, 2 normal, 3 high
	Min      float64    `json:"min_interval"`       // seconds; 0 = that of the worker
	Max      float64    `json:"max_interval"`       // seconds; 0 = that of the worker
	State    string     `json:"state"`              // "new", "ok", "failing", "paused" or "removing"
	Added    time.Time  `json:"added"`              // time when the site was added
	Pulled   *time.Time `json:"pulled,omitempty"`   // end of the last successful pull
	Due      time.Time  `json:"due"`                // time of the next pull
	Lag      float64    `json:"lag"`                // seconds since the pull became due
	Error    string     `json:"error,omitempty"`    // error code of the last pull
	Name     string     `json:"name,omitempty"`     // name of the site in the store
	Webhook  string     `json:"webhook,omitempty"`  // scheme and host of the site's webhook
	Unlisted bool       `json:"unlisted,omitempty"` // the site is pulled only by watch with its URL
}

func siteOf(s store.FleetSite, now time.Time) Site {
	out := Site{
		URL: s.URL, Labels: s.Labels, Priority: s.Priority, Min: s.Min.Seconds(), Max: s.Max.Seconds(), State: "ok", Added: s.Added, Due: s.Due,
		Error: s.Error, Name: s.Name, Unlisted: s.Unlisted,
	}
	if s.Webhook != "" {
		out.Webhook = fetch.HostOf(s.Webhook)
	}
	if !s.Pulled.IsZero() {
		out.Pulled = &s.Pulled
	}
	switch {
	case s.Removing:
		out.State = "removing"
	case s.Paused:
		out.State = "paused"
	case s.Error != "":
		out.State = "failing"
	case s.Pulled.IsZero():
		out.State = "new"
	}
	if !s.Paused && !s.Unlisted {
		out.Lag = max(0, now.Sub(s.Due).Seconds())
	}
	return out
}

// settings describes the settings of a site that differ from the defaults.
func (s *Site) settings() string {
	all := slices.Clone(s.Labels)
	if s.Priority != store.PriorityNormal {
		all = append(all, "priority="+[]string{"", "low", "normal", "high"}[s.Priority])
	}
	for _, bound := range []struct {
		name    string
		seconds float64
	}{{"min", s.Min}, {"max", s.Max}} {
		if bound.seconds > 0 {
			all = append(all, bound.name+"-interval="+time.Duration(bound.seconds*float64(time.Second)).String())
		}
	}
	if s.Webhook != "" {
		all = append(all, "webhook="+s.Webhook)
	}
	return strings.Join(all, ",")
}

// Write writes a fleet and its sites, as JSON or as a line for each site.
func Write(w io.Writer, stats store.FleetStats, sites iter.Seq2[store.FleetSite, error], now time.Time, asJSON bool) error {
	listing := Listing{Of(stats), []Site{}}
	if !asJSON {
		for s, err := range sites {
			if err != nil {
				return err
			}
			line := siteOf(s, now)
			lag := ""
			if line.Lag >= 1 {
				lag = " lag " + time.Duration(line.Lag*float64(time.Second)).Round(time.Second).String()
			}
			if _, err := fmt.Fprintf(w, "%s\t%s%s%s\t%s\n", line.URL, line.State, lag, " "+line.Error, line.settings()); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintln(w, listing.Fleet.Text())
		return err
	}
	b, err := json.Marshal(listing)
	if err != nil {
		return err
	}
	if _, err := w.Write(bytes.TrimSuffix(b, []byte("]}"))); err != nil { // write the sites one by one, because a million do not fit in memory
		return err
	}
	comma := "\n"
	for s, err := range sites {
		if err == nil {
			b, err = json.Marshal(siteOf(s, now))
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s%s", comma, b)
		}
		if err != nil {
			return err
		}
		comma = ",\n"
	}
	_, err = fmt.Fprintln(w, "\n]}")
	return err
}
