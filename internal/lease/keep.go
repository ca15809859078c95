package lease

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/store"
)

// retryDelay is the time between a failure in [Keep] and the next attempt.
const retryDelay = 2 * time.Second

// Keep calls f while it holds the lease, and again after each loss of the lease, until ctx ends.
// If leases is nil, Keep calls f once without a lease. Then no other process may use the store.
func Keep(ctx context.Context, leases store.Leases, name string, log *slog.Logger, f func(ctx context.Context)) {
	if leases == nil {
		f(ctx)
		return
	}
	failing := false
	for ctx.Err() == nil {
		err := Wait(ctx, leases, name, func(ctx context.Context, _ store.Lease) error {
			failing = false
			f(ctx)
			return nil
		})
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !failing {
			log.WarnContext(ctx, "lease lost or not available; trying again", "lease", name, "err", err)
		}
		failing = true
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
}
