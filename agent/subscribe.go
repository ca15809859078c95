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

// hubTimeout is for one request to a hub.
const hubTimeout = 30 * time.Second

// NewSubscriber returns what subscribes to the hubs of sites. callback is a URL by
// which hubs reach its handler.
func (a *Agent) NewSubscriber(callback string) (*Subscriber, error) {
	o := a.clientOptions(nil) // a hub is there to be asked, which is no crawling
	o.Sign, o.Delay, o.Timeout = nil, -1, hubTimeout
	return push.NewSubscriber(fetch.New(o).HTTP(), callback, &push.SubscriberOptions{Logger: a.o.Logger})
}

// pushed is the subscription to a site.
type pushed struct {
	tasks   sync.WaitGroup
	mu      sync.Mutex
	running bool
	quiet   time.Time // until then there is no search for a hub
}

// subscribe subscribes to the hub of a site that can be read, if it has one.
func (w *watch) subscribe(ctx context.Context, s *watchedSite) {
	s.pushed.mu.Lock()
	defer s.pushed.mu.Unlock()
	if w.o.Subscriber == nil || ctx.Err() != nil || s.pushed.running || w.now().Before(s.pushed.quiet) {
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
			level = w.a.o.Logger.Debug // most sites have none
		}
		level("not subscribed to a hub", "site", s.folder, "reason", err)
		s.pushed.mu.Lock()
		defer s.pushed.mu.Unlock()
		s.pushed.running, s.pushed.quiet = false, w.now().Add(listenAgain)
	})
}

// keepSubscribed keeps a subscription, which is in the store.
func (w *watch) keepSubscribed(ctx context.Context, s *watchedSite) error {
	stored := state.JSON[push.Subscription]{State: w.a.store.State(), Namespace: s.folder, Key: "watch/subscription"}
	held, err := stored.Load(ctx)
	if err != nil {
		return err
	}
	client := w.a.siteClient(nil)
	defer client.CloseIdleConnections()
	return w.o.Subscriber.Keep(ctx, client.HTTP(), s.folder, held, func(now push.Subscription) {
		if err := stored.Save(context.WithoutCancel(ctx), now); err != nil {
			w.a.o.Logger.Error("could not store the subscription", "site", s.folder, "err", err)
		}
	}, s.nudge)
}

// nudge receives a notification of a hub: the site has changed.
func (s *watchedSite) nudge() {
	select {
	case s.hints <- struct{}{}:
	default: // one waits already
	}
}
