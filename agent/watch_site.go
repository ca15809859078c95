package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/schedule"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// maxFollowed is the maximum number of sites for which one program follows event streams and hubs,
// or looks for them.
const maxFollowed = 256

// unfollowAfter is the maximum time for which a removed site is still listened to.
const unfollowAfter = time.Minute

// watchedSite is a site that may notify of changes.
type watchedSite struct {
	root   string          // root URL of its origin
	folder string          // URL of the site in the fleet
	hint   func()          // makes the site due
	ctx    context.Context // ends when the site is removed
	stop   context.CancelFunc
	pushed hubState

	mu       sync.Mutex
	eventID  string    // ID of the last event
	listener *listener // nil = not connected to an event stream
	quiet    time.Time // no attempt to listen until this time
}

// watchRecord is the state of a site in the fleet.
type watchRecord struct {
	schedule.State
	// Event is the ID of the last event that was received before the last successful pull began.
	Event string `json:"event,omitempty"`
	// Compacted is the time of the last compaction of the site.
	Compacted time.Time `json:"compacted,omitzero"`
}

// quiet contains the times until which a site is assumed to have no event stream and no hub.
type quiet struct {
	Stream time.Time `json:"stream,omitzero"`
	Hub    time.Time `json:"hub,omitzero"`
}

func (w *watch) storedQuiet(site string) state.JSON[quiet] {
	return state.JSON[quiet]{State: w.a.store.State(), Namespace: site, Key: "watch/quiet"}
}

// isQuiet reports whether a time is in the future, but by less than listenAgain: a later time was
// stored under a wrong clock.
func (w *watch) isQuiet(until time.Time) bool {
	now := w.now()
	return now.Before(until) && now.Add(listenAgain).After(until)
}

// decodeRecord returns a stored record. An unreadable record, for example of another version,
// counts as absent.
func decodeRecord(state []byte) (r watchRecord) {
	if len(state) > 0 && json.Unmarshal(state, &r) != nil {
		return watchRecord{}
	}
	return r
}

// resume prepares a site when Watch begins. It delivers pending changes, and listens for changes of
// a readable site.
func (w *watch) resume(ctx context.Context, tasks *sync.WaitGroup, s store.FleetSite) error {
	t := &turn{Turn: store.Turn{Site: s}, record: decodeRecord(s.State)}
	fresh, err := neverPulled(ctx, w.a.store, s.URL)
	if err != nil || fresh && w.o.FromNow {
		return err
	}
	root, err := ingest.Root(s.URL)
	if err != nil {
		return err
	}
	for _, name := range []string{root, s.URL} {
		if err := w.deliveries.skip(ctx, w.delivery(s, name)); err != nil {
			return err
		}
		w.deliveries.wake(w.delivery(s, name))
	}
	if s.Name != "" && s.Error == "" {
		w.follow(ctx, tasks, t)
	}
	return nil
}

// follow listens to the event stream of a site and subscribes to its hub, if the site has them.
// One site of each origin listens. follow does nothing for a new site if maxFollowed are followed.
func (w *watch) follow(ctx context.Context, tasks *sync.WaitGroup, t *turn) {
	url := t.Site.URL
	w.mu.Lock()
	s, full := w.sites[url], len(w.sites) >= maxFollowed
	w.mu.Unlock()
	var q quiet
	if s == nil {
		if full || w.o.NoListen && w.o.Subscriber == nil {
			return
		}
		var err error
		if q, err = w.storedQuiet(url).Load(ctx); err != nil && ctx.Err() == nil {
			w.a.o.Logger.Warn("could not read whether a site has an event stream", "site", url, "err", err)
		}
		if (w.o.NoListen || w.isQuiet(q.Stream)) && (w.o.Subscriber == nil || w.isQuiet(q.Hub)) {
			return
		}
	}
	w.mu.Lock()
	if s = w.sites[url]; s == nil {
		root, err := ingest.Root(url)
		if err != nil {
			panic("agent: the fleet has a site without a root: " + err.Error())
		}
		s = &watchedSite{root: root, folder: url, eventID: t.record.Event, quiet: q.Stream}
		s.pushed.quiet = q.Hub
		s.ctx, s.stop = context.WithCancel(ctx)
		s.hint = func() { w.hint(ctx, url) }
		w.sites[url] = s
		tasks.Go(func() {
			<-s.ctx.Done()
			s.disconnect()
			s.pushed.tasks.Wait()
		})
	}
	if w.listening[s.root] == nil {
		w.listening[s.root] = s
	}
	listens := w.listening[s.root] == s
	w.mu.Unlock()
	w.subscribe(s.ctx, s)
	if listens {
		w.listen(s.ctx, s, t.result.Delay)
	}
}

// release stops following a site that has neither an event stream nor a hub, unless another site of
// its origin listens for it. It stores when to look again.
func (w *watch) release(ctx context.Context, s *watchedSite) {
	s.mu.Lock()
	q, listens := quiet{Stream: s.quiet}, s.listener != nil
	s.mu.Unlock()
	s.pushed.mu.Lock()
	q.Hub = s.pushed.quiet
	listens = listens || s.pushed.running
	s.pushed.mu.Unlock()
	w.mu.Lock()
	other := w.listening[s.root]
	keep := listens || other != nil && other != s || w.sites[s.folder] != s
	w.mu.Unlock()
	if keep {
		return
	}
	if err := w.storedQuiet(s.folder).Save(ctx, q); err != nil && ctx.Err() == nil {
		w.a.o.Logger.Warn("could not store that a site has no event stream", "site", s.folder, "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sites[s.folder] != s {
		return // the site was removed
	}
	s.stop()
	delete(w.sites, s.folder)
	if w.listening[s.root] == s {
		delete(w.listening, s.root)
	}
}

// hint makes sites due.
func (w *watch) hint(ctx context.Context, urls ...string) {
	for _, url := range urls {
		if err := w.fleet.Hint(ctx, url); err != nil && ctx.Err() == nil {
			w.a.o.Logger.Warn("could not store the notification of a change", "site", url, "err", err)
		}
	}
	w.wake()
}

// hintAll makes all followed sites of an origin due.
func (w *watch) hintAll(ctx context.Context, root string) {
	var urls []string
	w.mu.Lock()
	for url, s := range w.sites {
		if s.root == root {
			urls = append(urls, url)
		}
	}
	w.mu.Unlock()
	w.hint(ctx, urls...)
}

// unfollow ends the event streams and the subscriptions of removed sites.
func (w *watch) unfollow(ctx context.Context) error {
	w.mu.Lock()
	followed := slices.Collect(maps.Keys(w.sites))
	w.mu.Unlock()
	if len(followed) == 0 {
		return nil
	}
	listed := make(map[string]bool, len(followed))
	for s, err := range w.fleet.Sites(ctx, store.FleetQuery{Sites: followed}) {
		if err != nil {
			return err
		}
		listed[s.URL] = !s.Removing
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, url := range followed {
		if s := w.sites[url]; !listed[url] {
			s.stop()
			delete(w.sites, url)
			if w.listening[s.root] == s {
				delete(w.listening, s.root) // the next turn of another site of the origin listens
			}
		}
	}
	return nil
}

// listener is a connection to the event stream of a site.
type listener struct {
	stop   context.CancelFunc
	ended  chan struct{}
	client *fetch.Client
	name   string        // name of the protocol
	saved  store.Traffic // costs that were added to the store
}

// listen connects to the event stream of a site after a delay, if the site has one. If listen is
// already connected, it saves the costs so far.
func (w *watch) listen(ctx context.Context, s *watchedSite, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.save(ctx, w, s.root)
	}
	if w.o.NoListen || ctx.Err() != nil || s.listener != nil || w.isQuiet(s.quiet) {
		return
	}
	for _, proto := range w.a.protocols() {
		if proto.Notify == nil {
			continue
		}
		// The client has its own queues and no MaxBytes, because its request stays open.
		client := fetch.New(w.apart(w.a.clientOptions(w.a.robots())))
		o := &protocol.ReaderOptions{Key: w.a.o.Key, Note: func(n protocol.Note) {
			w.a.o.Logger.Debug("violation", "rule", n.Rule, "url", n.URL, "text", n.Text)
		}}
		inner, stop := context.WithCancel(ctx)
		e := &listener{stop: stop, ended: make(chan struct{}), client: client, name: proto.Name}
		s.listener = e
		go func() {
			defer close(e.ended)
			defer client.CloseIdleConnections()
			if fetch.Sleep(inner, delay) != nil {
				return
			}
			err := proto.Notify(inner, client.HTTP(), s.root, o, s.lastEvent(), func(eventID string) {
				s.changed(eventID)
				w.hintAll(inner, s.root)
			})
			if inner.Err() != nil {
				return
			}
			w.a.o.Logger.Debug("event stream ended", "site", s.root, "err", err)
			s.mu.Lock()
			s.listener, s.quiet = nil, w.now().Add(listenAgain)
			e.save(ctx, w, s.root)
			s.mu.Unlock()
			w.release(ctx, s)
		}()
		return
	}
}

// save records in the store the costs of the event stream since the last save.
func (e *listener) save(ctx context.Context, w *watch, site string) {
	stats := e.client.Stats()
	total := store.Traffic{Requests: stats.Requests, Received: stats.Received()}
	more := total
	more.Sub(e.saved)
	if more == (store.Traffic{}) {
		return
	}
	if w.budget != nil {
		w.budget.spend(more.Received)
	}
	if e.saved = total; ctx.Err() == nil {
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

// changed records the ID of an event.
func (s *watchedSite) changed(eventID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventID = eventID
}

// lastEvent returns the ID of the last event.
func (s *watchedSite) lastEvent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.eventID
}
