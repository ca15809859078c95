package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

// Limits of the events stored for slow clients.
const (
	maxEventBytes = 4 << 20
	maxBursts     = 4096
	burstBytes    = 64 << 10 // maximum size of one burst in bytes, without its last commit
)

// commit contains the events of one commit.
type commit struct {
	seq    uint64
	frames []byte
	gone   bool // whether the commit deletes pages
}

// burst contains the events of several commits that were published together. They are written to
// each client at once.
type burst struct {
	last   uint64 // last sequence number
	frames []byte
	ends   []commitEnd // end of each commit, for clients that have received only some of the commits
	gone   bool        // whether one of the commits deletes pages
}

// commitEnd is the position in a burst's frames at which the events of a commit end.
type commitEnd struct {
	seq uint64
	end int
}

func (b *burst) add(c commit) {
	b.last = c.seq
	if len(c.frames) > 0 {
		b.gone = b.gone || c.gone
		b.frames = append(b.frames, c.frames...)
		b.ends = append(b.ends, commitEnd{c.seq, len(b.frames)})
	}
}

// after returns the events after a sequence number.
func (b *burst) after(seq uint64) []byte {
	n := 0
	for _, m := range b.ends {
		if m.seq > seq {
			break
		}
		n = m.end
	}
	return b.frames[n:]
}

// events contains the newest events, which are read and encoded once for all clients.
type events struct {
	mu       sync.Mutex
	clients  int
	cancel   context.CancelFunc // stops the reading goroutine
	first    uint64             // sequence number after which the stored events begin
	slow     uint64             // sequence number; events between slow and first were dropped because pages were deleted
	at       uint64             // last sequence number of the stored events
	bursts   []burst
	size     int           // total size of the frames of bursts in bytes
	moved    chan struct{} // closed and replaced when events are added or reading ends
	err      error         // reason why reading ended
	reported bool          // whether err was already returned to the gateway for its log
	catch    chan struct{} // slots for clients that read past events from the log
}

var (
	errBehind = errors.New("events are no longer stored")
	errPurged = errors.New("events may name deleted pages")
)

func (e *events) catchSlots() chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.catch == nil {
		e.catch = make(chan struct{}, catching)
	}
	return e.catch
}

// join adds a client. If it is the first client, or the read loop has ended with an error, join
// starts the read loop.
func (e *events) join(p *publisher, live millrace.Live, v millrace.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clients++; e.clients > 1 && e.err == nil {
		return
	}
	if e.cancel != nil {
		e.cancel()
	}
	site := v.Site()
	e.slow, e.first, e.at, e.bursts, e.size, e.err, e.reported = site.Seq, site.Seq, site.Seq, nil, 0, nil, false
	moved := make(chan struct{})
	if e.moved != nil {
		close(e.moved)
	}
	e.moved = moved
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	go e.read(ctx, p, live, site)
}

// leave removes a client. The last client stops the read loop.
func (e *events) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clients--; e.clients == 0 {
		e.cancel()
		e.cancel, e.bursts, e.size = nil, nil, 0
	}
}

// fault returns the error that the gateway should log for a stream. It returns each read error
// once, and nil for expected errors.
func (e *events) fault(err error) error {
	_, asked := errors.AsType[*millrace.RequestError](err)
	if err == nil || asked || errors.Is(err, errGone) || errors.Is(err, errBehind) ||
		errors.Is(err, millrace.ErrConflict) || errors.Is(err, millrace.ErrUnavailable) {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil && errors.Is(err, e.err) {
		if e.reported {
			return nil
		}
		e.reported = true
	}
	return err
}

// read reads the log as it grows, until its context ends. It recovers from its own panics, because
// it does not run under an HTTP server.
func (e *events) read(ctx context.Context, p *publisher, live millrace.Live, site millrace.Site) {
	defer func() {
		if cause := recover(); cause != nil {
			e.end(ctx, fmt.Errorf("%s: events: panic: %v\n%s", Name, cause, debug.Stack()))
		}
	}()
	for {
		v, err := live.Wait(ctx, site.Seq)
		if err != nil {
			e.end(ctx, err)
			return
		}
		next := v.Site()
		if !next.Has(site.Epoch, site.Seq) {
			e.end(ctx, resync("The store of the site has been replaced or restored"))
			return
		}
		var news burst
		for c, err := range p.commits(ctx, v, site.Seq, asOf(site)) {
			if err != nil {
				e.end(ctx, fmt.Errorf("%s: events: %w", Name, err))
				return
			}
			if news.add(c); len(news.frames) >= burstBytes {
				e.add(ctx, news)
				news = burst{}
			}
		}
		news.add(commit{seq: next.Seq}) // changes that are not public advance the log, too
		e.add(ctx, news)
		site = next
	}
}

// end notifies all clients that there are no further events.
func (e *events) end(ctx context.Context, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() == nil { // otherwise, this read loop was stopped
		e.err = err
		e.wake()
	}
}

func (e *events) wake() {
	close(e.moved)
	e.moved = make(chan struct{})
}

// add adds a burst, and drops the oldest bursts beyond the limits. If pages were deleted, it drops
// all earlier bursts, because they may name these pages.
func (e *events) add(ctx context.Context, b burst) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil || b.last <= e.at && len(b.frames) == 0 {
		return
	}
	e.at = b.last
	if len(b.frames) == 0 {
		return
	}
	e.bursts = append(e.bursts, b)
	e.size += len(b.frames)
	n := 0
	for len(e.bursts)-n > 1 && (len(e.bursts)-n > maxBursts || e.size > maxEventBytes) {
		e.size -= len(e.bursts[n].frames)
		e.first = e.bursts[n].last
		e.slow = e.first
		n++
	}
	if b.gone {
		for ; n < len(e.bursts)-1; n++ {
			e.size -= len(e.bursts[n].frames)
			e.first = e.bursts[n].last
		}
	}
	if n > 0 {
		e.bursts = append([]burst(nil), e.bursts[n:]...)
	}
	e.wake()
}

// after returns the events after a sequence number, and advances the number to their end. If there
// are no new events, after returns a channel that is closed when there are. The errors errBehind
// and errPurged mean that some events are no longer stored.
func (e *events) after(at *uint64) ([]byte, <-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case *at < e.slow:
		return nil, nil, errBehind
	case *at < e.first:
		return nil, nil, errPurged
	}
	i := len(e.bursts)
	for i > 0 && e.bursts[i-1].last > *at {
		i--
	}
	for ; i < len(e.bursts); i++ {
		frames := e.bursts[i].after(*at)
		*at = e.bursts[i].last
		if len(frames) > 0 {
			return frames, e.moved, nil
		}
	}
	*at = max(*at, e.at)
	return nil, e.moved, e.err
}

// commits yields the commits in a view's log after a sequence number. reported is the commit time
// of that number. The ID of the last event of a commit is the commit's token. The IDs of its other
// events are the previous token, so a client that has received only some of them loses nothing.
func (p *publisher) commits(ctx context.Context, v millrace.View, from uint64, reported string) iter.Seq2[commit, error] {
	return func(yield func(commit, error) bool) {
		site := v.Site()
		if from >= site.Seq {
			return
		}
		type event struct {
			name string
			data []byte
		}
		var group []event
		var at time.Time
		gone := false
		flush := func() bool {
			if len(group) == 0 {
				return true
			}
			seq, err := v.SeqAt(ctx, at)
			if err != nil {
				yield(commit{}, err)
				return false
			}
			c := commit{seq: seq, gone: gone}
			id := eventID(site, from, reported)
			from, reported = seq, kit.FormatTime(at)
			for i, e := range group {
				if i == len(group)-1 {
					id = eventID(site, from, reported)
				}
				c.frames = append(c.frames, frame(e.name, id, e.data)...)
			}
			group, gone = group[:0], false
			return yield(c, nil)
		}
		for c, err := range v.Changes(ctx, site.At(from)) {
			if err != nil {
				yield(commit{}, err)
				return
			}
			if c.Kind == millrace.KindCheckpoint {
				continue
			}
			if !c.Time.Equal(at) && !flush() {
				return
			}
			at = c.Time
			name, data, err := p.event(ctx, v, c)
			if err != nil {
				yield(commit{}, err)
				return
			}
			gone = gone || c.Kind == millrace.Delete
			if data != nil {
				group = append(group, event{name, data})
			}
		}
		flush()
	}
}

// event returns the name and the data of the event for a change. For a change that is not public,
// the data is nil.
func (p *publisher) event(ctx context.Context, v millrace.View, c millrace.Change) (string, []byte, error) {
	it, dead, err := p.changed(ctx, v, c)
	switch {
	case dead != nil:
		return "deleted", dead.append(nil), nil
	case err != nil || it == nil:
		return "", nil, err
	case c.New:
		return "added", it.append(nil), nil
	}
	return "updated", it.append(nil), nil
}
