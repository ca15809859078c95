package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/internal/state"
)

// NewSubscriber returns a subscriber to the hubs of sites. callback is the public URL of the
// subscriber's handler, to which hubs send their requests.
func (a *Agent) NewSubscriber(callback string) (*Subscriber, error) {
	return push.NewSubscriber(callback, &push.SubscriberOptions{Logger: a.o.Logger})
}

// hubState is the state of the subscription to a site.
type hubState struct {
	tasks   sync.WaitGroup
	mu      sync.Mutex
	running bool
	quiet   time.Time // no search for a hub until this time
}

// subscribe starts a goroutine that finds the hub of a site and keeps the subscription to it active.
// It does nothing if the goroutine is running, or ended less than listenAgain ago.
func (w *watch) subscribe(ctx context.Context, s *watchedSite) {
	s.pushed.mu.Lock()
	defer s.pushed.mu.Unlock()
	if w.o.Subscriber == nil || ctx.Err() != nil || s.pushed.running || w.isQuiet(s.pushed.quiet) {
		return
	}
	s.pushed.running = true
	s.pushed.tasks.Go(func() {
		err := w.keepSubscribed(ctx, s)
		if ctx.Err() != nil {
			return
		}
		level := w.a.o.Logger.Warn
		if errors.Is(err, millrace.ErrNotFound) {
			level = w.a.o.Logger.Debug // most sites have no hub
		}
		level("not subscribed to a hub", "site", s.folder, "reason", err)
		s.pushed.mu.Lock()
		s.pushed.running, s.pushed.quiet = false, w.now().Add(listenAgain)
		s.pushed.mu.Unlock()
		w.release(ctx, s)
	})
}

// keepSubscribed keeps the subscription to a site active, and stores it.
func (w *watch) keepSubscribed(ctx context.Context, s *watchedSite) error {
	stored := state.JSON[push.Subscription]{State: w.a.store.State(), Namespace: s.folder, Key: "watch/subscription"}
	saved, err := stored.Load(ctx)
	if err != nil {
		return err
	}
	client := fetch.New(w.apart(w.a.clientOptions(w.a.robots())))
	defer client.CloseIdleConnections()
	o := w.a.clientOptions(nil) // robots.txt does not apply: requests to a hub are not crawling
	o.Sign, o.Delay = nil, -1
	hub := fetch.New(w.apart(o))
	defer hub.CloseIdleConnections()
	return push.Keep(ctx, w.o.Subscriber, client.HTTP(), hub.HTTP(), s.folder, saved, func(now push.Subscription) {
		if err := stored.Save(context.WithoutCancel(ctx), now); err != nil {
			w.a.o.Logger.Error("could not store the subscription", "site", s.folder, "err", err)
		}
	}, s.hint)
}
