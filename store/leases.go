package store

import (
	"context"
	"time"
)

// Leases let one of several processes do something that only one may do. All
// methods are safe for concurrent use.
//
// A lease has a holder until it expires. Each new holder gets a higher fence,
// by which the store refuses the writes of an earlier holder that does not know
// that its lease has expired.
type Leases interface {
	// Acquire gives the lease of a name to a holder for a duration. A holder that
	// has the lease keeps its fence. ErrConflict: another holder has it; the Lease
	// returned is that holder's. ErrInvalid: the name or the holder is empty, or
	// the duration is not positive.
	Acquire(ctx context.Context, name, holder string, d time.Duration) (Lease, error)
	// Release ends a lease early. A lease that another holder has by now is left
	// alone.
	Release(ctx context.Context, l Lease) error
}

// Lease is the right of one holder to do something. The zero Lease is none.
type Lease struct {
	Name, Holder string
	Fence        uint64 // rises with each new holder of the name
	Expires      time.Time
}
