package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/millrace/millrace"
)

// step is one thing for the applying goroutine to do, in order.
type step struct {
	change millrace.Change
	skip   *millrace.SkipError
	err    error  // asked: of this page; otherwise the stream's end
	asked  bool   // the source was asked for the page
	same   bool   // the page stands as it is held
	listed string // asked: the version that the source named
	got    string // and the one that the page has
	via    string // the page came by this other protocol
	cause  error  // with via: why
	named  int    // pages named so far
	weight int    // what it has taken of the room
}

// chunk is how many refs are compared with the memory at a time.
const chunk = 256

// reader is the goroutine that reads the source's stream.
type reader struct {
	*run
	ctx     context.Context
	steps   chan step
	jobs    chan job
	flights sync.WaitGroup // pages being asked for
	busy    inFlight
	waiting []millrace.Change // puts without a page, not yet compared
	named   int
}

// ahead is how many steps, most of them with their pages, may wait for the one
// that applies, and aheadBytes what those pages may hold.
const (
	ahead      = 16
	aheadBytes = 4 << 20
)

// job is one page to ask for: its change, and what is held of it.
type job struct {
	change millrace.Change
	have   millrace.Ref
	named  int // pages named when it was found wanting
}

// stream starts the goroutines that read and ask, and returns what they find.
// The channel is closed when all of them are gone.
func (r *run) stream(ctx context.Context) <-chan step {
	rd := &reader{run: r, ctx: ctx, steps: make(chan step, ahead), jobs: make(chan job)}
	rd.busy.init()
	r.room.init()
	var workers sync.WaitGroup
	for range r.o.Concurrency {
		workers.Go(func() {
			for j := range rd.jobs {
				rd.send(rd.ask(j))
				rd.busy.done(j.change.URL)
				rd.flights.Done()
			}
		})
	}
	go func() {
		if err := rd.read(); err != nil {
			rd.flights.Wait()
			rd.send(step{err: err})
		}
		close(rd.jobs)
		workers.Wait()
		close(rd.steps)
	}()
	return rd.steps
}

// send hands a step on. The receiver always drains, so this never blocks for
// ever.
func (rd *reader) send(s step) {
	if s.change.Page != nil {
		s.weight = weighPage(s.change.Page)
		rd.room.take(s.weight)
	}
	rd.steps <- s
}

// read goes through the source's stream.
func (rd *reader) read() error {
	since := rd.state.Cursor
	if rd.fresh {
		since = ""
	}
	for c, err := range rd.src.Changes(rd.ctx, since) {
		if cause := context.Cause(rd.ctx); cause != nil {
			return cause
		}
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
			if !skip.Absent {
				rd.name(skip.URL)
			}
			rd.send(step{skip: skip, named: rd.named})
		case err != nil:
			return errors.Join(err, rd.compare())
		case c.Kind == millrace.Put:
			rd.name(c.URL)
			if c.Page == nil {
				if rd.waiting = append(rd.waiting, c); len(rd.waiting) < chunk {
					continue
				}
				if err := rd.compare(); err != nil {
					return err
				}
				continue
			}
			if err := rd.compare(); err != nil {
				return err
			}
			rd.busy.wait(c.URL)
			rd.send(step{change: c, named: rd.named})
		case c.Kind == millrace.Delete:
			if err := rd.compare(); err != nil {
				return err
			}
			rd.busy.wait(c.URL)
			rd.send(step{change: c})
		case c.Kind == millrace.KindCheckpoint && c.Checkpoint != nil:
			if err := rd.compare(); err != nil {
				return err
			}
			rd.flights.Wait() // a mark stands for everything before it
			rd.send(step{change: c})
		}
	}
	if err := rd.compare(); err != nil {
		return err
	}
	rd.flights.Wait()
	return context.Cause(rd.ctx)
}

// name remembers that the source named a page.
func (rd *reader) name(url string) {
	rd.named++
	if rd.syncState != nil {
		rd.seen.add(url)
	}
}

// compare asks for those of the waiting pages that are not held as they are.
func (rd *reader) compare() error {
	if len(rd.waiting) == 0 {
		return nil
	}
	held := map[string]millrace.Ref{}
	if rd.syncState != nil {
		urls := make([]string, len(rd.waiting))
		for i, c := range rd.waiting {
			urls[i] = c.URL
		}
		if err := collect(held, rd.syncState.KnownRefs(rd.ctx, rd.from, urls...)); err != nil {
			return err
		}
	}
	for _, c := range rd.waiting {
		have, ok := held[c.URL]
		switch {
		case ok && millrace.SameVersion(c.Version, have.Version) && c.Location == have.Location:
			if c.Section == have.Section {
				rd.send(step{same: true, named: rd.named})
			} else { // the page moved to another part of the list
				c.Version = have.Version
				rd.send(step{change: c, named: rd.named})
			}
			continue
		case ok && c.Location == have.Location:
			have.Section = c.Section
		default: // a validator belongs to its location
			have = c.Ref
			have.Version = ""
		}
		if rd.o.Enough != nil {
			if err := rd.o.Enough(); err != nil {
				return err
			}
		}
		rd.busy.wait(c.URL)
		rd.busy.add(c.URL)
		rd.flights.Add(1)
		rd.jobs <- job{c, have, rd.named}
	}
	rd.waiting = rd.waiting[:0]
	return context.Cause(rd.ctx)
}

func collect(into map[string]millrace.Ref, refs iter.Seq2[millrace.Ref, error]) error {
	for ref, err := range refs {
		if err != nil {
			return err
		}
		into[ref.URL] = ref
	}
	return nil
}

// ask asks the source for one page.
func (rd *reader) ask(j job) step {
	s := step{change: j.change, asked: true, named: j.named}
	if err := context.Cause(rd.ctx); err != nil {
		s.err, s.asked = err, false
		return s
	}
	if int(rd.row.Load()) >= rd.o.Failures {
		s.err = fmt.Errorf("not asked for: %w", millrace.ErrUnavailable)
		return s
	}
	p, err := rd.src.Page(rd.ctx, j.have)
	if brokenOff(err) && rd.ctx.Err() == nil {
		p, err = rd.src.Page(rd.ctx, j.have)
	}
	if errors.Is(err, millrace.ErrUnavailable) {
		rd.row.Add(1)
	} else {
		rd.row.Store(0)
	}
	s.listed = j.change.Version
	if err == nil {
		s.change.Page, s.got = p, p.Version
		return s
	}
	if errors.Is(err, millrace.ErrUnmodified) {
		// The list named another version than the page's own: the page's own
		// counts, and is what is held.
		s.change.Version, s.got = j.have.Version, j.have.Version
		return s
	}
	if cause := context.Cause(rd.ctx); cause != nil {
		s.err, s.asked = cause, false
		return s
	}
	if rd.o.Fallback != nil {
		if p, via, ferr := rd.o.Fallback(rd.ctx, j.change.Ref); ferr == nil {
			p.Version, p.Original = "", nil // the source's own form is asked for again
			s.change.Page, s.change.Version, s.via, s.cause = p, "", via, err
			return s
		}
	}
	s.err = err
	return s
}

// brokenOff reports whether an answer has begun to come and did not end. Such an
// error says so by its method; what it is about is asked for once more.
func brokenOff(err error) bool {
	var e interface{ BrokenOff() bool }
	return errors.As(err, &e) && e.BrokenOff()
}

// room bounds the bytes of what waits. One thing always has room, however large
// it is.
type room struct {
	mu   sync.Mutex
	cond *sync.Cond
	used int
}

func (r *room) init() { r.cond, r.used = sync.NewCond(&r.mu), 0 }

func (r *room) take(n int) {
	r.mu.Lock()
	for r.used > 0 && r.used+n > aheadBytes {
		r.cond.Wait()
	}
	r.used += n
	r.mu.Unlock()
}

func (r *room) give(n int) {
	r.mu.Lock()
	r.used -= n
	r.mu.Unlock()
	r.cond.Broadcast()
}

// inFlight knows which pages are being asked for, so that a later change of
// the same page waits for the earlier one.
type inFlight struct {
	mu   sync.Mutex
	cond *sync.Cond
	urls map[string]bool
}

func (f *inFlight) init() { f.cond, f.urls = sync.NewCond(&f.mu), map[string]bool{} }

func (f *inFlight) add(url string) {
	f.mu.Lock()
	f.urls[url] = true
	f.mu.Unlock()
}

func (f *inFlight) done(url string) {
	f.mu.Lock()
	delete(f.urls, url)
	f.mu.Unlock()
	f.cond.Broadcast()
}

func (f *inFlight) wait(url string) {
	f.mu.Lock()
	for f.urls[url] {
		f.cond.Wait()
	}
	f.mu.Unlock()
}
