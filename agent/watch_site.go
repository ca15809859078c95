package agent

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/schedule"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// watchedSite is one site that is watched.
type watchedSite struct {
	url    string // URL passed to Watch
	root   string // root URL of its origin
	folder string // folder of the URL
	stored state.JSON[watchRecord]
	record watchRecord
	hints  chan struct{} // holds one element if the site has changed
	fresh  bool          // no pull has completed; with FromNow, changes are not sent yet
	pushed pushed

	mu       sync.Mutex
	eventID  string    // ID of the last event
	listener *listener // nil = not connected to an event stream
	quiet    time.Time // no attempt to listen before this time
}

// watchRecord is the stored state of the watch of a site.
type watchRecord struct {
	schedule.State
	// Site is the site in the store that the last pull wrote to: that of the origin, or that
	// of the folder; "" = no pull yet.
	Site string `json:"site,omitempty"`
	// Event is the last event that was received before the last pull began.
	Event string `json:"event,omitempty"`
	// Quiet is until when the site is expected to have no event stream.
	Quiet time.Time `json:"quiet,omitzero"`
}

// open resumes the watch of a site from its stored state.
func (w *watch) open(ctx context.Context, u string) (*watchedSite, error) {
	s := &watchedSite{url: u, hints: make(chan struct{}, 1)}
	var err error
	if s.root, err = ingest.Root(u); err != nil {
		return nil, err
	}
	if s.folder, err = ingest.Folder(u); err != nil {
		return nil, err
	}
	s.stored = state.JSON[watchRecord]{State: w.a.store.State(), Namespace: s.folder, Key: "watch"}
	if s.record, err = s.stored.Load(ctx); err != nil {
		return nil, err
	}
	s.record.State, s.eventID, s.quiet = w.rules.Resume(s.record.State), s.record.Event, s.record.Quiet
	costs, err := w.a.store.Costs().List(ctx)
	if err != nil {
		return nil, err
	}
	s.fresh = !slices.ContainsFunc(costs, func(a store.SiteCost) bool {
		return (a.Site == s.root || a.Site == s.folder) && a.Pulls > a.Failed
	})
	if s.suppressed(w) {
		return s, nil
	}
	known, err := ingest.SiteNames(ctx, w.a.store)
	if err != nil {
		return nil, err
	}
	for _, name := range known {
		if name != s.root && name != s.folder {
			continue
		}
		if err := w.deliveries.skip(ctx, name); err != nil {
			return nil, err
		}
		w.deliveries.wake(name)
	}
	return s, nil
}

// suppressed reports whether changes of the site are not sent yet. With FromNow, the pages of
// the first pull are not sent as changes.
func (s *watchedSite) suppressed(w *watch) bool { return s.fresh && w.o.FromNow }

// keep stores the record.
func (s *watchedSite) keep(ctx context.Context) error { return s.stored.Save(ctx, s.record) }

// watch pulls a site whenever it is due, until the context ends.
func (w *watch) watch(ctx context.Context, s *watchedSite) {
	defer s.pushed.tasks.Wait()
	defer s.disconnect()
	if s.record.Site != "" && s.record.Failures == 0 {
		w.listen(ctx, s)
		w.subscribe(ctx, s)
	}
	for {
		hinted, err := s.wait(ctx, w.now)
		if err != nil {
			return
		}
		done, err := w.turn(ctx, s.root)
		if err != nil {
			return
		}
		w.pull(ctx, s, hinted)
		done()
	}
}

// wait waits until the next pull is due. hinted reports whether a hint triggered the pull.
func (s *watchedSite) wait(ctx context.Context, now func() time.Time) (hinted bool, err error) {
	due := time.NewTimer(s.record.Due(now()))
	defer due.Stop()
	select {
	case <-due.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-s.hints:
	}
	due.Reset(s.record.Hint(now()))
	select {
	case <-due.C:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// pull pulls a site once, and schedules its next pull.
func (w *watch) pull(ctx context.Context, s *watchedSite, hinted bool) {
	select { // this pull covers a pending hint
	case <-s.hints:
	default:
	}
	eventID := s.lastEvent()
	began := w.now()
	release := func() {}
	if !s.suppressed(w) {
		release = w.deliveries.follow(s.root, s.folder)
	}
	r := w.a.pull(ctx, s.url)
	err := r.Err
	release()
	if s.fresh = s.fresh && err != nil; !s.suppressed(w) {
		w.deliveries.wake(r.Site)
	}
	if err != nil && ctx.Err() != nil {
		return // the pull is still due
	}
	l := schedule.Scan{
		Ended: w.now(), Hinted: hinted, Failed: err != nil, Refused: errors.Is(err, millrace.ErrForbidden),
		Changed: r.Added+r.Updated+r.Deleted > 0, Unconfirmed: r.UnconfirmedDeletions > 0 || r.Quota != "",
	}
	l.Took = max(0, l.Ended.Sub(began))
	l.NotBefore, l.Gap = asked(r, err, l.Ended), w.gap(ctx, s, r)
	again := s.record.Failures > 0
	s.record.State = w.rules.After(s.record.State, l)
	log := w.a.o.Logger.With("site", r.Site, "next_pull", s.record.Due(l.Ended).Round(time.Second))
	switch {
	case err != nil:
		log.Warn("pull failed", "err", err, "failures", s.record.Failures)
		if l.Refused {
			s.disconnect()
		}
	case l.Changed || again:
		log.Info("pulled", "protocol", r.Via, "added", r.Added, "updated", r.Updated, "deleted", r.Deleted)
		ingest.LogSkips(w.a.o.Logger.With("site", r.Site), ingest.GroupSkips(r.Skipped))
	default:
		log.Debug("pulled", "protocol", r.Via, "unchanged", r.Unchanged)
	}
	if err == nil {
		s.record.Site, s.record.Event = r.Site, eventID
		w.listen(ctx, s)
		w.subscribe(ctx, s)
	}
	s.mu.Lock()
	s.record.Quiet = s.quiet
	s.mu.Unlock()
	if err := s.keep(context.WithoutCancel(ctx)); err != nil {
		w.a.o.Logger.Error("could not store the schedule of a site", "site", s.folder, "err", err)
	}
}

// asked returns the earliest time of the next pull that the site allows. If the site states
// none, the time is zero.
func asked(r *Report, err error, now time.Time) time.Time {
	var at time.Time
	if r.GoOn != nil {
		at = *r.GoOn
	}
	wait := fetch.RetryAfter(err)
	if wait > 0 && now.Add(wait).After(at) {
		at = now.Add(wait)
	}
	return at
}

// gap returns the minimum time between two pulls under the rate limits of a site.
func (w *watch) gap(ctx context.Context, s *watchedSite, r *Report) time.Duration {
	if w.a.o.IgnorePolicy {
		return 0
	}
	gap := time.Duration(0)
	if r.Policy != nil && r.Policy.PerSecond > 0 {
		gap = time.Duration(min(float64(time.Second)/r.Policy.PerSecond, float64(maxGap)))
	}
	if r.Policy != nil && r.Policy.PerDay > 0 {
		// All pulls of a day share the daily quota.
		gap = max(gap, time.Duration(min(1, float64(r.Requests)/float64(r.Policy.PerDay))*float64(24*time.Hour)))
	}
	if u, err := url.Parse(s.root); err == nil && r.Error == "" {
		// The pull has fetched robots.txt or has used a cached copy.
		if robots, err := w.a.siteClient(nil).Robots(ctx, u); err == nil {
			gap = max(gap, min(robots.CrawlDelay(), maxGap))
		}
	}
	return gap
}

// listener is connected to the event stream of a site.
type listener struct {
	stop   context.CancelFunc
	ended  chan struct{}
	client *fetch.Client
	name   string // name of the protocol
	booked store.Traffic
}

// listen connects to the event stream of a site, if the site is readable and has one.
func (w *watch) listen(ctx context.Context, s *watchedSite) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.book(ctx, w, s.root)
	}
	if w.o.NoListen || ctx.Err() != nil || s.listener != nil || w.now().Before(s.quiet) && w.now().Add(listenAgain).After(s.quiet) { // ignores times too far in the future: the clock may have been wrong
		return
	}
	for _, proto := range w.a.protocols() {
		if proto.Notify == nil {
			continue
		}
		// The client has its own queues and no MaxBytes, because its request stays open.
		client := fetch.New(w.a.clientOptions(w.a.robots()))
		o := &protocol.ReaderOptions{Key: w.a.o.Key, Note: func(n protocol.Note) {
			w.a.o.Logger.Debug("violation", "rule", n.Rule, "url", n.URL, "text", n.Text)
		}}
		inner, stop := context.WithCancel(ctx)
		e := &listener{stop: stop, ended: make(chan struct{}), client: client, name: proto.Name}
		s.listener = e
		go func() {
			defer close(e.ended)
			defer client.CloseIdleConnections()
			err := proto.Notify(inner, client.HTTP(), s.root, o, s.lastEvent(), s.hint)
			if inner.Err() != nil {
				return
			}
			w.a.o.Logger.Debug("event stream ended", "site", s.root, "err", err)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.listener, s.quiet = nil, w.now().Add(listenAgain)
			e.book(ctx, w, s.root)
		}()
		return
	}
}

// book adds the costs of listening to the store.
func (e *listener) book(ctx context.Context, w *watch, site string) {
	stats := e.client.Stats()
	total := store.Traffic{Requests: stats.Requests, Received: stats.Received()}
	more := total
	more.Sub(e.booked)
	if more == (store.Traffic{}) {
		return
	}
	if e.booked = total; ctx.Err() == nil {
		if err := w.a.store.Costs().Add(ctx, site, e.name, more); err != nil {
			w.a.o.Logger.Warn("could not save event stream statistics", "err", err)
		}
	}
}

// disconnect closes the event stream.
func (s *watchedSite) disconnect() {
	s.mu.Lock()
	e := s.listener
	s.listener = nil
	s.mu.Unlock()
	if e != nil {
		e.stop()
		<-e.ended
	}
}

// hint handles an event that reports a change of the site.
func (s *watchedSite) hint(eventID string) {
	s.mu.Lock()
	s.eventID = eventID
	s.mu.Unlock()
	s.nudge()
}

// lastEvent returns the ID of the last event.
func (s *watchedSite) lastEvent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.eventID
}

// compact compacts the stored sites once an hour.
func (w *watch) compact(ctx context.Context, sites []*watchedSite) {
	tick := time.NewTicker(ingest.CompactEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		known, err := ingest.SiteNames(ctx, w.a.store)
		for _, name := range known {
			if !slices.ContainsFunc(sites, func(s *watchedSite) bool { return name == s.root || name == s.folder }) {
				continue
			}
			var site store.Site
			if site, err = w.a.store.Site(ctx, name, name); err == nil {
				err = ingest.Compact(ctx, w.a.store, name, site)
			}
			if err != nil {
				break
			}
		}
		if err != nil && ctx.Err() == nil {
			w.a.o.Logger.Error("compact store failed", "err", err)
		}
	}
}
