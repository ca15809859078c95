package sitelist

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/store"
)

// maxHosts is the maximum number of hosts in a summary.
const maxHosts = 20

// Summary describes a fleet, and its hosts with the most failures.
type Summary struct {
	Fleet
	Worst []Host `json:"worst_hosts"` // hosts whose last pull failed, those with the most failures first
}

// Host is a host that could not be reached.
type Host struct {
	Host     string    `json:"host"`              // name of the host
	Address  string    `json:"address,omitempty"` // address, or name of the network that it shares
	Sites    int       `json:"sites"`             // number of its sites
	Failures int       `json:"failures"`          // failed pulls in a row
	Error    string    `json:"error"`             // error code of the last pull
	Until    time.Time `json:"until"`             // earliest time of the next pull
	Requests int64     `json:"requests"`          // requests of all pulls
	Received int64     `json:"received"`          // bytes received by all pulls
}

// Code is the number of sites whose last pull failed with an error.
type Code struct {
	Code  string
	Sites int
}

// SummaryOf summarizes the sites of a fleet that have a label. stats contains the counts of these
// sites. SummaryOf returns nil if there are no such sites. The label "" means any.
func SummaryOf(ctx context.Context, f store.Fleet, label string, stats *store.FleetStats) (*Summary, error) {
	if stats.Sites == 0 {
		return nil, nil
	}
	hosts, err := f.Hosts(ctx, label, maxHosts)
	s := &Summary{Fleet: Of(*stats), Worst: make([]Host, 0, len(hosts))}
	for _, h := range hosts {
		s.Worst = append(s.Worst, Host{h.Host, h.Address, h.Sites, h.Failures, h.Why, h.Until, h.Requests, h.Received})
	}
	return s, err
}

// Codes returns the errors of the last pulls, the most frequent first.
func (f *Fleet) Codes() []Code {
	codes := make([]Code, 0, len(f.Errors))
	for code, n := range f.Errors {
		codes = append(codes, Code{code, n})
	}
	slices.SortFunc(codes, func(a, b Code) int { return cmp.Or(cmp.Compare(b.Sites, a.Sites), strings.Compare(a.Code, b.Code)) })
	return codes
}

// WriteText writes the summary for people.
func (s *Summary) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s\n  %s, %s received\n", s.Fleet.Text(), humanize.Quantity(s.Requests, "request"), humanize.Bytes(s.Received))
	for _, c := range s.Codes() {
		fmt.Fprintf(w, "  failing with %s: %s\n", canon.OneLine(c.Code), humanize.Quantity(int64(c.Sites), "site"))
	}
	for _, h := range s.Worst {
		fmt.Fprintf(w, "  %s (%s): %s in a row: %s; next pull after %s\n", canon.OneLine(h.Host), humanize.Quantity(int64(h.Sites), "site"), humanize.Quantity(int64(h.Failures), "failure"), canon.OneLine(h.Error), h.Until.Format(time.RFC3339))
	}
}
