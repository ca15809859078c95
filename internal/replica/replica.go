// Package replica counts the processes that serve one site from one store. Each of them records
// in the store that it is running.
package replica

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// A process that has sent no heartbeat for its lifetime is no longer counted.
const (
	heartbeat = 10 * time.Second
	lifetime  = 3 * heartbeat
)

// Process describes a process.
type Process struct {
	Name    string    `json:"-"` // machine name, process ID and a random part
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"` // last heartbeat, by the store's clock
	Builder bool      `json:"builder,omitempty"`
}

// Replicas are the processes that serve one site. All methods are safe for concurrent use.
type Replicas struct {
	store   store.Store
	stored  state.JSON[map[string]Process] // processes by name
	self    Process
	builder func() bool
	log     *slog.Logger
	others  atomic.Int64
	ahead   atomic.Int64 // difference between the store's clock and this machine's, in nanoseconds
}

// New returns the processes of the named site. version is the version of this process. builder
// reports whether this process builds the editions. The caller must call Run.
func New(ctx context.Context, st store.Store, name, version string, builder func() bool, log *slog.Logger) (*Replicas, error) {
	r := &Replicas{
		store: st, stored: state.JSON[map[string]Process]{State: st.State(), Namespace: name, Key: "replicas"},
		self: Process{Name: lease.NewHolder(), Version: version}, builder: builder, log: log,
	}
	var err error
	r.self.Started, err = r.clock(ctx)
	return r, err
}

// clock reads the clock of the store.
func (r *Replicas) clock(ctx context.Context) (time.Time, error) {
	now, err := r.store.Now(ctx)
	if err != nil {
		return now, err
	}
	ahead := time.Until(now)
	if was := time.Duration(r.ahead.Swap(int64(ahead))); (ahead - was).Abs() > lifetime {
		r.log.WarnContext(ctx, "the clocks of this machine and of the store differ; using the store's clock", "difference", ahead.Round(time.Second))
	}
	return now, nil
}

// Run records that this process runs, until the context ends.
func (r *Replicas) Run(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		err := r.heartbeat(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.log.WarnContext(ctx, "could not record that this process runs; using the last number of replicas", "replicas", r.Count(), "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(heartbeat):
		}
	}
	// If this fails, other processes count this one until its lifetime ends.
	_ = r.stored.Update(context.WithoutCancel(ctx), func(all *map[string]Process) error {
		delete(*all, r.self.Name)
		return nil
	})
}

// heartbeat records this process, and removes the processes that no longer run.
func (r *Replicas) heartbeat(ctx context.Context) error {
	now, err := r.clock(ctx)
	if err != nil {
		return err
	}
	self := r.self
	self.Seen, self.Builder = now, r.builder()
	others := 0
	err = r.stored.Update(ctx, func(all *map[string]Process) error {
		if *all == nil {
			*all = make(map[string]Process)
		}
		(*all)[self.Name] = self
		maps.DeleteFunc(*all, func(_ string, p Process) bool { return now.Sub(p.Seen).Abs() > lifetime })
		others = len(*all) - 1
		return nil
	})
	if err == nil {
		r.others.Store(int64(others))
	}
	return err
}

// Count returns the number of processes, at least 1.
func (r *Replicas) Count() int {
	if r == nil {
		return 1
	}
	return int(r.others.Load()) + 1
}

// Now returns the time of the store's clock, as far as this process knows. If r is nil, it returns
// the local time.
func (r *Replicas) Now() time.Time {
	if r == nil {
		return time.Now()
	}
	return time.Now().Add(time.Duration(r.ahead.Load()))
}

// List returns the processes in the store, sorted by start time and name.
func (r *Replicas) List(ctx context.Context) ([]Process, error) {
	all, err := r.stored.Load(ctx)
	var out []Process
	for name, p := range all {
		p.Name = name
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Process) int { return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.Name, b.Name)) })
	return out, err
}
