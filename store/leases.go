package store

import (
	"context"
	"time"
)

// Leases ensure that only one of several processes does a task at a time. All methods are safe for
// concurrent use.
//
// A lease has a holder until it expires. Each new holder gets a higher fence. The store rejects
// writes with the fence of an earlier holder.
type Leases interface {
	// Acquire grants the lease of a name to a holder for a duration. A holder that has the
	// lease keeps its fence. If another holder has the lease, Acquire returns that holder's
	// Lease and ErrConflict. If the name or the holder is empty, or the duration is not
	// positive, it returns ErrInvalid.
	Acquire(ctx context.Context, name, holder string, d time.Duration) (Lease, error)
	// Release ends a lease early. It does nothing if another holder has the lease.
	Release(ctx context.Context, l Lease) error
}

// Lease is the exclusive right of a holder to do a task. The zero Lease means that no lease exists.
type Lease struct {
	Name, Holder string
	Fence        uint64 // rises with each new holder of the name
	Expires      time.Time
}
