package simulation

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// In every third run, the store is a database server on another machine, with its own clock. There
// are three replicas. Instead of a power failure, the server or the connection to it is down.

// newServer returns the store of a server.
func (w *world) newServer() store.Store {
	return memory.New(&store.Options{Now: w.clock().now})
}

// outage is a period in which some processes cannot reach the store.
type outage struct {
	name     string // "" = all processes
	from, to time.Time
}

// breakOff makes the store unreachable for a while, for all processes or for one replica.
func (w *world) breakOff(rng *rand.Rand) {
	o := outage{from: time.Now()}
	if rng.IntN(2) == 0 {
		o.name = replicaName(rng.IntN(w.replicas))
	}
	d := between(rng, 100*time.Millisecond, 4*time.Second)
	if rng.IntN(4) == 0 {
		d = between(rng, 10*time.Second, 15*time.Second) // longer than the duration of a lease
	}
	o.to = o.from.Add(d)
	w.logf("the store is down for %v, for the process %q", d, o.name)
	w.outageMu.Lock()
	w.outages = append(w.outages, o)
	w.outageMu.Unlock()
	for _, l := range w.alive() {
		if o.name == "" || o.name == l.name {
			l.delay.record(d, true)
		}
	}
}

// cutOff reports whether the store was down for a process at any time from a time until now.
func (w *world) cutOff(name string, from time.Time) bool {
	w.outageMu.Lock()
	defer w.outageMu.Unlock()
	for _, o := range w.outages {
		if (o.name == "" || o.name == name) && o.to.After(from) && !w.settling.Load() {
			return true
		}
	}
	return false
}

// remote is the store of a server, as one process sees it. A killed process reaches nothing.
type remote struct {
	store.Store
	w *world
	l *process
}

func (r remote) fault(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.l.ctx.Err() != nil:
		return r.l.ctx.Err()
	case r.w.cutOff(r.l.name, time.Now()):
		return fmt.Errorf("the store is down: %w", millrace.ErrUnavailable)
	}
	return nil
}

// call calls f if the store is reachable. The reply of a write may be lost.
func call[T any](ctx context.Context, r remote, write bool, f func() (T, error)) (v T, err error) {
	if err := r.fault(ctx); err != nil {
		return v, err
	}
	v, err = f()
	if write && err == nil && r.w.chance(r.l.rng, .01) {
		r.w.logf("%s gets no reply from the store", r.l.name)
		return *new(T), fmt.Errorf("the connection was lost: %w", millrace.ErrUnavailable)
	}
	return v, err
}

// each yields the values of a sequence while the store is reachable.
func each[T any](ctx context.Context, r remote, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if fault := r.fault(ctx); fault != nil {
				v, err = *new(T), fault
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

func (r remote) Now(ctx context.Context) (time.Time, error) {
	return call(ctx, r, false, func() (time.Time, error) { return r.Store.Now(ctx) })
}

func (r remote) Manifests(ctx context.Context) iter.Seq2[[]byte, error] {
	return each(ctx, r, r.Store.Manifests(ctx))
}

func (r remote) State() store.State { return remoteState{r.Store.State(), r} }

func (r remote) Leases() store.Leases { return remoteLeases{r.Store.Leases(), r} }

func (r remote) Site(ctx context.Context, name, base string) (store.Site, error) {
	return call(ctx, r, false, func() (store.Site, error) {
		s, err := r.Store.Site(ctx, name, base)
		return remoteSite{s, r}, err
	})
}

type remoteState struct {
	store.State
	r remote
}

func (s remoteState) Value(ctx context.Context, namespace, key string) ([]byte, error) {
	return call(ctx, s.r, false, func() ([]byte, error) { return s.State.Value(ctx, namespace, key) })
}

func (s remoteState) Swap(ctx context.Context, namespace, key string, old, new []byte) error {
	_, err := call(ctx, s.r, true, func() (any, error) { return nil, s.State.Swap(ctx, namespace, key, old, new) })
	return err
}

type remoteLeases struct {
	store.Leases
	r remote
}

func (s remoteLeases) Acquire(ctx context.Context, name, holder string, d time.Duration) (store.Lease, error) {
	return call(ctx, s.r, true, func() (store.Lease, error) { return s.Leases.Acquire(ctx, name, holder, d) })
}

func (s remoteLeases) Release(ctx context.Context, l store.Lease) error {
	_, err := call(ctx, s.r, true, func() (any, error) { return nil, s.Leases.Release(ctx, l) })
	return err
}

type remoteSite struct {
	store.Site
	r remote
}

func (s remoteSite) Fenced(l store.Lease) store.Site { return remoteSite{s.Site.Fenced(l), s.r} }

func (s remoteSite) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	return call(ctx, s.r, true, func() (millrace.Counts, error) { return s.Site.Apply(ctx, from, batch) })
}

func (s remoteSite) Cursor(ctx context.Context, from string) (millrace.Cursor, error) {
	return call(ctx, s.r, false, func() (millrace.Cursor, error) { return s.Site.Cursor(ctx, from) })
}

func (s remoteSite) KnownRefs(ctx context.Context, from string, urls ...string) iter.Seq2[millrace.Ref, error] {
	return each(ctx, s.r, s.Site.KnownRefs(ctx, from, urls...))
}

func (s remoteSite) Head(ctx context.Context) (millrace.View, error) {
	return s.r.view(ctx, func() (millrace.View, error) { return s.Site.Head(ctx) })
}

func (s remoteSite) HeadCursor(ctx context.Context) (millrace.Cursor, error) {
	return call(ctx, s.r, false, func() (millrace.Cursor, error) { return s.Site.HeadCursor(ctx) })
}

func (s remoteSite) Compact(ctx context.Context, keep, horizon time.Duration) error {
	_, err := call(ctx, s.r, true, func() (any, error) { return nil, s.Site.Compact(ctx, keep, horizon) })
	return err
}

func (s remoteSite) Publication(ctx context.Context, c store.Config) (store.Publication, error) {
	return call(ctx, s.r, true, func() (store.Publication, error) {
		p, err := s.Site.Publication(ctx, c)
		return remotePublication{p, s.r}, err
	})
}

type remotePublication struct {
	store.Publication
	r remote
}

func (p remotePublication) Refresh(ctx context.Context, l store.Lease, limit int, progress func(done, total int)) (bool, error) {
	return call(ctx, p.r, true, func() (bool, error) { return p.Publication.Refresh(ctx, l, limit, progress) })
}

func (p remotePublication) Head(ctx context.Context) (millrace.View, error) {
	return p.r.view(ctx, func() (millrace.View, error) { return p.Publication.Head(ctx) })
}

func (p remotePublication) Published(ctx context.Context) (v millrace.View, ed store.Edition, err error) {
	v, err = p.r.view(ctx, func() (millrace.View, error) {
		v, ed, err = p.Publication.Published(ctx)
		return v, err
	})
	return v, ed, err
}

// Publish publishes. Type publishing simulates lost replies.
func (p remotePublication) Publish(ctx context.Context, l store.Lease, old, seq uint64, manifest []byte) (store.Edition, error) {
	return call(ctx, p.r, false, func() (store.Edition, error) { return p.Publication.Publish(ctx, l, old, seq, manifest) })
}

func (r remote) view(ctx context.Context, f func() (millrace.View, error)) (millrace.View, error) {
	v, err := call(ctx, r, false, f)
	if err != nil {
		return nil, err
	}
	return remoteView{v, r}, nil
}

type remoteView struct {
	millrace.View
	r remote
}

// local returns the view without the faults of the network.
func local(v millrace.View) millrace.View {
	if r, ok := v.(remoteView); ok {
		return r.View
	}
	return v
}

func (v remoteView) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return each(ctx, v.r, v.View.Scan(ctx, s))
}

func (v remoteView) Tags(ctx context.Context, protocol, after string) iter.Seq2[millrace.Tag, error] {
	return each(ctx, v.r, v.View.Tags(ctx, protocol, after))
}

func (v remoteView) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return each(ctx, v.r, v.View.Changes(ctx, since))
}

func (v remoteView) Tag(ctx context.Context, protocol, url string) (millrace.Tag, error) {
	return call(ctx, v.r, false, func() (millrace.Tag, error) { return v.View.Tag(ctx, protocol, url) })
}

func (v remoteView) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	return call(ctx, v.r, false, func() (*millrace.Page, error) { return v.View.Page(ctx, have) })
}

func (v remoteView) SeqAt(ctx context.Context, t time.Time) (uint64, error) {
	return call(ctx, v.r, false, func() (uint64, error) { return v.View.SeqAt(ctx, t) })
}
