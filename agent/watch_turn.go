package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/schedule"
	"github.com/millrace/millrace/store"
)

// turn is the pull of one site of a fleet, under the lease of its group.
type turn struct {
	store.Turn
	record watchRecord
	result store.TurnResult        // result that [store.Site.Ending] records
	lost   context.CancelCauseFunc // ends the turn
	timer  *time.Timer             // calls lost when the lease expires
	addrs  []netip.Addr            // addresses of the host

	mu     sync.Mutex
	until  time.Time // end of the lease by this program's clock
	visits []visit
	ended  bool // the turn accepts no more visits
}

// errLost is the cause with which a turn ends that has lost its lease.
var errLost = millrace.Coded("lease-lost", fmt.Errorf("%w: the lease of the site's group is lost", millrace.ErrConflict))

// extend records that the lease is valid for turnTime from begun.
func (t *turn) extend(begun time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = begun.Add(turnTime)
	t.timer.Reset(time.Until(t.until))
}

// leases returns all leases of the turn.
func (t *turn) leases() []store.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []store.Lease{t.Lease}
	for _, v := range t.visits {
		if !v.left {
			all = append(all, v.Lease)
		}
	}
	return all
}

// check returns an error if the lease may have expired. So a program that was suspended sends
// nothing after the expiry, even before the timer fires. It also compares the time of day, because
// the monotonic clock stands still while the machine sleeps.
func (t *turn) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); !now.Before(t.until) || !now.Round(0).Before(t.until.Round(0)) {
		return errLost
	}
	return nil
}

// renew renews the leases of all turns until ctx ends.
func (w *watch) renew(ctx context.Context) {
	tick := time.NewTicker(turnTime / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var leases []store.Lease
		turns := make(map[string]*turn)
		w.mu.Lock()
		for _, t := range w.turns {
			for _, l := range t.leases() {
				leases = append(leases, l)
				turns[l.Name] = t
			}
		}
		w.mu.Unlock()
		if len(leases) == 0 {
			continue
		}
		begun := time.Now()
		limited, cancel := context.WithTimeout(ctx, turnTime/4)
		held, err := w.fleet.Renew(limited, turnTime, leases...)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				w.a.o.Logger.Warn("could not renew leases", "err", err)
			}
			continue
		}
		valid := make(map[string]uint64, len(held))
		for _, l := range held {
			valid[l.Name] = l.Fence
		}
		for _, l := range leases {
			switch t := turns[l.Name]; {
			case valid[l.Name] != l.Fence:
				if slices.Contains(t.leases(), l) { // the lease was not released meanwhile
					t.lost(errLost)
				}
			case l == t.Lease:
				t.extend(begun)
			}
		}
	}
}

// take pulls the site of a turn, and ends the turn. begun is the time at which the lease was
// requested.
func (w *watch) take(ctx context.Context, tasks *sync.WaitGroup, leased store.Turn, begun time.Time) {
	log := w.a.o.Logger.With("site", leased.Site.URL)
	inner, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	t := &turn{Turn: leased, lost: lost, until: begun.Add(turnTime)}
	t.timer = time.AfterFunc(time.Until(t.until), func() { lost(errLost) })
	defer t.timer.Stop()
	if !t.Site.Removing && w.resolves() {
		defer w.end(context.WithoutCancel(ctx), t)
		if err := w.setAddress(inner, t); err != nil {
			if millrace.ErrorCode(err) != "group-busy" && ctx.Err() == nil {
				log.Warn("could not record the address of a host", "err", err)
			}
			return
		}
	}
	w.mu.Lock()
	w.turns[t.Lease.Name] = t
	s := w.sites[t.Site.URL]
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.turns[t.Lease.Name] == t {
			delete(w.turns, t.Lease.Name)
		}
	}()
	t.record = decodeRecord(t.Site.State)
	event := t.record.Event
	if s != nil {
		event = s.lastEvent()
	}
	t.result = store.TurnResult{Due: w.storeNow(ctx).Add(time.Minute), Error: "internal", State: t.Site.State, Delay: t.Delay} // result if the store fails
	if t.Site.Removing {
		if err := w.remove(inner, t); err != nil && ctx.Err() == nil {
			log.Error("could not delete the pages of a removed site; retrying", "err", err)
		}
		w.done(ctx, log, t)
		return
	}
	err := w.pull(inner, t, event)
	switch {
	case ctx.Err() != nil && err != nil: // the pull is still due
		t.result = store.TurnResult{Due: t.Site.Due, Error: t.Site.Error, State: t.Site.State, Delay: t.Delay}
	case errors.Is(context.Cause(inner), errLost):
		log.Warn("turn lost its lease; another worker repeats the pull")
		return
	case err == nil:
		w.follow(ctx, tasks, t)
		t.result.State = t.record.encode()
	case errors.Is(err, millrace.ErrForbidden) && s != nil:
		s.disconnect()
	}
	w.done(ctx, log, t)
}

// done ends a turn. While the store is not available, it retries until the lease has expired, or
// until lastTry after ctx has ended.
func (w *watch) done(ctx context.Context, log *slog.Logger, t *turn) {
	try, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTry, stop) })()
	for {
		err := w.fleet.Done(try, t.Lease, t.Site.URL, t.result)
		if err == nil {
			return
		}
		if errors.Is(err, millrace.ErrConflict) || t.check() != nil || fetch.Sleep(try, time.Second) != nil {
			log.Warn("could not end a turn; another worker repeats the pull", "err", err)
			return
		}
	}
}

// pull pulls the site of a turn, and sets the result of the turn.
func (w *watch) pull(ctx context.Context, t *turn, event string) error {
	fresh, err := w.fresh(ctx, t)
	if err != nil {
		return err
	}
	rules := w.rulesOf(t.Site)
	root, err := ingest.Root(t.Site.URL)
	if err != nil {
		return err
	}
	quiet := w.o.FromNow && fresh // the pages of the first pull are not reported as changes
	release := func() {}
	if !quiet {
		both := []delivery{w.delivery(t.Site, root), w.delivery(t.Site, t.Site.URL)}
		for _, d := range both {
			if err := w.deliveries.skip(ctx, d); err != nil {
				return err
			}
		}
		release = w.deliveries.follow(both)
	}
	// Apply stores this result with each checkpoint, in case this program is killed.
	t.result, _ = t.after(rules, schedule.Scan{Ended: w.storeNow(ctx), Changed: true}, &Report{Site: root}, event)
	start := time.Now()
	r := w.leased(t).pull(ctx, t.Site.URL)
	took := time.Since(start)
	release()
	if r.Err != nil && ctx.Err() != nil {
		return r.Err
	}
	if !quiet || r.Err == nil {
		w.deliveries.wake(w.delivery(t.Site, r.Site))
	}
	l := schedule.Scan{
		Ended: w.storeNow(ctx), Took: took, Hinted: t.Hinted, Failed: r.Err != nil, Refused: errors.Is(r.Err, millrace.ErrForbidden),
		Changed: r.Added+r.Updated+r.Deleted > 0, Unconfirmed: r.UnconfirmedDeletions > 0 || r.Quota != "",
	}
	delay, gap := w.limits(ctx, t, root, r)
	asked := w.a.shared.RetryAfter(t.Site.Host) // Retry-After, also of a response that did not end the pull
	l.NotBefore, l.Gap = nextAllowed(r, max(asked, fetch.RetryAfter(r.Err)), l.Ended), gap
	again := t.record.Failures > 0
	down := l.Failed && errors.Is(r.Err, millrace.ErrUnavailable) && r.Added+r.Updated+r.Unchanged == 0
	if down {
		t.record.Failures = max(t.record.Failures, t.Failed)
	}
	t.result, t.record = t.after(rules, l, r, event)
	if t.result.Delay = max(delay, w.a.o.Delay); l.Failed {
		t.result.Delay = max(t.result.Delay, t.Delay) // the pull may not have read robots.txt
	}
	if down { // the other sites of the host would fail as well
		t.result.Until = t.result.Due
	} else if asked > 0 {
		t.result.Until = l.Ended.Add(asked)
	}
	log := w.a.o.Logger.With("site", r.Site, "next_pull", t.record.Due(l.Ended).Round(time.Second))
	switch {
	case r.Err != nil:
		log.Warn("pull failed", "err", r.Err, "failures", t.record.Failures)
	case l.Changed || again:
		log.Info("pulled", "protocol", r.Via, "added", r.Added, "updated", r.Updated, "deleted", r.Deleted)
		ingest.LogSkips(w.a.o.Logger.With("site", r.Site), ingest.GroupSkips(r.Skipped))
	default:
		log.Debug("pulled", "protocol", r.Via, "unchanged", r.Unchanged)
	}
	if w.budget != nil {
		w.budget.spend(r.BytesReceived)
	}
	if r.Err == nil {
		w.compact(ctx, t, r.Site, l)
	}
	return r.Err
}

// after returns the result of a turn after a scan, and the new record.
func (t *turn) after(rules *schedule.Rules, l schedule.Scan, r *Report, event string) (store.TurnResult, watchRecord) {
	record := t.record
	record.State = rules.After(record.State, l)
	result := store.TurnResult{
		Due: record.Next, Soonest: record.Soonest, OK: !l.Failed, Error: r.Code, Requests: r.Requests, Received: r.BytesReceived, Delay: t.Delay,
	}
	if !l.Failed {
		record.Event, result.Name = event, r.Site
	}
	result.State = record.encode()
	return result, record
}

func (r *watchRecord) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("agent: encode the record of a site: " + err.Error())
	}
	return b
}

// rulesOf returns the schedule rules for a site. Its own limits take precedence over the options.
func (w *watch) rulesOf(s store.FleetSite) *schedule.Rules {
	least, most := cmp.Or(s.Min, w.rules.Min), cmp.Or(s.Max, w.rules.Max)
	if s.Max > 0 {
		least = min(least, most)
	}
	return &schedule.Rules{Min: least, Max: max(least, most)}
}

// storeNow returns the time of the store's clock, or of this program if the store is not
// available.
func (w *watch) storeNow(ctx context.Context) time.Time {
	now, err := w.a.store.Now(ctx)
	if err != nil {
		return w.now()
	}
	return now
}

// fresh reports whether no turn of the site has been successful. With FromNow, it also considers
// pulls by other commands.
func (w *watch) fresh(ctx context.Context, t *turn) (bool, error) {
	if !t.Site.Pulled.IsZero() || !w.o.FromNow {
		return t.Site.Pulled.IsZero(), nil
	}
	return neverPulled(ctx, w.a.store, t.Site.URL)
}

// neverPulled reports whether no pull of a site has been successful, by any command.
func neverPulled(ctx context.Context, st store.Store, site string) (bool, error) {
	root, err := ingest.Root(site)
	if err != nil {
		return false, err
	}
	for _, name := range []string{root, site} {
		costs, err := st.Costs().Of(ctx, name)
		if err != nil {
			return false, err
		}
		for _, c := range costs {
			if c.Pulls > c.Failed {
				return false, nil
			}
		}
	}
	return true, nil
}

// compact compacts the pages of a site, at most once per ingest.CompactEvery, or once a day if the
// pull changed nothing.
func (w *watch) compact(ctx context.Context, t *turn, name string, l schedule.Scan) {
	if since := l.Ended.Sub(t.record.Compacted); since < ingest.CompactEvery || !l.Changed && since < 24*time.Hour {
		return
	}
	site, err := w.a.store.Site(ctx, name, name)
	if err == nil {
		err = ingest.Compact(ctx, w.a.store, name, site, w.retention(t.Site))
	}
	if err != nil && ctx.Err() == nil {
		w.a.o.Logger.Error("could not compact store", "site", name, "err", err)
	}
	t.record.Compacted = l.Ended
}

// retention returns how long the log of a site keeps changes: the longest retention of its labels,
// or ingest.Retention if none has one.
func (w *watch) retention(s store.FleetSite) time.Duration {
	var longest time.Duration
	for _, label := range s.Labels {
		longest = max(longest, w.o.Retention[label])
	}
	return cmp.Or(longest, ingest.Retention)
}

// leased returns an agent for one turn. The agent sends one request at a time. After it loses the
// lease, it sends no request and stores no page.
func (w *watch) leased(t *turn) *Agent {
	a := *w.a
	a.store = turnStore{w.a.store, t}
	if w.named == nil {
		a.o.RequestCounts = nil // all workers count requests in the fleet's store
	}
	a.inTurn = func(o *fetch.Options) {
		o.Concurrency, o.Gap = 1, func(host string) time.Duration { return w.gap(t, host) }
		w.lease(o, t)
	}
	return &a
}

// turnStore is a store whose sites record the end of a turn together with its pages.
type turnStore struct {
	store.Store
	t *turn
}

// Site implements [store.Store].
func (s turnStore) Site(ctx context.Context, name, base string) (store.Site, error) {
	site, err := s.Store.Site(ctx, name, base)
	if err != nil {
		return nil, err
	}
	r := s.t.result
	r.Name = name
	return site.Ending(s.t.Lease, s.t.Site.URL, r), nil
}

// nextAllowed returns the earliest time at which the site allows the next pull. wait is the remaining
// time of the site's Retry-After. The zero time means no restriction.
func nextAllowed(r *Report, wait time.Duration, now time.Time) time.Time {
	var at time.Time
	if r.ContinueAfter != nil {
		at = *r.ContinueAfter
	}
	if wait > 0 && now.Add(wait).After(at) {
		at = now.Add(wait)
	}
	return at
}

// limits returns the minimum time between two requests to a site (delay) and between two pulls
// (gap), under its rate limits.
func (w *watch) limits(ctx context.Context, t *turn, root string, r *Report) (delay, gap time.Duration) {
	u, err := url.Parse(root)
	if err == nil && w.a.o.Delay == 0 && !fetch.IsLoopback(u.Hostname()) {
		delay = fetch.PoliteDelay
	}
	if w.a.o.IgnorePolicy || err != nil {
		return delay, 0
	}
	if r.Policy != nil && r.Policy.PerSecond > 0 {
		gap = time.Duration(min(float64(time.Second)/r.Policy.PerSecond, float64(maxGap)))
	}
	if r.Error == "" {
		// The pull has fetched robots.txt or used a cached copy.
		if robots, err := w.leased(t).siteClient(nil).Robots(ctx, u); err == nil {
			gap = max(gap, min(robots.CrawlDelay(), maxGap))
		}
	}
	delay = max(delay, gap)
	if r.Policy != nil && r.Policy.PerDay > 0 {
		// All pulls of a day share the daily quota.
		gap = max(gap, time.Duration(min(1, float64(r.Requests)/float64(r.Policy.PerDay))*float64(24*time.Hour)))
	}
	return delay, gap
}
