package serving

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/store"
)

const (
	fleetAge  = time.Minute // maximum age of counts; counting a million sites takes seconds
	fleetTime = 10 * time.Second
)

// fleetStats caches the counts of the sites that workers pull into a store.
type fleetStats struct {
	fleet store.Fleet
	log   *slog.Logger

	mu   sync.Mutex // held while counting
	last *store.FleetStats
	at   time.Time
}

// get returns counts that are at most fleetAge old, or nil if there are no sites.
func (f *fleetStats) get() *store.FleetStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.at.IsZero() && time.Since(f.at) < fleetAge {
		return f.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), fleetTime)
	defer cancel()
	st, err := f.fleet.Stats(ctx, "")
	if err != nil {
		f.log.Warn("could not count mirrored sites", "err", err)
	}
	if f.last, f.at = nil, time.Now(); err == nil && st.Sites > 0 {
		f.last = &st
	}
	return f.last
}
