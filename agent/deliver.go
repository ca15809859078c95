package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/store"
)

const (
	deliverEvery = 500 * time.Millisecond // interval of checks for changes while a site is being pulled
	retryAfter   = 10 * time.Second       // delay after a failed delivery
)

// delivery names a site and the receiver of its changes.
type delivery struct {
	site    string // name of the site in the store
	webhook string // URL; if empty, the receiver is WatchOptions.Receiver
}

// delivery returns the delivery of the stored site with a name. s is the site of the fleet whose
// settings apply to it.
func (w *watch) delivery(s store.FleetSite, name string) delivery {
	if w.o.Webhook == nil {
		return delivery{name, ""}
	}
	return delivery{name, s.Webhook}
}

// deliveries delivers the changes of all sites. A receiver gets the changes of one site at a time.
// WatchOptions.Receiver and the webhooks do not wait for each other.
type deliveries struct {
	w     *watch
	yield func(*Event) bool
	main  chan struct{} // has an element if a change for WatchOptions.Receiver may be pending
	hooks chan struct{} // has an element if a change for a webhook may be pending
	ended bool          // the caller's loop over the events has ended

	mu      sync.Mutex
	pending map[delivery]bool // sites that may have changed
	busy    map[delivery]int  // numbers of running pulls
	active  map[string]bool   // webhooks to which changes are being posted
	gone    map[string]bool   // receivers that have reported that they no longer exist
}

func newDeliveries(w *watch) *deliveries {
	return &deliveries{
		w: w, main: make(chan struct{}, 1), hooks: make(chan struct{}, 1), pending: make(map[delivery]bool), busy: make(map[delivery]int), active: make(map[string]bool), gone: make(map[string]bool),
	}
}

// wake reports that a site may have changed.
func (t *deliveries) wake(d delivery) {
	t.mu.Lock()
	t.pending[d] = true
	t.mu.Unlock()
	bell := t.main
	if d.webhook != "" {
		bell = t.hooks
	}
	ring(bell)
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// follow reports that sites are being pulled, until release is called.
func (t *deliveries) follow(sites []delivery) (release func()) {
	add := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, d := range sites {
			if t.busy[d] += n; t.busy[d] == 0 {
				delete(t.busy, d)
			}
		}
	}
	add(1)
	return func() { add(-1) }
}

// take returns the sorted names of the sites that may have changed, by webhook. If hooks is set, it
// returns the sites with a webhook, else the sites without. It marks the returned webhooks as
// active. Sites whose webhook is already active remain pending.
func (t *deliveries) take(hooks bool) map[string][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	sites := make(map[string][]string)
	add := func(d delivery) {
		if !t.gone[d.webhook] {
			sites[d.webhook] = append(sites[d.webhook], d.site)
		}
	}
	waits := func(d delivery) bool { return d.webhook != "" != hooks || t.active[d.webhook] }
	for d := range t.busy {
		if !t.pending[d] && !waits(d) {
			add(d)
		}
	}
	for d := range t.pending {
		if !waits(d) {
			add(d)
			delete(t.pending, d)
		}
	}
	for webhook, names := range sites {
		t.active[webhook] = webhook != ""
		slices.Sort(names)
	}
	return sites
}

// post delivers the changes of sites to a webhook, and then marks the webhook as inactive.
func (t *deliveries) post(ctx context.Context, webhook string, sites []string) {
	for _, name := range sites {
		t.flush(ctx, delivery{name, webhook})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.active, webhook)
	for d := range t.pending {
		if d.webhook == webhook {
			ring(t.hooks)
			return
		}
	}
}

// run delivers changes until ctx ends or the caller's loop over the events ends. It adds the
// goroutines that deliver to webhooks to tasks; they run until ctx ends.
func (t *deliveries) run(ctx context.Context, tasks *sync.WaitGroup, yield func(*Event) bool) {
	t.yield = yield
	tasks.Go(func() {
		for wait(ctx, t.hooks) {
			for webhook, sites := range t.take(true) {
				tasks.Go(func() { t.post(ctx, webhook, sites) })
			}
		}
	})
	for wait(ctx, t.main) {
		for _, name := range t.take(false)[""] {
			if t.flush(ctx, delivery{name, ""}); t.ended {
				return
			}
		}
	}
}

// wait waits until bell has an element, at most deliverEvery, and reports whether ctx is still active.
func wait(ctx context.Context, bell <-chan struct{}) bool {
	timer := time.NewTimer(deliverEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-bell:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// refusal is the error with which a receiver refused an event.
type refusal struct{ error }

// Unwrap returns the error of the receiver.
func (r refusal) Unwrap() error { return r.error }

// errEnded ends a flush after the caller's loop over the events has ended.
var errEnded = errors.New("the loop has ended")

// deliver posts or yields an event.
func (t *deliveries) deliver(ctx context.Context, d delivery, lines [][]byte) error {
	e := &Event{Site: d.site, Lines: lines}
	switch {
	case d.webhook != "":
		e.refused = t.w.o.Webhook(ctx, d.webhook, e)
	case t.ended:
		return errEnded
	default:
		t.ended = !t.yield(e)
	}
	if e.refused == nil || errors.Is(e.refused, millrace.ErrTooLarge) || ctx.Err() != nil {
		return e.refused
	}
	return refusal{e.refused}
}

// receiver returns the name by which the store identifies a receiver. The name does not reveal the
// receiver's URL.
func (t *deliveries) receiver(webhook string) string {
	if webhook == "" {
		return t.w.o.Receiver
	}
	return "webhook " + canon.SHA256Hex([]byte(webhook))[:16]
}

// outboxOf returns the outbox of a site. If the store has no such site, the error is ErrNotFound.
func (t *deliveries) outboxOf(ctx context.Context, d delivery) (*outbox.Outbox, error) {
	site, err := t.w.a.store.Site(ctx, d.site, "")
	if err != nil {
		return nil, err
	}
	o := &t.w.o
	return &outbox.Outbox{
		Site: ingest.Visible{Site: site}, State: t.w.a.store.State(), Name: d.site, Receiver: t.receiver(d.webhook), Content: o.Content, MaxEvents: o.MaxChanges,
		Deliver: func(ctx context.Context, lines [][]byte) error { return t.deliver(ctx, d, lines) },
		Terms:   func(ctx context.Context) (json.RawMessage, error) { return t.terms(ctx, d.site) },
	}, nil
}

// terms returns a site's terms of use in the format of exports.
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

// skip marks the current state of a site as delivered, if FromNow is set and the receiver is new.
func (t *deliveries) skip(ctx context.Context, d delivery) error {
	if !t.w.o.FromNow {
		return nil
	}
	b, err := t.outboxOf(ctx, d)
	if errors.Is(err, millrace.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = b.Skip(ctx)
	}
	return err
}

// waiting reports whether a receiver still lacks changes of its site. A receiver that no longer
// exists lacks none.
func (t *deliveries) waiting(ctx context.Context, d delivery) (bool, error) {
	t.mu.Lock()
	gone := t.gone[d.webhook]
	t.mu.Unlock()
	b, err := t.outboxOf(ctx, d)
	if err != nil || gone {
		return false, err
	}
	return b.Pending(ctx)
}

// flush delivers the changes of a site. After an error it schedules a retry, unless the receiver no
// longer exists.
func (t *deliveries) flush(ctx context.Context, d delivery) {
	err := t.skip(ctx, d)
	var b *outbox.Outbox
	if err == nil {
		b, err = t.outboxOf(ctx, d)
	}
	if errors.Is(err, millrace.ErrNotFound) {
		return
	}
	waiting := false
	if err == nil {
		waiting, err = b.Pending(ctx)
	}
	if err == nil && !waiting {
		return
	}
	if err == nil { // several programs may have this receiver; one of them delivers the changes of a site
		err = lease.Hold(ctx, t.w.a.store.Leases(), "deliver "+d.site+" to "+t.receiver(d.webhook), func(ctx context.Context, _ store.Lease) error {
			_, err := b.Flush(ctx)
			return err
		})
	}
	if err == nil || ctx.Err() != nil || d.webhook == "" && t.ended {
		return // done, or stopping: the next program with the lease delivers the rest
	}
	if _, refused := errors.AsType[refusal](err); refused && errors.Is(err, millrace.ErrNotFound) {
		t.mu.Lock()
		t.gone[d.webhook] = true
		t.mu.Unlock()
		t.w.a.o.Logger.Error("receiver is gone; keeping the mirror current without it", "err", err)
		return
	}
	level := t.w.a.o.Logger.Error
	if errors.Is(err, millrace.ErrConflict) {
		level = t.w.a.o.Logger.Debug // another program delivers the changes
	}
	level("could not deliver changes; retrying", "site", d.site, "retry_in", retryAfter, "err", err)
	time.AfterFunc(retryAfter, func() { t.wake(d) })
}
