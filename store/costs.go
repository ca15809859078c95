package store

import (
	"context"
	"time"
)

// Costs keeps what it has cost to mirror the sites of a store. All methods are
// safe for concurrent use.
type Costs interface {
	// Add adds to the sums of a site and a protocol, durably and all at once. The
	// store need not have the site. After an error, the traffic may have been
	// added or not: do not add it again. ErrInvalid: the name of the site or the
	// protocol is empty, or a number is negative.
	Add(ctx context.Context, site, protocol string, t Traffic) error
	// List returns all sums, also those of other processes, in the order of
	// sites and protocols.
	List(ctx context.Context) ([]SiteCost, error)
}

// SiteCost is the sum of the traffic of one site and protocol.
type SiteCost struct {
	Site, Protocol string
	Since, Last    time.Time // the first and the last Add; whole seconds
	Traffic
}

// Traffic is what one or more pulls of a site have done and cost.
type Traffic struct {
	Pulls  int64 // that have come to an end, whatever it was
	Failed int64 // of those

	Pages      int64 // whose present state the pulls know, each once a pull
	Fetched    int64 // of those, the ones that came
	Unmodified int64 // of those, the ones that were looked at one by one and stand as they are
	Text       int64 // bytes of text in what came

	Requests    int64 // sent, redirects and retries included
	Conditional int64 // of those, that a 304 can answer
	NotModified int64 // of those, that it did
	Received    int64 // bytes of header fields and coded bodies

	// Documents of HTML that came in place of machine documents, or because
	// there are none: what they are of Received, and their content in bytes.
	HTML, HTMLReceived, HTMLBytes int64
}

// Numbers gives the addresses of all numbers of t, in the order of the
// struct's members.
func (t *Traffic) Numbers() []*int64 {
	return []*int64{
		&t.Pulls, &t.Failed, &t.Pages, &t.Fetched, &t.Unmodified, &t.Text, &t.Requests, &t.Conditional, &t.NotModified, &t.Received,
		&t.HTML, &t.HTMLReceived, &t.HTMLBytes,
	}
}

// Add adds u to t.
func (t *Traffic) Add(u Traffic) { t.merge(u, 1) }

// Sub takes u from t.
func (t *Traffic) Sub(u Traffic) { t.merge(u, -1) }

func (t *Traffic) merge(u Traffic, sign int64) {
	more := u.Numbers()
	for i, n := range t.Numbers() {
		*n += sign * *more[i]
	}
}
