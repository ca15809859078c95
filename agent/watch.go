package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/internal/schedule"
	"github.com/millrace/millrace/store"
)

// Change is one change of a site. Its Change is "added", "updated", "deleted" or "reset". On
// "reset", the receiver deletes all pages of the site; all pages follow as added.
type Change = outbox.Event

// Subscriber subscribes to the hubs of sites (WebSub). It is the [millrace.Handler] for the
// callbacks of hubs.
type Subscriber = push.Subscriber

// WatchOptions are the options of [Agent.Watch]. The zero value is ready to use.
type WatchOptions struct {
	// MinInterval and MaxInterval are the minimum and maximum time between two pulls of a
	// site. If zero, 5 minutes and 24 hours. Between these limits, the interval depends on how
	// often the site changes.
	MinInterval, MaxInterval time.Duration
	// NoListen disables connections to the event streams of sites. Otherwise, there are at most 256
	// connections.
	NoListen bool
	// Subscriber receives the notifications of hubs. If nil, there are no
	// subscriptions.
	Subscriber *Subscriber

	// RequestRate and ByteRate limit the requests and the received bytes per second of all programs
	// that share the sites of the store and have the same limits. If zero, there is no limit.
	RequestRate, ByteRate float64

	// Retention is how long the store keeps the changes of sites, by label. A cursor or receiver whose
	// position is older must start over with all pages. If several labels of a site have a retention,
	// the longest applies; if none has one, 30 days.
	Retention map[string]time.Duration

	// Receiver names the receiver of the events. The store records the progress of each
	// receiver. If empty, "default".
	Receiver string
	// FromNow starts a new receiver with future changes only. If false, a new receiver first
	// receives all pages in the store.
	FromNow bool
	// Webhook posts an event of a site that has a webhook of its own (see [store.FleetSite]). If
	// Webhook returns an error, the event is posted again, as after [Event.Refuse]. Events for
	// different URLs are posted at the same time. If nil, Watch yields these events like all others.
	Webhook func(ctx context.Context, url string, e *Event) error
	// Content returns the text for the Content of a [Change], such as [millrace.Page.Text]. If
	// nil, changes have no content.
	Content func(*millrace.Page) string
	// MaxChanges limits the number of changes in an event. If zero, 100.
	MaxChanges int
}

// Event is a batch of changes of one site, in order.
type Event struct {
	Site  string
	Lines [][]byte // one JSON line per change; see [Change]

	refused error
}

// Changes decodes the changes.
func (e *Event) Changes() ([]Change, error) {
	out := make([]Change, len(e.Lines))
	for i, line := range e.Lines {
		if err := json.Unmarshal(line, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Message is the body of a webhook request. A retry sends the same bytes.
type Message struct {
	Type      string      `json:"type"`      // "site.changed"
	Timestamp time.Time   `json:"timestamp"` // time of the last change
	Data      MessageData `json:"data"`      // site and its changes
}

// MessageData holds the changes of a [Message].
type MessageData struct {
	Site    string            `json:"site"`    // name of the site in the mirror
	Changes []json.RawMessage `json:"changes"` // changes; each has the members of a line that watch prints
}

// Message returns the encoded [Message] of the event.
func (e *Event) Message() ([]byte, error) {
	changes, err := e.Changes()
	if err != nil {
		return nil, err
	}
	m := Message{Type: "site.changed", Timestamp: changes[len(changes)-1].Time, Data: MessageData{Site: e.Site}}
	for _, line := range e.Lines {
		m.Data.Changes = append(m.Data.Changes, line)
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}

// Refuse reports that the event could not be delivered. Watch delivers it again later. After
// [millrace.ErrTooLarge], Watch delivers its changes again at once, in smaller events.
// [millrace.ErrNotFound] means that the receiver no longer exists: no event follows, but sites
// are still pulled.
func (e *Event) Refuse(err error) { e.refused = err }

const (
	listenAgain = 24 * time.Hour   // delay after a site was found to have no event stream or no hub
	turnTime    = 30 * time.Second // duration of a lease, which is renewed while the turn runs
	pollTime    = time.Second      // maximum time between two attempts to lease turns
	storeAgain  = 5 * time.Second  // delay after a failed attempt to lease turns
	lastTry     = time.Second      // time to store the ends of turns after the context has ended
)

// watch is the state of one call of [Agent.Watch].
type watch struct {
	a      *Agent
	o      WatchOptions
	rules  schedule.Rules
	now    func() time.Time // clock of this program
	worker string           // names this program among those that share the sites of the store
	fleet  store.Fleet
	named  []string // URLs of sites in the fleet. If nil, all listed sites.
	budget *rateBudget
	due    chan struct{} // has an element if a turn may be due

	deliveries *deliveries
	mu         sync.Mutex
	turns      map[string]*turn        // running turns, by lease name
	sites      map[string]*watchedSite // sites that may have an event stream or a subscription, by URL
	listening  map[string]*watchedSite // the site of each origin that listens to the origin's event stream, by root URL
}

func (a *Agent) newWatch(o *WatchOptions) *watch {
	w := &watch{
		a: a, now: time.Now, worker: lease.NewHolder(), fleet: a.store.Fleet(), due: make(chan struct{}, 1), turns: make(map[string]*turn), sites: make(map[string]*watchedSite), listening: make(map[string]*watchedSite),
	}
	if o != nil {
		w.o = *o
	}
	w.rules = schedule.Rules{Min: w.o.MinInterval, Max: w.o.MaxInterval}
	if w.rules.Min == 0 {
		w.rules.Min = 5 * time.Minute
	}
	if w.rules.Max == 0 {
		w.rules.Max = max(24*time.Hour, w.rules.Min)
	}
	if w.o.Receiver == "" {
		w.o.Receiver = "default"
	}
	if w.o.RequestRate > 0 || w.o.ByteRate > 0 {
		w.budget = newRateBudget(a.store, w.o.RequestRate, w.o.ByteRate)
	}
	w.deliveries = newDeliveries(w)
	return w
}

// Watch keeps mirrors of sites current until ctx ends, and yields their changes. It pulls a site
// when the site is due, or when the site or a hub notifies of a change. If urls is nil, it watches
// the sites of the store's fleet (see [store.Fleet]), including those that are added later. Any
// number of programs may watch the sites of one store: each pull is done by one of them. If o is
// nil, the zero WatchOptions are used.
//
// An event counts as delivered when the loop body ends without a call of [Event.Refuse]. After a
// crash, an undelivered event is yielded again, by any of the programs with the same Receiver.
// An error ends the sequence. If a pull fails, Watch only logs the error, and retries the pull later.
func (a *Agent) Watch(ctx context.Context, urls []string, o *WatchOptions) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		w := a.newWatch(o)
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		var tasks sync.WaitGroup
		if urls != nil {
			if err := w.addToFleet(ctx, &tasks, urls); err != nil {
				stop()
				tasks.Wait()
				yield(nil, err)
				return
			}
		}
		for _, label := range slices.Sorted(maps.Keys(w.o.Retention)) {
			if err := ingest.CheckLabel(ctx, w.fleet, label); err != nil {
				a.o.Logger.Warn("retention of a label has no effect yet", "err", err)
			}
		}
		if urls == nil {
			a.o.Logger.Info("watching all sites of the store", "worker", w.worker)
		} else {
			a.o.Logger.Info("watching", "sites", len(urls), "worker", w.worker)
		}
		tasks.Go(func() { w.run(ctx, &tasks) })
		if urls == nil {
			tasks.Go(func() {
				if err := w.deliverStored(ctx); err != nil && ctx.Err() == nil {
					a.o.Logger.Warn("could not look for stored changes; the next pull of each site delivers its changes", "err", err)
				}
			})
		}
		w.deliveries.run(ctx, &tasks, func(e *Event) bool { return yield(e, nil) })
		stop()
		tasks.Wait()
	}
}

// deliverStored delivers the changes that earlier programs stored but did not deliver.
func (w *watch) deliverStored(ctx context.Context) error {
	for s, err := range w.fleet.Sites(ctx, store.FleetQuery{}) {
		if err != nil {
			return err
		}
		if s.Name == "" { // never pulled
			continue
		}
		d := w.delivery(s, s.Name)
		waiting, err := w.deliveries.waiting(ctx, d)
		if err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return err
		}
		if waiting {
			w.deliveries.wake(d)
		}
	}
	return nil
}

// addToFleet adds sites to the fleet, and prepares each with resume. A site that was there before may
// become due earlier, according to schedule.Rules.Resume.
func (w *watch) addToFleet(ctx context.Context, tasks *sync.WaitGroup, urls []string) error {
	var sites []store.FleetSite
	w.named = []string{}
	for _, u := range urls {
		folder, err := ingest.Folder(u)
		if err != nil {
			return err
		}
		if !slices.Contains(w.named, folder) {
			w.named = append(w.named, folder)
			sites = append(sites, store.FleetSite{URL: folder, Unlisted: true})
		}
	}
	_, _, err := w.fleet.Put(ctx, withoutErrors(sites))
	if err != nil {
		return err
	}
	var early []store.FleetSite
	for s, err := range w.fleet.Sites(ctx, store.FleetQuery{Sites: w.named}) {
		if err == nil {
			err = w.resume(ctx, tasks, s)
		}
		if err != nil {
			return err
		}
		if next := w.rulesOf(s).Resume(decodeRecord(s.State).State).Next; next.Before(s.Due) && !s.Added.Equal(s.Due) {
			early = append(early, store.FleetSite{URL: s.URL, Unlisted: true, Due: next})
		}
	}
	_, _, err = w.fleet.Put(ctx, withoutErrors(early))
	return err
}

// withoutErrors yields the elements of a list without errors.
func withoutErrors[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// run leases turns, and runs each in its own goroutine, until ctx ends.
func (w *watch) run(ctx context.Context, tasks *sync.WaitGroup) {
	tasks.Go(func() { w.renew(ctx) })
	tasks.Go(func() {
		for fetch.Sleep(ctx, unfollowAfter) == nil {
			if err := w.unfollow(ctx); err != nil && ctx.Err() == nil {
				w.a.o.Logger.Warn("could not look for removed sites", "err", err)
			}
		}
	})
	free := make(chan struct{}, w.a.o.Parallel)
	for range w.a.o.Parallel {
		free <- struct{}{}
	}
	for ctx.Err() == nil {
		select { // wait for a free slot
		case <-free:
			free <- struct{}{}
		case <-ctx.Done():
			return
		}
		begun := w.now()
		turns, next, err := w.fleet.Lease(ctx, w.worker, len(free), turnTime, w.named)
		for _, t := range turns {
			<-free
			tasks.Go(func() {
				w.take(ctx, tasks, t, begun)
				free <- struct{}{}
				w.wake()
			})
		}
		wait := pollTime
		switch {
		case err != nil && ctx.Err() == nil:
			w.a.o.Logger.Error("could not lease turns; retrying", "retry_in", storeAgain, "err", err)
			wait = storeAgain
		case len(turns) > 0 && len(free) > 0:
			continue
		case !next.IsZero():
			wait = max(10*time.Millisecond, min(wait, w.until(ctx, next)))
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-w.due:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// wake makes run look for turns.
func (w *watch) wake() {
	select {
	case w.due <- struct{}{}:
	default:
	}
}

// until returns the duration until a time of the store's clock, or pollTime if the store is not
// available.
func (w *watch) until(ctx context.Context, at time.Time) time.Duration {
	now, err := w.a.store.Now(ctx)
	if err != nil {
		return pollTime
	}
	return at.Sub(now)
}
