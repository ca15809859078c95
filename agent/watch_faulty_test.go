package agent

import (
	"context"
	"iter"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// faultyStore is the store as a worker reaches it.
type faultyStore struct {
	store.Store
	w *worker
}

func (s faultyStore) Now(ctx context.Context) (time.Time, error) {
	return called(s.w, func() (time.Time, error) { return s.Store.Now(ctx) })
}

func (s faultyStore) Site(ctx context.Context, name, base string) (store.Site, error) {
	site, err := worked(s.w, func() (store.Site, error) { return s.Store.Site(ctx, name, base) })
	if err != nil {
		return nil, err
	}
	return faultySite{site, s.w}, nil
}

func (s faultyStore) State() store.State   { return faultyState{s.Store.State(), s.w} }
func (s faultyStore) Leases() store.Leases { return faultyLeases{s.Store.Leases(), s.w} }
func (s faultyStore) Costs() store.Costs   { return faultyCosts{s.Store.Costs(), s.w} }
func (s faultyStore) Fleet() store.Fleet   { return faultyFleet{s.Store.Fleet(), s.w} }

type faultySite struct {
	store.Site
	w *worker
}

func (s faultySite) Fenced(l store.Lease) store.Site { return faultySite{s.Site.Fenced(l), s.w} }

func (s faultySite) Ending(l store.Lease, turn string, r store.TurnResult) store.Site {
	return faultySite{s.Site.Ending(l, turn, r), s.w}
}

func (s faultySite) Head(ctx context.Context) (millrace.View, error) {
	return worked(s.w, func() (millrace.View, error) { return s.Site.Head(ctx) })
}

func (s faultySite) Cursor(ctx context.Context, from string) (millrace.Cursor, error) {
	return worked(s.w, func() (millrace.Cursor, error) { return s.Site.Cursor(ctx, from) })
}

func (s faultySite) KnownRefs(ctx context.Context, from string, urls ...string) iter.Seq2[millrace.Ref, error] {
	return ranged(s.w, s.Site.KnownRefs(ctx, from, urls...))
}

func (s faultySite) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	return worked(s.w, func() (millrace.Counts, error) { return s.Site.Apply(ctx, from, batch) })
}

func (s faultySite) Compact(ctx context.Context, keep, horizon time.Duration) error {
	return s.w.work(s.w.pass, func() error { return s.Site.Compact(ctx, keep, horizon) })
}

type faultyState struct {
	store.State
	w *worker
}

func (s faultyState) Value(ctx context.Context, namespace, key string) ([]byte, error) {
	var value []byte
	err := s.w.work(s.w.alive, func() (err error) {
		value, err = s.State.Value(ctx, namespace, key)
		return err
	})
	return value, err
}

func (s faultyState) Swap(ctx context.Context, namespace, key string, old, new []byte) error {
	return s.w.work(s.w.alive, func() error { return s.State.Swap(ctx, namespace, key, old, new) })
}

type faultyLeases struct {
	store.Leases
	w *worker
}

func (s faultyLeases) Acquire(ctx context.Context, name, holder string, d time.Duration) (store.Lease, error) {
	return worked(s.w, func() (store.Lease, error) { return s.Leases.Acquire(ctx, name, holder, d) })
}

func (s faultyLeases) Release(ctx context.Context, l store.Lease) error {
	return s.w.work(s.w.pass, func() error { return s.Leases.Release(ctx, l) })
}

type faultyCosts struct {
	store.Costs
	w *worker
}

func (s faultyCosts) Add(ctx context.Context, site, protocol string, t store.Traffic) error {
	return s.w.work(s.w.alive, func() error { return s.Costs.Add(ctx, site, protocol, t) })
}

type faultyFleet struct {
	store.Fleet
	w *worker
}

func (s faultyFleet) Lease(ctx context.Context, worker string, n int, d time.Duration, sites []string) (turns []store.Turn, next time.Time, err error) {
	err = s.w.call(s.w.pass, func() error {
		turns, next, err = s.Fleet.Lease(ctx, worker, n, d, sites)
		return err
	})
	if err != nil {
		turns = nil
	}
	return turns, next, err
}

func (s faultyFleet) Renew(ctx context.Context, d time.Duration, leases ...store.Lease) ([]store.Lease, error) {
	return worked(s.w, func() ([]store.Lease, error) { return s.Fleet.Renew(ctx, d, leases...) })
}

func (s faultyFleet) SetAddress(ctx context.Context, t store.Turn, address string, rate float64) (store.Turn, error) {
	return worked(s.w, func() (store.Turn, error) { return s.Fleet.SetAddress(ctx, t, address, rate) })
}

func (s faultyFleet) Done(ctx context.Context, l store.Lease, site string, r store.TurnResult) error {
	return s.w.work(s.w.pass, func() error { return s.Fleet.Done(ctx, l, site, r) })
}

func (s faultyFleet) Hint(ctx context.Context, site string) error {
	return s.w.work(s.w.pass, func() error { return s.Fleet.Hint(ctx, site) })
}
