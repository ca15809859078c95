package push

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/store"
)

// Pauses between notifications.
const (
	hubGap    = 5 * time.Second  // minimum time between two pings of a hub
	engineGap = 30 * time.Second // minimum time between two submissions
	firstWait = time.Second      // after a failure, doubled after each further failure
	maxWait   = time.Hour
	refused   = 10 * time.Minute // minimum after a permanent error
	tooOften  = time.Minute      // minimum after a 429 without a Retry-After
)

// Pusher notifies hubs and a search engine of each change of a site, at least once.
type Pusher struct {
	// Site is the published site. Its Head returns the view that receivers see after a
	// notification.
	Site outbox.Site
	// State stores the position of each receiver. Name is the namespace in State.
	State store.State
	Name  string
	// Leases ensure that only one process pushes. If nil, no other process may use the store.
	Leases store.Leases
	// Moved returns a channel that closes when Head changes.
	Moved func() <-chan struct{}
	// Topics returns the URLs of the documents that announce changes.
	Topics func() []string
	// Client sends the notifications. It must ignore robots.txt.
	Client   *http.Client
	Hubs     []string  // URLs of the hubs; see [CheckHub]
	IndexNow *IndexNow // search engine to notify, or nil
	Logger   *slog.Logger
}

// receiver is a recipient of notifications.
type receiver struct {
	url   string
	name  string // name in log messages
	gap   time.Duration
	flush func(ctx context.Context) (sent bool, err error) // sends pending notifications
}

// Run sends notifications until the context ends. Call it after the first edition
// is published.
func (p *Pusher) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, u := range p.Hubs {
		h := &hub{pusher: p, url: u}
		all.Go(func() {
			p.alone(ctx, u, func(ctx context.Context) { p.follow(ctx, receiver{u, "hub " + fetch.HostOf(u), hubGap, h.flush}) })
		})
	}
	if p.IndexNow != nil {
		u := p.IndexNow.url
		all.Go(func() {
			p.alone(ctx, u, func(ctx context.Context) {
				e := &engine{pusher: p, IndexNow: p.IndexNow}
				p.follow(ctx, receiver{u, fetch.HostOf(u), engineGap, e.flush})
			})
		})
	}
	all.Wait()
}

// alone calls f while it holds the lease of a receiver.
func (p *Pusher) alone(ctx context.Context, url string, f func(ctx context.Context)) {
	lease.Keep(ctx, p.Leases, "push "+p.Name+" to "+url, p.Logger, f)
}

// follow notifies one receiver. It sends the first change immediately, and later changes
// together after a pause.
func (p *Pusher) follow(ctx context.Context, r receiver) {
	fails := 0
	var last time.Time // time of the last notification
	for {
		moved := p.Moved()
		began := time.Now()
		sent, err := r.flush(ctx)
		if sent {
			last = began
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if fails > 0 {
				p.Logger.InfoContext(ctx, "push recovered", "receiver", r.name, "attempts", fails+1)
			}
			fails = 0
			select {
			case <-ctx.Done():
				return
			case <-moved:
			}
			if fetch.Sleep(ctx, r.gap-time.Since(last)) != nil {
				return
			}
		default:
			wait := p.wait(err, fails)
			fails++
			p.Logger.WarnContext(ctx, "push failed; retrying", "receiver", r.name, "err", err, "retry_in", wait.Round(time.Millisecond))
			if fetch.Sleep(ctx, wait) != nil {
				return
			}
		}
	}
}

// wait returns the pause after the error err. fails is the number of failures directly before it.
func (p *Pusher) wait(err error, fails int) time.Duration {
	wait := fetch.Backoff(err, fails, firstWait, maxWait)
	if status, ok := errors.AsType[*fetch.StatusError](err); ok {
		switch {
		case status.Code == http.StatusTooManyRequests:
			if status.RetryAfter == 0 {
				wait = max(wait, tooOften)
			}
		case status.Code/100 == 4 && status.Code != http.StatusRequestTimeout && status.Code != http.StatusTooEarly:
			wait = max(wait, refused)
		}
	}
	return wait
}
