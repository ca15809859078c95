package fetch

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace"
)

const (
	// PoliteDelay is the default of [Options.Delay], except for loopback hosts.
	PoliteDelay = 250 * time.Millisecond

	maxHold   = 5 * time.Minute // maximum delay that Retry-After may set; for a longer one, the host is paused
	maxAsked  = 24 * time.Hour  // maximum pause that Retry-After may set
	manyHosts = 1024            // number of hosts above which idle ones are dropped

	maxInFlight  = 256 // maximum requests in flight of one client
	hostInFlight = 16  // maximum requests in flight to one host
)

// pacer keeps one queue per host and limits the requests in flight. Its times have a monotonic
// clock reading, so setting the system clock neither blocks nor floods a host.
type pacer struct {
	delay time.Duration  // Options.Delay
	limit int            // maximum requests in flight to one host
	rand  func() float64 // jitter of backoff
	slots chan struct{}  // each request in flight takes a slot

	mu    sync.Mutex // guards the fields below, and the hosts except their channels
	hosts map[string]*hostQueue
	sweep int // number of hosts at which idle ones are dropped
}

func newPacer(delay time.Duration, limit int, rand func() float64) *pacer {
	return &pacer{
		delay: delay, limit: max(1, cmp.Or(limit, hostInFlight)), rand: rand,
		slots: make(chan struct{}, maxInFlight),
		hosts: make(map[string]*hostQueue), sweep: manyHosts,
	}
}

// hostQueue is the queue of one host name, whatever the port.
type hostQueue struct {
	name    string
	first   chan struct{} // contains a value while the next request waits to start; later requests wait in order
	slots   chan struct{} // each request in flight takes a slot
	users   int           // requests that wait or are in flight
	waiting int           // requests that wait
	next    time.Time     // end of the gap after the last start
	hold    time.Time     // end of the last Retry-After
	health
}

// due returns the time until the next request may start.
func (h *hostQueue) due(now time.Time) time.Duration {
	at := h.next
	for _, t := range []time.Time{h.hold, h.retry} {
		if t.After(at) {
			at = t
		}
	}
	return at.Sub(now)
}

// pass is the permission to send one request.
type pass struct {
	p        *pacer
	h        *hostQueue
	began    time.Time
	delay    time.Duration // minimum time from this start to the next one
	probe    bool          // the request tests a paused host
	repeated bool          // the request has failed before
	reported bool
	spaced   bool // space was called
	released bool
	own      *pass                // pass of the client's own queue; may be nil
	ended    func()               // [Options.Done]; may be nil
	once     sync.Once            // guards ended
	gap      func() time.Duration // the current [Options.Gap]; set if own is set
}

// start waits until a request to a host may start, in the order of calls. delay is the minimum time
// to the next start, if it is longer than Options.Delay. It fails at once if the context would end
// before the start, and with a *PauseError if the host is paused. The caller must call done on the
// pass.
func (p *pacer) start(ctx context.Context, name string, delay time.Duration) (*pass, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own := p.delay
	if own == 0 && !IsLoopback(name) {
		own = PoliteDelay
	}
	delay = max(0, delay, own)
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.host(hostName(name))
	now := time.Now()
	wait := h.due(now)
	if err := h.pauseError(h.name, now); err != nil {
		return nil, err
	}
	if h.waiting == 0 && wait <= 0 && take(h.slots) {
		if take(p.slots) {
			h.users++
			return p.begin(h, now, delay), nil
		}
		<-h.slots
	}
	wait = max(0, wait) + time.Duration(h.waiting)*delay
	if end, ok := ctx.Deadline(); ok && now.Add(wait).After(end) {
		return nil, millrace.Coded("queue-timeout", fmt.Errorf("request to %s cannot start before its deadline: %w", h.name, context.DeadlineExceeded))
	}
	h.users++
	h.waiting++
	p.mu.Unlock()
	out, err := p.queue(ctx, h, delay)
	p.mu.Lock()
	h.waiting--
	if err != nil {
		h.users--
	}
	return out, err
}

// queue waits until the request is first in the queue of the host, and for a free slot.
func (p *pacer) queue(ctx context.Context, h *hostQueue, delay time.Duration) (_ *pass, err error) {
	if err := acquire(ctx, h.first); err != nil {
		return nil, err
	}
	defer func() { <-h.first }()
	if err := acquire(ctx, h.slots); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			<-h.slots
		}
	}()
	for {
		// During the wait, other requests may have delayed the start.
		wait, err := p.remaining(h)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			if err := Sleep(ctx, wait); err != nil {
				return nil, err
			}
			continue
		}
		if err := acquire(ctx, p.slots); err != nil {
			return nil, err
		}
		p.mu.Lock()
		now := time.Now()
		if h.due(now) <= 0 && h.pauseError(h.name, now) == nil {
			defer p.mu.Unlock()
			return p.begin(h, now, delay), nil
		}
		p.mu.Unlock()
		<-p.slots
	}
}

func (p *pacer) remaining(h *hostQueue) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return h.due(now), h.pauseError(h.name, now)
}

// begin starts a request that holds its slots.
func (p *pacer) begin(h *hostQueue, now time.Time, delay time.Duration) *pass {
	h.next = now.Add(delay)
	probe := h.pause > 0
	h.probing = probe
	return &pass{p: p, h: h, began: now, delay: delay, probe: probe}
}

// report records the outcome of a request once, and applies the request's Retry-After. It returns
// the time for which requests to the host are delayed.
func (x *pass) report(o outcome, after time.Duration) time.Duration {
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	now := time.Now()
	x.space(now)
	x.judge(o, now)
	switch end := now.Add(min(after, maxAsked)); {
	case after > maxHold:
		x.h.leave(end)
	case after > 0 && end.After(x.h.hold):
		x.h.hold = end
	}
	return max(x.h.due(now), x.h.until.Sub(now))
}

// end calls ended once, at the end of the request.
func (x *pass) end() {
	if x.ended != nil {
		x.once.Do(x.ended)
	}
}

// done ends the pass and frees its slots. Only the first call has an effect.
func (x *pass) done(o outcome) {
	x.release(o)
	x.end()
}

func (x *pass) release(o outcome) {
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	now := time.Now()
	x.judge(o, now)
	if x.released {
		return
	}
	x.released = true
	x.space(now)
	if x.probe && !x.reported {
		x.h.probing = false // unknown outcome: the next request is the probe
	}
	x.h.users--
	<-x.h.slots
	<-x.p.slots
	if x.own != nil {
		x.own.done(unknown)
	}
}

// space delays the next request from now, for a client with a queue of its own, because the server
// may have received this request only now.
func (x *pass) space(now time.Time) {
	if x.own != nil && !x.spaced {
		delay := max(x.delay, x.gap())
		if at := now.Add(delay); at.After(x.h.next) {
			x.h.next = at
		}
		x.own.p.putOff(x.own.h.name, delay)
	}
	x.spaced = true
}

func (x *pass) judge(o outcome, now time.Time) {
	if !x.reported && o != unknown {
		x.reported = true
		x.h.judge(o, x.repeated, x.began, now, x.p.rand)
		if x.probe {
			x.h.probing = false
		}
	}
}

func (p *pacer) host(name string) *hostQueue {
	if h, ok := p.hosts[name]; ok {
		return h
	}
	if len(p.hosts) >= p.sweep {
		now := time.Now()
		for name, h := range p.hosts {
			if h.users == 0 && h.due(now) <= 0 && now.Sub(h.until) > maxPause { // a new queue would behave in the same way
				delete(p.hosts, name)
			}
		}
		// Doubling keeps the cost of sweeping constant per new host.
		p.sweep = max(manyHosts, 2*len(p.hosts))
	}
	h := &hostQueue{name: name, first: make(chan struct{}, 1), slots: make(chan struct{}, p.limit)}
	p.hosts[name] = h
	return h
}

// Wait returns the time until the queue of a host permits a request.
func (c *Client) Wait(host string) time.Duration {
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	if h := c.pace.hosts[hostName(host)]; h != nil {
		return max(0, h.due(time.Now()))
	}
	return 0
}

// RetryAfter returns the remaining time of the last Retry-After of a host, or 0.
func (c *Client) RetryAfter(host string) time.Duration {
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	h := c.pace.hosts[hostName(host)]
	if h == nil {
		return 0
	}
	end := h.hold
	if h.asked && h.until.After(end) {
		end = h.until
	}
	return max(0, time.Until(end))
}

// putOff delays the next request to a host by gap.
func (p *pacer) putOff(name string, gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h, known := p.hosts[name]; known {
		if next := time.Now().Add(gap); next.After(h.next) {
			h.next = next
		}
	}
}

func take(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func acquire(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sleep waits for d, or returns the error of ctx if it ends earlier.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
