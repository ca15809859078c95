package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/internal/schedule"
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
	// site. If zero, 5 minutes and 24 hours. Between them, the interval depends on how often
	// the site changes.
	MinInterval, MaxInterval time.Duration
	// NoListen disables connections to the event streams of sites.
	NoListen bool
	// Subscriber receives the notifications of hubs. If nil, there are no
	// subscriptions.
	Subscriber *Subscriber

	// Receiver names the receiver of the events. The store records the progress of each
	// receiver. If empty, "default".
	Receiver string
	// FromNow starts a new receiver with future changes only. If false, a new receiver first
	// receives all pages in the store.
	FromNow bool
	// Content returns the Content of the change of a page, such as [millrace.Page.Text]. If
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
	Changes []json.RawMessage `json:"changes"` // changes with the members of a line of watch
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

// Refuse reports that the event could not be delivered. It is delivered again later. After
// [millrace.ErrTooLarge], it is delivered again at once, in smaller events.
// [millrace.ErrNotFound] means that the receiver no longer exists: no event follows, but sites
// are still pulled.
func (e *Event) Refuse(err error) { e.refused = err }

const (
	listenAgain = 24 * time.Hour // delay after a site was found to have no event stream
)

// watch is the state of one call of [Agent.Watch].
type watch struct {
	a     *Agent
	o     WatchOptions
	rules schedule.Rules
	now   func() time.Time

	deliveries *deliveries
	slots      chan struct{}
	mu         sync.Mutex
	hosts      map[string]chan struct{} // semaphore of each host; full while a site of it is pulled
}

func (a *Agent) newWatch(o *WatchOptions) *watch {
	w := &watch{a: a, now: time.Now, slots: make(chan struct{}, a.o.Parallel), hosts: make(map[string]chan struct{})}
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
	w.deliveries = newDeliveries(w)
	return w
}

// Watch keeps mirrors of sites current until ctx ends, and yields their changes. It pulls each
// site when it is due, or when the site or a hub notifies of a change. Nil options are the
// zero value.
//
// An event is delivered when the loop body has ended without a call of [Event.Refuse]. After a
// crash, an undelivered event is yielded again. An error ends the sequence. An error of a pull
// is only logged, and the pull is retried.
func (a *Agent) Watch(ctx context.Context, urls []string, o *WatchOptions) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		w := a.newWatch(o)
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		var sites []*watchedSite
		for _, u := range urls {
			s, err := w.open(ctx, u)
			if err != nil {
				yield(nil, err)
				return
			}
			if !slices.ContainsFunc(sites, func(t *watchedSite) bool { return t.folder == s.folder }) {
				sites = append(sites, s)
			}
		}
		a.o.Logger.Info("watching", "sites", len(sites))
		var tasks sync.WaitGroup
		for _, s := range sites {
			tasks.Go(func() { w.watch(ctx, s) })
		}
		tasks.Go(func() { w.compact(ctx, sites) })
		err := w.deliveries.run(ctx, func(e *Event) bool { return yield(e, nil) })
		stop()
		tasks.Wait()
		if err != nil {
			yield(nil, err)
		}
	}
}

// turn waits until a site may be pulled. At most one site of a host is pulled at a time, and
// [Options.Parallel] sites in total. done ends the turn.
func (w *watch) turn(ctx context.Context, root string) (done func(), err error) {
	u, err := url.Parse(root)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	w.mu.Lock()
	host, ok := w.hosts[u.Hostname()]
	if !ok {
		host = make(chan struct{}, 1)
		w.hosts[u.Hostname()] = host
	}
	w.mu.Unlock()
	for _, place := range []chan struct{}{host, w.slots} {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			if place == w.slots {
				<-host
			}
			return nil, ctx.Err()
		}
	}
	return func() { <-w.slots; <-host }, nil
}
