package access

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace"
)

// Slots limits the number of concurrent streams, slow responses or requests. One client can take
// half of the slots, because all clients behind an untrusted proxy count as one. Once half of the
// slots are taken, only clients with few slots get another.
type Slots struct {
	most    int
	changed func(open int) // nil = not called

	mu   sync.Mutex
	open int
	each map[Client]int

	short map[Client]int // number of streams that lasted less than a second and ended within the last second
}

// few returns how many slots one client may have once half of all slots are taken.
func (s *Slots) few() int { return max(4, s.most/16) }

// NewSlots returns most slots, or 2048 if most is 0. It calls changed, which may be nil, with the
// number of taken slots at each change.
func NewSlots(most int, changed func(open int)) *Slots {
	return &Slots{most: cmp.Or(most, 2048), changed: changed, each: make(map[Client]int), short: make(map[Client]int)}
}

// ErrBusy is the error for a request that gets no slot. It has no code, because each protocol
// defines its own.
var ErrBusy = &Refusal{Err: millrace.RequestError{
	Status: http.StatusServiceUnavailable, Text: "too many concurrent requests",
}, Retry: 1}

// ErrTooManyStreams is the error for a client that has too many slots.
var ErrTooManyStreams = &Refusal{Err: millrace.RequestError{
	Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: "too many streams from this client; close one of them",
}, Retry: 30}

// Enter takes a slot. The caller must call end to release the slot.
func (s *Slots) Enter(c Client) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open >= s.most:
		return nil, ErrBusy
	case s.open >= s.most/2 && s.each[c] >= s.few():
		return nil, ErrTooManyStreams
	}
	s.count(c, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count(c, -1)
	}, nil
}

// errCrowd is the error for a client with too many requests.
var errCrowd = &Refusal{Err: millrace.RequestError{
	Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: "too many concurrent requests from this client",
}, Retry: 1}

// Enter takes a slot for the request. Once half of the slots are taken, each client gets only part
// of the others, so a client that reads slowly cannot block the other clients.
func (q *Request) Enter() error {
	g := q.guard
	n := g.active.Add(1)
	if n > g.maxActive {
		g.active.Add(-1)
		return ErrBusy
	}
	if n > g.maxActive/2 {
		leave, err := g.crowd.Enter(q.network())
		if err != nil {
			g.active.Add(-1)
			return errCrowd
		}
		q.crowded = leave
	}
	q.inside = true
	return nil
}

// A long stream costs little more than its connection. A client that opens many short streams must
// wait, because otherwise the server would spend its time on opening connections.
const (
	shortStream = time.Second // a stream that ends earlier is short
	manyShort   = 4           // short streams of a client within a second, after which it waits
)

// Listen takes a slot for a stream. The caller must call end to release the slot. If several streams
// of the client have just ended after less than a second, Listen waits for a second or until ctx
// ends.
func (q *Request) Listen(ctx context.Context) (end func(), err error) {
	s, c := q.guard.streams, q.client()
	leave, err := s.Enter(c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	wait := s.short[c] >= manyShort
	s.mu.Unlock()
	if wait {
		select {
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		case <-time.After(shortStream):
		}
	}
	begun := time.Now()
	return func() {
		leave()
		if time.Since(begun) < shortStream {
			s.ended(c, 1)
			time.AfterFunc(shortStream, func() { s.ended(c, -1) })
		}
	}, nil
}

// ended adds n to the number of short streams of a client.
func (s *Slots) ended(c Client, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.short[c] += n; s.short[c] == 0 {
		delete(s.short, c)
	}
}

// Leave releases the slot of the request and ends its turn. Only the first call has an effect.
func (q *Request) Leave() {
	q.Pause()
	if !q.inside {
		return
	}
	q.inside = false
	if q.crowded != nil {
		q.crowded()
		q.crowded = nil
	}
	q.guard.active.Add(-1)
}

// Active returns the number of requests in progress.
func (g *Guard) Active() int64 { return g.active.Load() }

// Listening returns the number of open streams.
func (g *Guard) Listening() int {
	g.streams.mu.Lock()
	defer g.streams.mu.Unlock()
	return g.streams.open
}

// count adds n slots to a client. The caller holds the lock.
func (s *Slots) count(c Client, n int) {
	s.open += n
	if s.each[c] += n; s.each[c] == 0 {
		delete(s.each, c)
	}
	if s.changed != nil {
		s.changed(s.open)
	}
}
