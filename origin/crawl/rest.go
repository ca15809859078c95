package crawl

import (
	"context"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
)

// rest goes through what the sink holds, after everything that is more urgent:
// what is due is asked for, the other addresses are named as standing. Nothing
// of it is kept in memory.
type rest struct {
	phase phase
	next  func() (millrace.Ref, error, bool)
	end   func()
	at    string // the last address that was asked for
}

type phase int

const (
	resume    phase = iota // from where the last run was cut off
	remaining              // all that was neither asked for nor named
	orphan                 // names of pages that turned out to be gone
	over
)

func (s *rest) stop() {
	if s.end != nil {
		s.end()
		s.next, s.end = nil, nil
	}
}

// pickRest returns the next task of the rest.
func (r *run) pickRest(ctx context.Context) (task, bool, error) {
	if r.knownRefs == nil {
		return task{}, false, nil
	}
	for r.rest.phase != over {
		if r.rest.next == nil {
			if r.rest.phase == orphan && r.flying > 0 {
				return task{}, false, nil // it is not known yet what is gone
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
			return task{}, false, fmt.Errorf("what the sink holds: %w", err)
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

// consider decides about one address that is held.
func (r *run) consider(ref millrace.Ref) (t task, ask bool, err error) {
	k := key(ref.URL)
	e, known := r.table.get(k)
	if e.flags&tried != 0 || e.flags&stood != 0 && r.rest.phase != orphan {
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
		return t, t.state == muted && ok && target.state == gone, nil
	}
	if _, v := r.scope.clean(ref.URL); v == outside {
		return t, false, r.skip(ref.URL, true, fmt.Errorf("%w: it is not in %s", millrace.ErrNotFound, r.scope.base))
	}
	if !known {
		e.flags |= named
		e.state = t.state
	}
	switch {
	case r.cut:
	case r.reread:
		ask = true
	case t.state == muted && !t.version.stale:
		// Its page stands in its own name. A week is divided among them by
		// their keys, so that they do not come all at once.
		ask = (today(r.now())+int64(k%7))/7 != (t.version.day+int64(k%7))/7
	case t.state == had && t.knownVersion == "":
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

// keepState names an address whose state is as it is held.
func (r *run) keepState(t task, k uint64, e entry) error {
	e.flags |= stood
	r.table.set(k, e)
	if t.knownVersion == "" {
		r.missed = true
		return r.skip(t.url, false, fmt.Errorf("%w: left for the next run", millrace.ErrUnavailable))
	}
	r.done++
	if t.state == had {
		r.pages++
	}
	if r.done%256 == 0 {
		r.progress()
	}
	if r.wasRemade(k) {
		return nil // it was named when it was made again, by a version that the sink may not show yet
	}
	return r.emit(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: t.url, Version: t.knownVersion}})
}

func (r *run) progress() {
	if r.o.Progress != nil {
		r.o.Progress(r.done, max(r.known, r.done))
	}
}

// give yields one change, unless the caller has stopped ranging.
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

// skip reports an address. gone: the site has no such page.
func (r *run) skip(u string, gone bool, why error) error {
	r.last = fmt.Errorf("%s: %w", u, why)
	return r.give(millrace.Change{}, &millrace.SkipError{URL: u, Err: why, Absent: gone})
}
