package serving

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

// countedStore is a store with a fleet.
type countedStore struct {
	store.Store
	fleet countedFleet
}

func (s countedStore) Fleet() store.Fleet { return s.fleet }

// countedFleet is a fleet that a function counts.
type countedFleet struct {
	store.Fleet
	stats func(context.Context) (store.FleetStats, error)
}

func (f countedFleet) Stats(ctx context.Context, _ string) (store.FleetStats, error) {
	return f.stats(ctx)
}

// The last counts remain while the next count runs or fails. The end of the task ends a count.
func TestFleetCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counts := make(chan int)
		st := countedStore{fleet: countedFleet{stats: func(ctx context.Context) (store.FleetStats, error) {
			select {
			case n := <-counts:
				if n == 0 {
					return store.FleetStats{}, errors.New("no connection")
				}
				return store.FleetStats{Sites: n}, nil
			case <-ctx.Done():
				return store.FleetStats{}, ctx.Err()
			}
		}}}
		s := New(slog.New(slog.DiscardHandler))
		s.o.Origin = &ingest.Origin{Store: st}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.countFleet(ctx) }()
		want := func(what string, want int) {
			t.Helper()
			start := time.Now()
			got := s.Fleet()
			if got == nil || got.Sites != want || time.Since(start) != 0 {
				t.Errorf("%s: %+v after %v, want %d sites", what, got, time.Since(start), want)
			}
		}
		go func() { time.Sleep(time.Second); counts <- 7 }()
		if got := s.Fleet(); got == nil || got.Sites != 7 {
			t.Errorf("first count: %+v", got)
		}
		time.Sleep(2 * fleetEvery)
		want("while counting", 7)
		counts <- 0
		synctest.Wait()
		want("after a failure", 7)
		time.Sleep(40 * fleetEvery) // the failed count took a minute
		counts <- 8
		synctest.Wait()
		want("counted again", 8)
		time.Sleep(fleetEvery * 1000)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
