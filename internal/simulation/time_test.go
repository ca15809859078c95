package simulation

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// Work takes time, some processors are slow, and clocks differ and are set. In every fifth run,
// there are no other faults. A saved page must then be visible within freshness, in every
// protocol, at every replica. The other runs check that at their end.

// slowness contains the factors by which the work of a process takes longer than usual.
var slowness = []int{1, 1, 3, 10, 20}

// Durations of work, on a processor that is not slow.
const (
	perCall = time.Millisecond       // of a transaction, a document, or a page of the origin
	perPage = 200 * time.Microsecond // of a site, additionally, for work that grows with it
	// perPublication is the maximum for all the work of one publication.
	perPublication = 100 * time.Millisecond
)

// work takes the time of something with a number of pages.
func (l *process) work(ctx context.Context, pages int) {
	sleep(ctx, l.duration(pages))
}

func (l *process) duration(pages int) time.Duration {
	return time.Duration(l.slow) * (perCall + time.Duration(pages)*perPage)
}

// pace is the maximum time from a commit to its visibility at every replica, if work takes no
// time: the builder checks once a second, or starts publications a second apart, and the other
// replicas follow (edition.FollowTime).
const pace = 3 * time.Second

// settled is the time that leases take to find a holder after a clock has been set: a renewal,
// the wait after a loss, and the wait of the others.
const settled = 7 * time.Second

// freshness is the maximum time from the acknowledgement of a write to its visibility at every
// replica. The publication in progress does not have it. The next one does, and then the other
// replicas load it, or build what they lack.
func (w *world) freshness() time.Duration {
	return pace + 3*perPublication*time.Duration(w.slowest())
}

// slowest returns the largest slowness of a running replica.
func (w *world) slowest() int {
	slowest := 1
	for _, l := range w.alive() {
		slowest = max(slowest, l.slow)
	}
	return slowest
}

// skew is a clock that differs from that of the bubble, which is the correct time.
type skew struct {
	mu sync.Mutex
	by time.Duration
}

// maxSkew is the largest difference of a clock from the correct time. Two clocks differ by at most
// ten minutes, because readers of SCP refuse later dates.
const maxSkew = 5*time.Minute - 10*time.Second

func (s *skew) ahead() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by
}

// now returns the time that the clock shows.
func (s *skew) now() time.Time { return time.Now().Add(s.ahead()) }

func (s *skew) set(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = by
}

// initSkew sets the clocks.
func (w *world) initSkew() {
	rng := w.rand("clocks")
	for range w.replicas + 1 { // the last one is that of the store
		s := &skew{}
		if rng.IntN(3) > 0 {
			s.set(between(rng, -maxSkew, maxSkew))
		}
		w.skews = append(w.skews, s)
	}
}

// clock is the clock of the store.
func (w *world) clock() *skew { return w.skews[w.replicas] }

// setClock sets one clock during the run: in half of the runs by seconds, else by minutes.
func (w *world) setClock() {
	rng := w.rand("time")
	w.sleep(between(rng, 10*time.Second, 25*time.Second))
	if w.settling.Load() || w.ctx.Err() != nil {
		return
	}
	which := rng.IntN(len(w.skews))
	to := w.skews[which].ahead() + between(rng, -3*time.Second, 3*time.Second)
	if rng.IntN(2) == 0 {
		to = between(rng, -maxSkew, maxSkew)
	}
	w.logf("clock %d of %d is set to %v ahead of the correct time", which, len(w.skews), to)
	w.skews[which].set(to)
	w.clockSet.Store(new(time.Now()))
}

// elsewhere is a store as a process sees it whose clock differs. The process then dates its beats
// wrongly, but nothing in this test depends on the dates.
type elsewhere struct {
	store.Store
	clock *skew
}

// Now returns the time of the store less the difference of the process: it compares both.
func (e elsewhere) Now(ctx context.Context) (time.Time, error) {
	now, err := e.Store.Now(ctx)
	return now.Add(-e.clock.ahead()), err
}

// saves is the history of the visible pages of the store.
type saves struct {
	mu    sync.Mutex
	site  store.Site // the publication without simulated faults
	about millrace.Site
	all   map[string][]save // by URL
}

// save is the state of a page after a write.
type save struct {
	page *millrace.Page // nil = invisible
	at   time.Time      // of the acknowledgement
}

// saving is a site that records the pages that a writer has saved.
type saving struct {
	store.Site
	w *world
	l *process
}

// Apply applies a batch, which takes time.
func (s saving) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	s.l.work(ctx, len(batch))
	counts, err := s.Site.Apply(ctx, from, batch)
	if err == nil && s.w.steady {
		s.w.saves.record(s.w, s.Site)
	}
	return counts, err
}

// record compares the store with the history. A nil site is the last one.
func (s *saves) record(w *world, site store.Site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if site != nil {
		s.site = site
	}
	if s.site == nil {
		return
	}
	v, err := s.site.Head(w.ctx)
	if err != nil {
		w.broke("the store of the history: %v", err)
		return
	}
	pages, err := w.visiblePages(&process{name: "history"}, local(v))
	if err != nil {
		w.broke("the store of the history: %v", err)
		return
	}
	s.about = v.Site()
	if s.all == nil {
		s.all = make(map[string][]save)
	}
	now := time.Now()
	for u, p := range pages {
		if all := s.all[u]; len(all) == 0 || revision(all[len(all)-1].page) != revision(p) {
			s.all[u] = append(all, save{p, now})
		}
	}
	for u, all := range s.all {
		if all[len(all)-1].page != nil && pages[u] == nil {
			s.all[u] = append(all, save{nil, now})
		}
	}
}

// revision returns the state that a page names in its title, or 0 for no page. The states of a
// page increase.
func revision(p *millrace.Page) (rev int) {
	if p != nil {
		_, state, _ := strings.Cut(p.Title, "state ")
		_, _ = fmt.Sscan(state, &rev)
	}
	return rev
}

// lag returns the age, at a time, of the oldest save that some pages lack, and a description of
// what they lack. proto is nil for pages as the store has them.
func (s *saves) lag(at time.Time, proto *protocol.Protocol, pages map[string]*millrace.Page) (lag time.Duration, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for u, all := range s.all {
		revs := make([]int, len(all))
		for i, x := range all {
			if x.page != nil && (proto == nil || proto.Carry(s.about, x.page) != nil) {
				revs[i] = revision(x.page)
			}
		}
		shown := revision(pages[u])
		for i := range revs {
			has := shown == 0 && slices.Contains(revs[i:], 0) || shown > 0 && shown >= slices.Max(revs[:i+1]) && (revs[i] > 0 || shown > slices.Max(revs[:i+1]))
			if age := at.Sub(all[i].at); !has && age > lag {
				lag, what = age, fmt.Sprintf("%s has state %d instead of %d, which was saved at %v", u, shown, revs[i], all[i].at)
			}
		}
	}
	return lag, what
}

// checkFresh checks that pages read at a time contain all changes saved long before.
func (w *world) checkFresh(who string, at time.Time, proto *protocol.Protocol, pages map[string]*millrace.Page) {
	if !w.steady || w.settling.Load() || w.ctx.Err() != nil {
		return
	}
	limit := w.freshness()
	ready := w.ready.Load()
	if ready == nil || at.Before(ready.Add(limit)) {
		return // only after the first editions of all replicas
	}
	if set := w.clockSet.Load(); set != nil && at.After(*set) && at.Before(set.Add(limit+settled)) {
		limit += settled
	}
	lag, what := w.saves.lag(at, proto, pages)
	if lag > limit {
		w.saves.record(w, nil) // another write may be in progress
		lag, what = w.saves.lag(at, proto, pages)
	}
	if lag > limit {
		w.fail("%s is not fresh after %v, the limit is %v: %s", who, lag, limit, what)
	}
	w.logMu.Lock()
	defer w.logMu.Unlock()
	w.lags[who] = max(w.lags[who], lag)
}

// watchFreshness checks that the replicas have and send fresh pages.
func (w *world) watchFreshness() {
	type key struct {
		gate  *gate
		proto string
	}
	probes := make(map[key]*probe)
	for turn := 0; !w.settling.Load() && w.ctx.Err() == nil; turn++ {
		w.sleep(250 * time.Millisecond)
		alive := w.alive()
		if w.ready.Load() == nil {
			if len(alive) < w.replicas || slices.ContainsFunc(alive, func(l *process) bool { return l.server.Current() == nil }) {
				continue
			}
			w.ready.Store(new(time.Now()))
		}
		for _, l := range alive {
			ed := l.server.Current()
			if pages, err := scan(w.ctx, local(ed.View)); err == nil {
				w.checkFresh(l.name, time.Now(), nil, pages)
			}
			// One protocol at a time.
			p := w.protocols[turn%len(w.protocols)]
			x := probes[key{l.gate, p.Name}]
			if x == nil {
				x = newProbe(l, p)
				probes[key{l.gate, p.Name}] = x
			}
			x.read(w)
		}
	}
}

// probe is a client of one replica, without a network, which takes no time.
type probe struct {
	l        *process
	p        protocol.Protocol
	src      millrace.Source
	sink     memorySink
	noted    atomic.Bool // see client
	failures int         // in a row
}

func newProbe(l *process, p protocol.Protocol) *probe {
	x := &probe{l: l, p: p}
	x.src = p.NewReader(&http.Client{Transport: direct{l.handler}}, base, &protocol.ReaderOptions{Note: func(protocol.Note) { x.noted.Store(true) }})
	return x
}

// read reads the changes, and checks that the pages are fresh.
func (x *probe) read(w *world) {
	at := time.Now()
	x.noted.Store(false)
	report, err := mirror.Sync(w.ctx, x.p.Name, x.src, &x.sink, &mirror.Options{Concurrency: 1})
	if err != nil { // a list may name a file that was deleted in the meantime
		if x.failures++; x.failures > 2 {
			w.broke("%s at %s: %v", x.p.Name, x.l.name, err)
		}
		return
	}
	x.failures = 0
	if !x.noted.Load() && report.SkippedN+report.Unconfirmed+report.UnconfirmedDeletions == 0 {
		pages, _ := x.sink.pages(w.ctx)
		w.checkFresh(x.p.Name+" at "+x.l.name, at, &x.p, pages)
	}
}

// direct sends requests to a handler.
type direct struct{ handler http.Handler }

// RoundTrip returns the response of the handler.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	a, c := httptest.NewRecorder(), r.Clone(r.Context())
	c.RequestURI, c.Host, c.RemoteAddr = c.URL.RequestURI(), cmp.Or(r.Host, r.URL.Host), "192.0.2.1:1"
	d.handler.ServeHTTP(a, c)
	resp := a.Result()
	resp.Request = r
	return resp, nil
}
