package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// LeaseNamespace is the namespace of the leases in the State of a store.
const LeaseNamespace = "leases"

// Leases implements [store.Leases] in the State of a store, with one value per lease. The value is
// kept after the lease ends, so fences keep rising.
type Leases struct {
	State store.State
	Now   func(ctx context.Context) (time.Time, error)
}

// lease is the stored value of a lease.
type lease struct {
	Holder   string
	Fence    uint64
	Expires  time.Time
	Duration time.Duration
}

// holds reports whether the lease has a holder. If the lease expires more than its duration after
// now, the clock was set back, and the lease has no holder.
func (l *lease) holds(now time.Time) bool {
	return now.Before(l.Expires) && !l.Expires.After(now.Add(l.Duration))
}

func (s Leases) of(name string) state.JSON[lease] {
	return state.JSON[lease]{State: s.State, Namespace: LeaseNamespace, Key: name, Strict: true}
}

// Acquire implements [store.Leases].
func (s Leases) Acquire(ctx context.Context, name, holder string, d time.Duration) (l store.Lease, err error) {
	if name == "" || holder == "" || d < time.Millisecond {
		return l, millrace.Coded("bad-lease", fmt.Errorf("lease %s: %w: empty name, empty holder, or duration not positive", name, millrace.ErrInvalid))
	}
	err = s.of(name).Update(ctx, func(is *lease) error {
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		if active := is.holds(now); active && is.Holder != holder {
			l = store.Lease{Name: name, Holder: is.Holder, Fence: is.Fence, Expires: is.Expires}
			return millrace.Coded("lease-held", fmt.Errorf("lease %s: %w: held by %s", name, millrace.ErrConflict, is.Holder))
		} else if !active {
			is.Fence++
		}
		is.Holder, is.Expires, is.Duration = holder, now.Add(d).Truncate(time.Millisecond), d
		l = store.Lease{Name: name, Holder: holder, Fence: is.Fence, Expires: is.Expires}
		return nil
	})
	return l, err
}

// Release implements [store.Leases].
func (s Leases) Release(ctx context.Context, l store.Lease) error {
	err := s.of(l.Name).Update(ctx, func(is *lease) error {
		if is.Holder != l.Holder || is.Fence != l.Fence {
			return errNotHeld
		}
		is.Expires = time.Time{}
		return nil
	})
	if errors.Is(err, errNotHeld) {
		err = nil
	}
	return err
}

var errNotHeld = errors.New("the lease has another holder")

// CheckLease returns ErrConflict unless l is zero or still valid. value is the stored value of the
// lease.
func CheckLease(l store.Lease, value []byte, now time.Time) error {
	if l == (store.Lease{}) {
		return nil
	}
	var is lease
	if len(value) > 0 {
		if err := json.Unmarshal(value, &is); err != nil {
			return fmt.Errorf("lease %s: %w: %w", l.Name, millrace.ErrInvalid, err)
		}
	}
	if is.Fence != l.Fence || is.Holder != l.Holder || !is.holds(now) {
		return millrace.Coded("lease-lost", fmt.Errorf("lease %s: %w: expired, or held by another process", l.Name, millrace.ErrConflict))
	}
	return nil
}
