package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/internal/state"
)

// pushed is the subscription to a site.
type pushed struct {
	tasks   sync.WaitGroup
	mu      sync.Mutex
	running bool
	quiet   time.Time // until then nobody looks for a hub
}

// subscribe sees to it that a hub is subscribed to that tells when a site that can
// be read has changed, if it has one.
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
		level("no hub tells when the site changes", "site", s.folder, "reason", err)
		s.pushed.mu.Lock()
		defer s.pushed.mu.Unlock()
		s.pushed.running, s.pushed.quiet = false, w.now().Add(listenAgain)
	})
}

// keepSubscribed keeps a subscription, which the store remembers.
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
			w.a.o.Logger.Error("the subscription is not remembered", "site", s.folder, "error", err)
		}
	}, s.nudge)
}

// nudge says that the site has changed, by somebody who counts no events.
func (s *watchedSite) nudge() {
	select {
	case s.hints <- struct{}{}:
	default: // one waits already
	}
}
