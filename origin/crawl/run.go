package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// run is one run over a site. Only the goroutine that ranges over the changes uses it. Workers only
// fetch pages and extract them.
type run struct {
	*Crawl
	yield       func(millrace.Change, error) bool
	stopped     bool         // yield returned false
	ended       func() error // function that returns the error of the context
	since       cursor
	started     time.Time
	root        *url.URL
	robots      *fetch.Robots
	trusted     map[string]bool // origins whose lists may be read
	lists       []list
	newest      int64 // newest modification time in the lists, in seconds since 1970
	rules       *extractionRules
	reextracted []uint64 // keys of the pages that were extracted again, sorted

	queue    queue
	hinted   []task
	urgent   []task // addresses that waiting pages depend on
	rest     rest
	resting  []*result // results of requests that were not sent, because the host is paused
	again    []task    // tasks to repeat after the pause
	pauses   int
	giveUp   error // set if the site has stopped responding
	flights  map[uint64]*flight
	inFlight int // number of tasks that the workers have
	waiting  int // number of results that wait for another result
	jobs     chan task
	results  chan *result

	traps          traps
	outages        outages
	wrongCanonical map[uint64]int // number of wrong canonical links, by target
	refused        map[string]*refusal
	refusals       int // number of excluded addresses
	losses         map[uint64]loss
	lostMore       bool // more pages were lost than a cursor can contain
	recovered      bool // a lost page exists again
	right          int  // number of correct hints in lists
	wrong          int  // number of wrong hints in lists

	asked       int    // number of fetched addresses
	known       int    // number of known addresses that may be pages
	done        int    // number of finished addresses
	pages       int    // number of known pages
	gone        int    // number of pages that no longer exist
	consecutive int    // number of consecutive failures
	cut         bool   // a limit was reached
	missed      bool   // a page or a list was unavailable
	by          limits // current limits
	met         limits // limits that have excluded addresses
	reread      bool   // fetch everything without conditions
	read        bool   // everything was fetched without conditions
	last        error
	feeds       []string
}

// flight is an address that is being fetched, or whose result waits.
type flight struct {
	on      uint64    // key of the address for which it waits, or 0
	waiters []*result // results that wait for this address
}

// fatalError ends a run.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// errStop ends a run whose consumer has stopped the stream.
var errStop = fatalError{errors.New("stop")}

func isFatal(err error) bool {
	_, ok := errors.AsType[fatalError](err)
	return ok
}

const (
	maxFailures = 20 // maximum number of consecutive unavailable pages
	maxHinted   = 10_000
	knownFactor = 4 // number of addresses that are stored for each one that MaxPages allows
)

func newRun(c *Crawl, since cursor, yield func(millrace.Change, error) bool) *run {
	if c.knownRefs == nil {
		since = cursor{} // without stored pages, requests cannot be conditional
	}
	r := &run{
		Crawl: c, yield: yield, since: since, started: c.now(), newest: since.Newest, rules: c.ruling,
		flights: map[uint64]*flight{}, wrongCanonical: map[uint64]int{}, refused: map[string]*refusal{},
		traps: traps{base: c.scope.base, groups: map[string]*group{}},
	}
	r.root, _ = url.Parse(c.scope.base) // canonical, so it is valid
	if c.home.Load() == nil {
		c.home.Store(&since.Home)
	}
	r.losses = make(map[uint64]loss, len(since.Gone))
	for _, l := range since.Gone {
		r.losses[key(c.scope.base+l.URL)] = l
	}
	limit := c.width()
	r.jobs, r.results = make(chan task, 2*limit), make(chan *result, 2*limit)
	return r
}

// width is the maximum number of addresses that are waiting for a worker or being fetched.
func (c *Crawl) width() int { return 2 * c.o.Concurrency }

func (r *run) do(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	r.ended = ctx.Err
	var own bytes.Buffer
	r.outages.ask = func(t task) *result { return r.visit(ctx, r.rules, t, &own) }
	var workers sync.WaitGroup
	defer func() {
		cancel()
		close(r.jobs)
		workers.Wait()
		r.rest.stop()
		r.queue.close()
		r.schedule()
	}()
	// recall sends no request, so it succeeds even if the site is down.
	if err := r.recall(ctx); err != nil {
		return err
	}
	if err := r.readRobots(ctx); err != nil {
		return err
	}
	for range r.o.Concurrency {
		workers.Go(func() {
			var buf bytes.Buffer
			for t := range r.jobs {
				r.results <- r.visit(ctx, r.rules, t, &buf) // never blocks, because the channel has room for all results
			}
		})
	}
	if err := r.visitRoot(ctx); err != nil {
		return err
	}
	if err := r.probe(ctx); err != nil {
		return err
	}
	if err := r.readLists(ctx, r.feeds); err != nil {
		return err
	}
	r.withdrawn()
	if err := r.queueLost(false); err != nil {
		return err
	}
	for done := false; !done; {
		if err := r.dispatch(ctx); err != nil {
			return err
		}
		if r.inFlight == 0 {
			switch {
			case len(r.resting) > 0:
				if err := r.resume(ctx); err != nil {
					return err
				}
				continue
			case r.giveUp != nil:
				return r.giveUp
			}
			done = true
			continue
		}
		if err := r.receive(ctx); err != nil {
			return err
		}
	}
	return r.finish()
}

// receive waits for one result and handles it.
func (r *run) receive(ctx context.Context) error {
	select {
	case res := <-r.results:
		r.inFlight--
		if err := ctx.Err(); err != nil {
			return err
		}
		return r.take(res)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *run) readRobots(ctx context.Context) error {
	var err error
	r.robots, err = fetch.RobotsOf(ctx, r.client, r.root)
	for r.shouldRetry(ctx, err) {
		r.robots, err = fetch.RobotsOf(ctx, r.client, r.root)
	}
	if err != nil {
		return fmt.Errorf("fetch robots.txt: %w", err)
	}
	r.limit()
	return nil
}

// allowed reports whether robots.txt allows an address of the site, or is ignored.
func (r *run) allowed(u string) bool {
	return r.o.IgnoreRobots || r.robots.Allowed(u[len(r.scope.origin):])
}

// dispatch sends tasks to the workers until they are busy.
func (r *run) dispatch(ctx context.Context) error {
	for {
		t, ok, err := r.pick(ctx)
		if err != nil || !ok {
			return err
		}
		if err := r.start(t); err != nil {
			return err
		}
	}
}

// pick returns the next task: first, postponed addresses; then addresses on which waiting pages
// depend; then stored pages that lists report as changed; then found addresses; and finally the
// other stored addresses.
func (r *run) pick(ctx context.Context) (task, bool, error) {
	if len(r.resting) > 0 || r.giveUp != nil {
		return task{}, false, nil //nolint:nilerr // the fetches in progress determine what follows
	}
	if n := len(r.again); n > 0 && r.inFlight < r.width() {
		t := r.again[n-1]
		r.again = r.again[:n-1]
		return t, true, nil
	}
	for n := len(r.urgent); n > 0 && r.inFlight < r.width(); n = len(r.urgent) {
		t := r.urgent[n-1]
		if r.urgent = r.urgent[:n-1]; r.tried(t.url) {
			continue // the address was also in the queue
		}
		t, err := r.recallOne(ctx, t)
		return t, err == nil, err
	}
	for r.inFlight+r.waiting < r.width() {
		r.cut = r.cut || r.asked >= r.o.MaxPages || r.o.MaxTime > 0 && r.now().Sub(r.started) >= r.o.MaxTime
		if r.cut {
			return r.pickRest(ctx) // it yields the unchanged pages
		}
		var t task
		var err error
		if n := len(r.hinted); n > 0 {
			t = r.hinted[n-1]
			if r.hinted = r.hinted[:n-1]; r.tried(t.url) {
				continue
			}
			t, err = r.recallOne(ctx, t)
			return t, err == nil, err
		}
		t, ok, err := r.queue.pop()
		if err != nil {
			return t, false, err
		}
		if !ok {
			return r.pickRest(ctx)
		}
		if r.tried(t.url) {
			continue
		}
		if gone, err := r.withdraw(t); gone || err != nil {
			if err != nil {
				return t, false, err
			}
			continue
		}
		return t, true, nil
	}
	return task{}, false, nil
}

func (r *run) tried(u string) bool {
	e, _ := r.table.get(key(u))
	return e.flags&tried != 0
}

// start sends a task to the workers.
func (r *run) start(t task) error {
	k := key(t.url)
	e, _ := r.table.get(k)
	t.hint = int64(e.hint)
	e.flags |= tried
	if e.state == unknown {
		e.state = t.state
	}
	r.table.set(k, e)
	if r.flights[k] == nil {
		r.flights[k] = &flight{}
	}
	if !r.allowed(t.url) {
		if t.state == pending {
			r.met.Robots = r.by.Robots
		}
		return r.take(&result{task: t, outcome: absent, err: r.disallowed(t.url)})
	}
	r.asked++
	r.inFlight++
	r.jobs <- t // never blocks, because the channel has room for all tasks
	return nil
}

// disallowed returns the error for an address that robots.txt disallows.
func (r *run) disallowed(u string) error {
	line, rule := r.robots.Rule(u[len(r.scope.origin):])
	return &fetch.RobotsError{URL: u, Robots: r.scope.origin + "/robots.txt", Line: line, Rule: rule}
}

// schedule sets the time at which the next run is useful.
func (r *run) schedule() {
	now := r.now()
	next := now.Add(minFirstInterval)
	if t := time.Unix(int64(r.table.earliest()), 0); t.Before(next) {
		next = t
	}
	if least := now.Add(minInterval); next.Before(least) {
		next = least
	}
	r.next.Store(next.Unix())
}
