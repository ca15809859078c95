package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// rateBudget limits the requests and bytes per second of all programs that share the sites of a
// store. It reserves requests in blocks: the requests of a quarter of a second, or 16 if only bytes
// are limited.
type rateBudget struct {
	store           store.Store
	stored          state.JSON[rateRecord]
	requests, bytes float64 // limits per second; zero = no limit

	spent atomic.Int64  // received bytes that are not stored yet
	lock  chan struct{} // holds a token while a request waits for its reservation to begin
	left  int           // reserved requests that are not used yet; guarded by lock
}

// rateRecord stores what the programs have reserved, as times of the store's clock.
type rateRecord struct {
	Requests time.Time `json:"requests"` // time of the next unreserved request
	Bytes    time.Time `json:"bytes"`    // time from which the received bytes are within the limit
}

func newRateBudget(st store.Store, requests, bytes float64) *rateBudget {
	return &rateBudget{
		store: st, stored: state.JSON[rateRecord]{State: st.State(), Namespace: "fleet", Key: "rate"}, requests: requests, bytes: bytes, lock: make(chan struct{}, 1),
	}
}

// take waits until one more request is within the limits.
func (b *rateBudget) take(ctx context.Context) error {
	select {
	case b.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.lock }()
	if b.left > 0 {
		b.left--
		return nil
	}
	n, wait, spent := 16, time.Duration(0), b.spent.Swap(0)
	if b.requests > 0 {
		n = max(1, int(b.requests/4))
	}
	err := b.stored.Update(ctx, func(r *rateRecord) error {
		now, err := b.store.Now(ctx)
		if err != nil {
			return err
		}
		var at time.Time
		if b.requests > 0 {
			at = later(r.Requests, now)
			r.Requests = at.Add(time.Duration(float64(n) / b.requests * float64(time.Second)))
		}
		if b.bytes > 0 {
			r.Bytes = later(r.Bytes, now.Add(-time.Second)).Add(time.Duration(float64(spent) / b.bytes * float64(time.Second)))
			at = later(at, r.Bytes)
		}
		wait = at.Sub(now)
		return nil
	})
	if err != nil {
		b.spent.Add(spent)
		return err
	}
	b.left = n - 1
	return fetch.Sleep(ctx, wait)
}

// spend counts received bytes.
func (b *rateBudget) spend(n int64) { b.spent.Add(n) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
