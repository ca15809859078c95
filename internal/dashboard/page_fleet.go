package dashboard

import (
	"net/http"
	"time"

	"github.com/millrace/millrace/internal/sitelist"
)

// fleetPage is the data about the sites that workers pull into the store.
type fleetPage struct {
	*sitelist.Summary
	Tiles []tile
}

// Per returns the mean of n bytes over all sites.
func (p *fleetPage) Per(n int64) int64 { return n / int64(max(1, p.Sites)) }

// fleet shows how current the mirrored sites are, and what fails.
func (d *Dashboard) fleet(r *http.Request) (*reply, error) {
	s, err := d.site.Fleet(r.Context())
	if err != nil || s == nil { // nil: all sites were removed
		return &reply{Data: &fleetPage{}}, err
	}
	p := &fleetPage{Summary: s}
	good := func(is bool, kind string) string {
		if is {
			return "good"
		}
		return kind
	}
	p.Tiles = []tile{
		{Label: "Sites", Figure: count(s.Sites), Note: "on " + count(s.Hosts) + " hosts in " + count(s.Groups) + " groups; " + count(s.Paused) + " paused"},
		{
			Label: "Overdue, 99 % of sites", Figure: lagText(s.Lag99), Unit: "at most", Kind: good(s.Lag99 < 60, "warn"),
			Note: "50 %: " + lagText(s.Lag50) + ", 90 %: " + lagText(s.Lag90) + ", maximum: " + lagText(s.LagMax) + "; " + count(s.Due) + " due, " + count(s.Leased) + " being pulled",
		},
		{Label: "Failing", Figure: count(s.Failing), Unit: "sites", Note: "never pulled: " + count(s.New), Kind: good(s.Failing == 0, "warn")},
		{Label: "Received", Figure: size(s.Received), Note: "by " + count(s.Requests) + " requests; " + size(p.Per(s.Received)) + " per site"},
	}
	return &reply{Data: p}, nil
}

// lagText formats a time in seconds.
func lagText(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
