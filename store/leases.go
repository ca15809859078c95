package store

import (
	"context"
	"time"
)

// Leases let only one of several processes do something. All methods are safe for
// concurrent use.
//
// A lease has a holder until it expires. Each new holder gets a higher fence. The
// store refuses writes with the fence of an earlier holder.
type Leases interface {
	// Acquire gives the lease of a name to a holder for a duration. A holder that
	// has the lease keeps its fence. ErrConflict: another holder has it, and the
	// returned Lease is that holder's. ErrInvalid: the name or the holder is empty,
	// or the duration is not positive.
	Acquire(ctx context.Context, name, holder string, d time.Duration) (Lease, error)
	// Release ends a lease early. It does nothing if another holder has the lease.
	Release(ctx context.Context, l Lease) error
}

// Lease is the right of one holder to do something. The zero Lease is absent.
type Lease struct {
	Name, Holder string
	Fence        uint64 // rises with each new holder of the name
	Expires      time.Time
}
