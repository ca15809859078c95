// Package lease runs functions that only one of several processes may run at a
// time.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// A holder renews its lease so often that it keeps the lease even if the store is busy. A crashed
// holder blocks other processes for at most the duration of a lease.
const (
	duration   = 10 * time.Second
	renewEvery = 3 * time.Second
	pollEvery  = time.Second
)

// Hold runs f while it holds the lease of a name, and releases the lease. If the
// lease is lost, it cancels the context of f; the cause is an ErrConflict, which
// Hold returns if f returns context.Canceled. f passes its lease to the methods of the store that
// take one. If another holder has the lease, Hold returns ErrConflict with the code lease-held,
// and does not call f.
func Hold(ctx context.Context, leases store.Leases, name string, f func(ctx context.Context, l store.Lease) error) error {
	begun := time.Now()
	l, err := leases.Acquire(ctx, name, NewHolder(), duration)
	if err != nil {
		return err
	}
	return hold(ctx, leases, l, begun.Add(duration), f)
}

// Wait is like Hold, but it waits until no other holder has the lease, or ctx is
// canceled.
func Wait(ctx context.Context, leases store.Leases, name string, f func(ctx context.Context, l store.Lease) error) error {
	for holder := NewHolder(); ; {
		begun := time.Now()
		l, err := leases.Acquire(ctx, name, holder, duration)
		if err == nil {
			return hold(ctx, leases, l, begun.Add(duration), f)
		}
		if !errors.Is(err, millrace.ErrConflict) {
			return err
		}
		// Jitter spreads the retries of several waiting holders.
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery/2 + mathrand.N(pollEvery)):
		}
	}
}

// NewHolder returns a unique name for a holder: the machine name, the process ID, and a random
// part.
func NewHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}

// hold runs f with a lease, and renews it. until is the end of the lease before it is renewed.
func hold(ctx context.Context, leases store.Leases, l store.Lease, until time.Time, f func(ctx context.Context, l store.Lease) error) error {
	leaseCtx, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := renew(leaseCtx, leases, l, until); err != nil {
			cancel(millrace.Coded("lease-lost", fmt.Errorf("lease %s: %w: lost: %w", l.Name, millrace.ErrConflict, err)))
		}
	}()
	err := f(leaseCtx, l)
	if errors.Is(err, context.Canceled) {
		if cause := context.Cause(leaseCtx); ctx.Err() == nil && cause != nil {
			err = cause
		}
	}
	cancel(nil)
	<-stopped
	// If this fails, the lease expires soon.
	_ = leases.Release(context.WithoutCancel(ctx), l)
	return err
}

// renew renews a lease until ctx is canceled. It returns an error when the lease
// is lost.
func renew(ctx context.Context, leases store.Leases, l store.Lease, until time.Time) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	expired := errors.New("lease expired")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(until)):
			return expired
		case <-tick.C:
		}
		begun := time.Now()
		timed, stop := context.WithDeadline(ctx, until)
		is, err := leases.Acquire(timed, l.Name, l.Holder, duration)
		stop()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && is.Fence != l.Fence:
			_ = leases.Release(ctx, is)
			return expired
		case err == nil:
			until = begun.Add(duration)
		case errors.Is(err, millrace.ErrConflict):
			return err
		}
	}
}
