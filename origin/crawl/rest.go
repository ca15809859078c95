package crawl

import (
	"context"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
)

// rest iterates over the stored refs after all more urgent tasks. It fetches the addresses that are
// due, and yields the others as unchanged. It stores no refs in memory.
type rest struct {
	phase phase
	next  func() (millrace.Ref, error, bool)
	end   func()
	at    string // last address that was fetched
}

type phase int

const (
	resume    phase = iota // continue where the last run was interrupted
	remaining              // all refs that were neither fetched nor yielded
	orphan                 // aliases of pages that no longer exist
	over
)

func (s *rest) stop() {
	if s.end != nil {
		s.end()
		s.next, s.end = nil, nil
	}
}

// pickRest returns the task for the next stored address to fetch, and yields the unchanged ones
// before it.
func (r *run) pickRest(ctx context.Context) (task, bool, error) {
	if r.knownRefs == nil {
		return task{}, false, nil
	}
	for r.rest.phase != over {
		if r.rest.next == nil {
			if r.rest.phase == orphan && r.inFlight > 0 {
				return task{}, false, nil // pages that are being fetched may turn out to be missing, too
			}
			if r.rest.phase == resume && (r.since.At == "" || r.cut) || r.rest.phase == orphan && (r.gone == 0 || r.cut) {
				r.rest.phase++
				continue
			}
			r.rest.next, r.rest.end = iter.Pull2(r.knownRefs(ctx))
		}
		ref, err, ok := r.rest.next()
		if !ok {
			if r.reread && !r.cut {
				r.reread, r.read = false, true
			}
			r.rest.stop()
			r.rest.phase++
			continue
		}
		if err != nil {
			return task{}, false, fmt.Errorf("read stored refs: %w", err)
		}
		t, ok, err := r.consider(ref)
		if ok || err != nil {
			return t, ok, err
		}
		if r.rest.phase == remaining && r.cut && ctx.Err() != nil {
			return task{}, false, ctx.Err()
		}
	}
	return task{}, false, nil
}

// consider decides whether to fetch a stored address.
func (r *run) consider(ref millrace.Ref) (t task, ask bool, err error) {
	k := key(ref.URL)
	e, known := r.table.get(k)
	if e.flags&tried != 0 || e.flags&keptUnchanged != 0 && r.rest.phase != orphan {
		return t, false, nil
	}
	t = r.taskOf(ref)
	switch r.rest.phase {
	case resume:
		if ref.URL <= r.since.At {
			return t, false, nil
		}
	case orphan:
		target, ok := r.table.get(t.version.target)
		return t, t.state == aliased && ok && target.state == gone, nil
	}
	if _, v := r.scope.clean(ref.URL); v == outside {
		return t, false, r.skip(ref.URL, true, fmt.Errorf("%w: not in %s", millrace.ErrNotFound, r.scope.base))
	}
	if !known {
		e.flags |= named
		e.state = t.state
	}
	switch {
	case r.cut:
	case r.reread:
		ask = true
	case t.state == aliased && !t.version.stale:
		// The target of an alias is fetched separately. The keys distribute the fetches of aliases
		// over a week.
		ask = (today(r.now())+int64(k%7))/7 != (t.version.day+int64(k%7))/7
	case t.state == hasPage && t.knownVersion == "":
		ask = true
	default:
		ask = e.due(r.now())
	}
	if ask {
		r.rest.at = ref.URL
		r.table.set(k, e)
		return t, true, nil
	}
	return t, false, r.keepState(t, k, e)
}

// keepState yields an address whose stored state is still valid.
func (r *run) keepState(t task, k uint64, e entry) error {
	e.flags |= keptUnchanged
	r.table.set(k, e)
	if t.knownVersion == "" {
		r.missed = true
		return r.skip(t.url, false, fmt.Errorf("%w: left for the next run", millrace.ErrUnavailable))
	}
	r.done++
	if t.state == hasPage {
		r.pages++
	}
	if r.done%256 == 0 {
		r.progress()
	}
	if r.wasReextracted(k) {
		return nil // yielded when it was extracted again; the sink may still return the previous version
	}
	return r.emit(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: t.url, Version: t.knownVersion}})
}

func (r *run) progress() {
	if r.o.Progress != nil {
		r.o.Progress(r.done, max(r.known, r.done))
	}
}

// give yields one change or error, unless the consumer has stopped the stream.
func (r *run) give(c millrace.Change, err error) error {
	if r.stopped {
		return errStop
	}
	if err := r.ended(); err != nil {
		return fatalError{err}
	}
	if !r.yield(c, err) {
		r.stopped = true
		return errStop
	}
	return nil
}

// emit yields a change.
func (r *run) emit(c millrace.Change) error { return r.give(c, nil) }

// skip yields a SkipError for an address. gone is the value of Absent.
func (r *run) skip(u string, gone bool, why error) error {
	r.last = fmt.Errorf("%s: %w", u, why)
	return r.give(millrace.Change{}, &millrace.SkipError{URL: u, Err: why, Absent: gone})
}
