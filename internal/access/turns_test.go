package access

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func clientAt(address string) Client { return ClientAt(netip.MustParseAddr(address)) }

// A client that sends many requests all the time gets the same time as one whose requests take
// longer. A client with few requests waits only for the turn that is in progress.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		worked := make([]time.Duration, 3)
		work := func(i int, took time.Duration) (waited time.Duration) {
			c, before := clientAt([]string{"192.0.2.1", "192.0.2.2", "2001:db8::1"}[i]), time.Now()
			if turns.take(ctx, c, 0) != nil {
				return 0
			}
			waited = time.Since(before)
			time.Sleep(took)
			worked[i] += took
			turns.give(c, took)
			return waited
		}
		for range 50 {
			all.Go(func() {
				for ctx.Err() == nil {
					work(0, 2*time.Millisecond)
				}
			})
		}
		all.Go(func() {
			for ctx.Err() == nil {
				work(1, 7*time.Millisecond)
			}
		})
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if waited := work(2, time.Millisecond); waited > 7*time.Millisecond {
				t.Errorf("waited %v", waited)
			}
		}
		cancel()
		all.Wait()
		if a, b := worked[0].Seconds(), worked[1].Seconds(); a+b < 9 || a/b < 0.9 || a/b > 1.1 {
			t.Errorf("the turns of the clients took %v", worked)
		}
	})
}

// If a request gives up, other requests get its turn.
func TestTurnsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1)
		a, b := clientAt("192.0.2.1"), clientAt("192.0.2.2")
		if err := turns.take(t.Context(), a, time.Second); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if err := turns.take(t.Context(), b, time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != time.Second {
			t.Errorf("%v after %v", err, time.Since(before))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := turns.take(ctx, b, 0); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		// The turn ends at the moment at which the request gives up.
		var waits sync.WaitGroup
		waits.Go(func() {
			if turns.take(t.Context(), b, time.Second) == nil {
				turns.give(b, 0)
			}
		})
		time.Sleep(time.Second)
		turns.give(a, 0)
		waits.Wait()
		if turns.free != 1 || len(turns.waiting) != 0 {
			t.Errorf("%d turns are free, %d requests wait", turns.free, len(turns.waiting))
		}
	})
}
