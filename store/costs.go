package store

import (
	"context"
	"time"
)

// Costs stores the costs of mirroring the sites of a store. All methods are safe for
// concurrent use.
type Costs interface {
	// Add adds traffic to the sums of a site and a protocol, durably and atomically. The site need
	// not exist. After an error, the traffic may or may not have been added: do not add it again.
	// If the name of the site or the protocol is empty, or a number is negative, Add returns
	// ErrInvalid.
	Add(ctx context.Context, site, protocol string, t Traffic) error
	// Of returns the sums of a site, ordered by protocol.
	Of(ctx context.Context, site string) ([]SiteCost, error)
	// List returns all sums, including those of other processes, ordered by site and protocol.
	List(ctx context.Context) ([]SiteCost, error)
}

// SiteCost is the sum of the traffic of one site and protocol.
type SiteCost struct {
	Site, Protocol string
	Since, Last    time.Time // times of the first and the last Add, in whole seconds
	Traffic
}

// Traffic is the work and cost of one or more pulls of a site.
type Traffic struct {
	Pulls  int64 // pulls that ended, including failed ones
	Failed int64 // pulls that failed

	Pages      int64 // pages whose current state the pulls have established, counted once per pull
	Fetched    int64 // fetched pages
	Unmodified int64 // pages confirmed as unchanged one by one
	Text       int64 // bytes of text in the fetched pages

	Requests    int64 // requests sent, including redirects and retries
	Conditional int64 // conditional requests
	NotModified int64 // conditional requests whose response was a 304
	Received    int64 // bytes of header fields and coded bodies

	// HTML, HTMLReceived and HTMLBytes count the HTML that was fetched instead of machine
	// documents: the number of documents, their part of Received, and the size of their
	// content in bytes.
	HTML, HTMLReceived, HTMLBytes int64
}

// Numbers returns pointers to all numbers of t, in the order of the fields.
func (t *Traffic) Numbers() []*int64 {
	return []*int64{
		&t.Pulls, &t.Failed, &t.Pages, &t.Fetched, &t.Unmodified, &t.Text, &t.Requests, &t.Conditional, &t.NotModified, &t.Received,
		&t.HTML, &t.HTMLReceived, &t.HTMLBytes,
	}
}

// Add adds u to t.
func (t *Traffic) Add(u Traffic) { t.merge(u, 1) }

// Sub subtracts u from t.
func (t *Traffic) Sub(u Traffic) { t.merge(u, -1) }

func (t *Traffic) merge(u Traffic, sign int64) {
	more := u.Numbers()
	for i, n := range t.Numbers() {
		*n += sign * *more[i]
	}
}
