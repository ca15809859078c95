package serving

import (
	"context"
	"time"

	"github.com/millrace/millrace/store"
)

const (
	fleetEvery = time.Minute     // minimum interval of counts
	fleetTime  = 5 * time.Second // Prometheus waits for ten
)

// Fleet returns the last counts of the sites that workers pull into the store, or nil if they could
// not be counted yet. Before the first count, it waits for a few seconds.
func (s *Service) Fleet() *store.FleetStats {
	select {
	case <-s.counted:
	case <-time.After(fleetTime):
	}
	return s.fleet.Load()
}

// countFleet counts the sites that workers pull into the store. Counting a million sites takes
// seconds, so it uses at most a twentieth of the time.
func (s *Service) countFleet(ctx context.Context) error {
	for {
		start := time.Now()
		st, err := s.o.Origin.Store.Fleet().Stats(ctx, "")
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the task was stopped
		case err != nil:
			s.log.Warn("could not count mirrored sites; keeping earlier counts", "err", err)
		default:
			s.fleet.Store(&st)
		}
		select {
		case <-s.counted:
		default:
			close(s.counted)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(fleetEvery, 20*time.Since(start))):
		}
	}
}
