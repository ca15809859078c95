package agent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/store"
)

const (
	deliverEvery = 500 * time.Millisecond // while a pull is running
	retryAfter   = 10 * time.Second
)

// deliveries delivers the changes of all sites, one site after the other.
type deliveries struct {
	w     *watch
	yield func(*Event) bool
	bell  chan struct{}
	ended bool // the loop has ended
	gone  bool // the receiver has reported that it no longer exists

	mu      sync.Mutex
	pending map[string]bool // sites that may have changed
	busy    map[string]int  // sites that are being pulled
}

func newDeliveries(w *watch) *deliveries {
	return &deliveries{w: w, bell: make(chan struct{}, 1), pending: make(map[string]bool), busy: make(map[string]int)}
}

// wake reports that a site may have changed.
func (t *deliveries) wake(name string) {
	t.mu.Lock()
	t.pending[name] = true
	t.mu.Unlock()
	select {
	case t.bell <- struct{}{}:
	default:
	}
}

// follow reports that sites are being pulled, until release is called.
func (t *deliveries) follow(names ...string) (release func()) {
	add := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, name := range names {
			if t.busy[name] += n; t.busy[name] == 0 {
				delete(t.busy, name)
			}
		}
	}
	add(1)
	return func() { add(-1) }
}

// take returns the sites that may have changed, in order.
func (t *deliveries) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := slices.Collect(maps.Keys(t.pending))
	for name := range t.busy {
		if !t.pending[name] {
			names = append(names, name)
		}
	}
	clear(t.pending)
	slices.Sort(names)
	return names
}

// run delivers changes until ctx or the loop ends.
func (t *deliveries) run(ctx context.Context, yield func(*Event) bool) {
	t.yield = yield
	tick := time.NewTicker(deliverEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.bell:
		case <-tick.C:
		}
		for _, name := range t.take() {
			if t.gone {
				break
			}
			if t.flush(ctx, name); t.ended {
				return
			}
		}
	}
}

// refusal is the error with which a receiver refused an event.
type refusal struct{ error }

// Unwrap returns the error of the receiver.
func (r refusal) Unwrap() error { return r.error }

// errEnded ends a flush after the loop has ended.
var errEnded = errors.New("the loop has ended")

// deliver yields an event.
func (t *deliveries) deliver(ctx context.Context, name string, lines [][]byte) error {
	if t.ended {
		return errEnded
	}
	e := &Event{Site: name, Lines: lines}
	t.ended = !t.yield(e)
	if e.refused == nil || errors.Is(e.refused, millrace.ErrTooLarge) || ctx.Err() != nil {
		return e.refused
	}
	return refusal{e.refused}
}

// box returns the outbox of a site. If the store has no such site, the error is ErrNotFound.
func (t *deliveries) box(ctx context.Context, name string) (*outbox.Outbox, error) {
	site, err := t.w.a.store.Site(ctx, name, "")
	if err != nil {
		return nil, err
	}
	o := &t.w.o
	return &outbox.Outbox{
		Site: ingest.Visible{Site: site}, State: t.w.a.store.State(), Name: name, Receiver: o.Receiver, Content: o.Content, Most: o.MaxChanges,
		Deliver: func(ctx context.Context, lines [][]byte) error { return t.deliver(ctx, name, lines) },
		Terms:   func(ctx context.Context) (json.RawMessage, error) { return t.terms(ctx, name) },
	}, nil
}

// terms returns the terms of use of a site, in the format of exports.
func (t *deliveries) terms(ctx context.Context, name string) (json.RawMessage, error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, err
	}
	r, err := ingest.LoadTerms(ctx, t.w.a.store.State(), u)
	if errors.Is(err, millrace.ErrInvalid) {
		t.w.a.o.Logger.Warn("stored site policy is invalid; ignoring it", "err", err)
		return nil, nil
	}
	if err != nil || len(r.Terms) == 0 {
		return nil, err
	}
	return json.Marshal(policy.Statements(r.Terms))
}

// skip marks the current state of a site as delivered. It is for a new receiver with FromNow.
func (t *deliveries) skip(ctx context.Context, name string) error {
	if !t.w.o.FromNow {
		return nil
	}
	b, err := t.box(ctx, name)
	if errors.Is(err, millrace.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = b.Skip(ctx)
	}
	return err
}

// flush delivers the changes of a site. If it fails, it is retried.
func (t *deliveries) flush(ctx context.Context, name string) {
	err := t.skip(ctx, name)
	var b *outbox.Outbox
	if err == nil {
		b, err = t.box(ctx, name)
	}
	if errors.Is(err, millrace.ErrNotFound) {
		return
	}
	pending := false
	if err == nil {
		pending, err = b.Pending(ctx)
	}
	if err == nil && !pending {
		return
	}
	if err == nil { // several programs may have this receiver; one of them delivers the changes of a site
		err = lease.Hold(ctx, t.w.a.store.Leases(), "deliver "+name+" to "+t.w.o.Receiver, func(ctx context.Context, _ store.Lease) error {
			_, err := b.Flush(ctx)
			return err
		})
	}
	if err == nil || ctx.Err() != nil || t.ended {
		return // the program with the lease delivers the rest
	}
	if _, refused := errors.AsType[refusal](err); refused && errors.Is(err, millrace.ErrNotFound) {
		t.gone = true
		t.w.a.o.Logger.Error("receiver is gone; keeping the mirror current without it", "err", err)
		return
	}
	level := t.w.a.o.Logger.Error
	if errors.Is(err, millrace.ErrConflict) {
		level = t.w.a.o.Logger.Debug // another program delivers them
	}
	level("could not deliver changes; retrying", "site", name, "retry_in", retryAfter, "err", err)
	time.AfterFunc(retryAfter, func() { t.wake(name) })
}
