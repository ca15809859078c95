package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/millrace/millrace"
)

// step is one action for the goroutine that applies changes. The steps arrive in the order in which
// they must be applied.
type step struct {
	change    millrace.Change
	skip      *millrace.SkipError
	err       error  // if requested is set, the error of this page; otherwise, the error of the stream
	requested bool   // the page was requested from the source
	same      bool   // the stored page is up to date
	listed    string // if requested is set, the version in the list
	got       string // version of the received page
	via       string // protocol with which Options.Fallback fetched the page
	cause     error  // reason for the use of Options.Fallback
	named     int    // number of pages named so far
	size      int    // number of bytes that the step takes from the memory limit
}

// chunk is the number of refs that are compared with those of the sink at a time.
const chunk = 256

// reader is the goroutine that reads the source's stream.
type reader struct {
	*run
	ctx     context.Context
	steps   chan step
	jobs    chan job
	flights sync.WaitGroup // fetches in progress
	busy    inFlight
	waiting []millrace.Change // changes without a page that have not been compared yet
	named   int
}

// ahead is the maximum number of steps that wait to be applied. aheadBytes is the maximum size of
// their pages in bytes.
const (
	ahead      = 16
	aheadBytes = 4 << 20
)

// job is one page to fetch: its change and the stored ref.
type job struct {
	change millrace.Change
	have   millrace.Ref
	named  int // number of pages named before the job was created
}

// stream starts the goroutines that read the stream and fetch pages, and returns their steps.
// The channel is closed when all of them have ended.
func (r *run) stream(ctx context.Context) <-chan step {
	rd := &reader{run: r, ctx: ctx, steps: make(chan step, ahead), jobs: make(chan job)}
	rd.busy.init()
	r.limit.init()
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

// send sends a step. It does not block forever, because the receiver always drains the channel.
func (rd *reader) send(s step) {
	if s.change.Page != nil {
		s.size = pageSize(s.change.Page)
		rd.limit.take(s.size)
	}
	rd.steps <- s
}

// read reads the source's stream.
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
			rd.flights.Wait() // the checkpoint covers all earlier pages
			rd.send(step{change: c})
		}
	}
	if err := rd.compare(); err != nil {
		return err
	}
	rd.flights.Wait()
	return context.Cause(rd.ctx)
}

// name records that the source has named a page.
func (rd *reader) name(url string) {
	rd.named++
	if rd.syncState != nil {
		rd.seen.add(url)
	}
}

// compare requests those waiting pages that differ from the stored ones.
func (rd *reader) compare() error {
	if len(rd.waiting) == 0 {
		return nil
	}
	known := map[string]millrace.Ref{}
	if rd.syncState != nil {
		urls := make([]string, len(rd.waiting))
		for i, c := range rd.waiting {
			urls[i] = c.URL
		}
		if err := collect(known, rd.syncState.KnownRefs(rd.ctx, rd.from, urls...)); err != nil {
			return err
		}
	}
	for _, c := range rd.waiting {
		have, ok := known[c.URL]
		switch {
		case ok && millrace.SameVersion(c.Version, have.Version) && c.Location == have.Location:
			if c.Section == have.Section {
				rd.send(step{same: true, named: rd.named})
			} else { // another part of the list names the page now
				c.Version = have.Version
				rd.send(step{change: c, named: rd.named})
			}
			continue
		case ok && c.Location == have.Location:
			have.Section = c.Section
		default: // a validator is valid only for its location
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

// ask fetches one page from the source.
func (rd *reader) ask(j job) step {
	s := step{change: j.change, requested: true, named: j.named}
	if err := context.Cause(rd.ctx); err != nil {
		s.err, s.requested = err, false
		return s
	}
	if int(rd.consecutive.Load()) >= rd.o.Failures {
		s.err = fmt.Errorf("not fetched: %w", millrace.ErrUnavailable)
		return s
	}
	p, err := rd.src.Page(rd.ctx, j.have)
	if isTruncated(err) && rd.ctx.Err() == nil {
		p, err = rd.src.Page(rd.ctx, j.have)
	}
	if errors.Is(err, millrace.ErrUnavailable) {
		rd.consecutive.Add(1)
	} else {
		rd.consecutive.Store(0)
	}
	s.listed = j.change.Version
	if err == nil {
		s.change.Page, s.got = p, p.Version
		return s
	}
	if errors.Is(err, millrace.ErrUnmodified) {
		// The version in the list differs from that of the page. The page's own version takes
		// precedence, and equals the stored one.
		s.change.Version, s.got = j.have.Version, j.have.Version
		return s
	}
	if cause := context.Cause(rd.ctx); cause != nil {
		s.err, s.requested = cause, false
		return s
	}
	if rd.o.Fallback != nil {
		if p, via, ferr := rd.o.Fallback(rd.ctx, j.change.Ref); ferr == nil {
			p.Version, p.Original = "", nil // the next run requests the page from the source itself again
			s.change.Page, s.change.Version, s.via, s.cause = p, "", via, err
			return s
		}
	}
	s.err = err
	return s
}

// isTruncated reports whether an error means that a response ended before it was complete. Such an
// error has a method BrokenOff that returns true. The request is then repeated once.
func isTruncated(err error) bool {
	var e interface{ BrokenOff() bool }
	return errors.As(err, &e) && e.BrokenOff()
}

// memoryLimit limits the number of bytes in waiting steps. A step larger than the limit is admitted
// only when no other step waits.
type memoryLimit struct {
	mu   sync.Mutex
	cond *sync.Cond
	used int
}

func (r *memoryLimit) init() { r.cond, r.used = sync.NewCond(&r.mu), 0 }

func (r *memoryLimit) take(n int) {
	r.mu.Lock()
	for r.used > 0 && r.used+n > aheadBytes {
		r.cond.Wait()
	}
	r.used += n
	r.mu.Unlock()
}

func (r *memoryLimit) give(n int) {
	r.mu.Lock()
	r.used -= n
	r.mu.Unlock()
	r.cond.Broadcast()
}

// inFlight tracks the pages that are being fetched. A later change to a page waits until the fetch
// has ended.
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
