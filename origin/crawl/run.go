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

// run is one run over a site. One goroutine owns it, the one that ranges over
// the changes; workers only visit.
type run struct {
	*Crawl
	yield   func(millrace.Change, error) bool
	stopped bool         // yield said so
	ended   func() error // of the context
	since   cursor
	started time.Time
	root    *url.URL
	robots  *fetch.Robots
	trusted map[string]bool // origins that may have lists of this site
	lists   []list
	newest  int64 // of the times that lists have named
	rules   *ruling
	remade  []uint64 // the keys of pages that were made again, sorted

	queue   queue
	hinted  []task
	urgent  []task // what a page that waits goes by
	rest    rest
	resting []*result // were not sent, because the host rests
	again   []task    // and are to be sent now
	pauses  int
	giveUp  error // the site has stopped answering
	flights map[uint64]*flight
	flying  int // tasks with the workers
	waiting int // results that wait for another one
	jobs    chan task
	results chan *result

	traps    traps
	outages  outages
	mistaken map[uint64]int // canonical addresses that led to something wholly different
	refused  map[string]*refusal
	refusals int // addresses
	losses   map[uint64]loss
	lostMore bool // pages than a cursor holds
	regains  bool // a page that was lost is there again
	right    int  // hints of lists that were
	wrong    int  // and were not

	asked  int    // addresses
	known  int    // addresses that may be pages
	done   int    // of those
	pages  int    // there are, as far as is known
	gone   int    // there were
	row    int    // failures in a row
	cut    bool   // a limit was met
	missed bool   // a page or a list could not be had
	by     limits // in force
	met    limits // of those, that have refused something
	reread bool   // everything is read without conditions
	read   bool   // everything was
	last   error
	feeds  []string
}

// flight is an address that is being asked for, or whose result waits.
type flight struct {
	on      uint64    // the key of the address that it waits for; 0 = none
	waiters []*result // that wait for this one
}

// fatalError ends a run, wherever it comes from.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// errStop means that the caller has stopped ranging over the changes.
var errStop = fatalError{errors.New("stop")}

func isFatal(err error) bool {
	_, ok := errors.AsType[fatalError](err)
	return ok
}

const (
	maxFailures = 20 // pages that cannot be had in a row
	maxHinted   = 10_000
	knownFactor = 4 // addresses that are remembered for each that may be asked for
)

func newRun(c *Crawl, since cursor, yield func(millrace.Change, error) bool) *run {
	if c.knownRefs == nil {
		since = cursor{} // nothing is held that a condition could be about
	}
	r := &run{
		Crawl: c, yield: yield, since: since, started: c.now(), newest: since.Newest, rules: c.ruling,
		flights: map[uint64]*flight{}, mistaken: map[uint64]int{}, refused: map[string]*refusal{},
		traps: traps{base: c.scope.base, groups: map[string]*group{}},
	}
	r.root, _ = url.Parse(c.scope.base) // canonical, so it parses
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

// width is how many addresses are with the workers or on their way.
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
	// First what needs no request: it is right also if the site is down.
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
				r.results <- r.visit(ctx, r.rules, t, &buf) // there is room for all
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
	if err := r.seek(false); err != nil {
		return err
	}
	for done := false; !done; {
		if err := r.dispatch(ctx); err != nil {
			return err
		}
		if r.flying == 0 {
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

// receive waits for one result and takes it.
func (r *run) receive(ctx context.Context) error {
	select {
	case res := <-r.results:
		r.flying--
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
	for r.rested(ctx, err) {
		r.robots, err = fetch.RobotsOf(ctx, r.client, r.root)
	}
	if err != nil {
		return fmt.Errorf("the site cannot be had: %w", err)
	}
	r.limit()
	return nil
}

// allowed reports whether robots.txt lets an address of the site be asked for.
func (r *run) allowed(u string) bool {
	return r.o.IgnoreRobots || r.robots.Allowed(u[len(r.scope.origin):])
}

// dispatch hands the workers as many tasks as they can take.
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

// pick returns the next task: what a waiting page goes by, then what lists say
// is new, then what was found, then the rest.
func (r *run) pick(ctx context.Context) (task, bool, error) {
	if len(r.resting) > 0 || r.giveUp != nil {
		return task{}, false, nil //nolint:nilerr // what is under way decides
	}
	if n := len(r.again); n > 0 && r.flying < r.width() {
		t := r.again[n-1]
		r.again = r.again[:n-1]
		return t, true, nil
	}
	for n := len(r.urgent); n > 0 && r.flying < r.width(); n = len(r.urgent) {
		t := r.urgent[n-1]
		if r.urgent = r.urgent[:n-1]; r.tried(t.url) {
			continue // it was found in the queue as well
		}
		t, err := r.recallOne(ctx, t)
		return t, err == nil, err
	}
	for r.flying+r.waiting < r.width() {
		r.cut = r.cut || r.asked >= r.o.MaxPages || r.o.MaxTime > 0 && r.now().Sub(r.started) >= r.o.MaxTime
		if r.cut {
			return r.pickRest(ctx) // names what stands
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

// start hands a task to the workers.
func (r *run) start(t task) error {
	k := key(t.url)
	e, _ := r.table.get(k)
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
	r.flying++
	r.jobs <- t // never blocks: there are fewer than it has room for
	return nil
}

// disallowed is the error of an address that robots.txt disallows.
func (r *run) disallowed(u string) error {
	line, rule := r.robots.Rule(u[len(r.scope.origin):])
	return &fetch.RobotsError{URL: u, Robots: r.scope.origin + "/robots.txt", Line: line, Rule: rule}
}

// schedule sets when another run is worth it.
func (r *run) schedule() {
	now := r.now()
	next := now.Add(firstLeast)
	if t := time.Unix(int64(r.table.earliest()), 0); t.Before(next) {
		next = t
	}
	if least := now.Add(leastInterval); next.Before(least) {
		next = least
	}
	r.next.Store(next.Unix())
}
