package access

import (
	"cmp"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/millrace/millrace"
)

// Slots counts requests that take long: they listen, or are sent something
// slowly, or there are many of them. Half of the places anybody may take,
// as many as there are: behind a proxy that is not trusted, all clients are
// one. The others are for clients that have few.
type Slots struct {
	most    int
	changed func(open int) // nil = not called

	mu   sync.Mutex
	open int
	each map[Client]int
}

// few is how many places a client has at most, once half of them are taken.
func (s *Slots) few() int { return max(4, s.most/16) }

// NewSlots returns so many places; 0 = 2048. told, which may be nil, receives how
// many are taken whenever that changes.
func NewSlots(most int, changed func(open int)) *Slots {
	return &Slots{most: cmp.Or(most, 2048), changed: changed, each: make(map[Client]int)}
}

// ErrBusy is the error of a request that finds no place. It has no code: each
// protocol has its own.
var ErrBusy = &Refusal{Err: millrace.RequestError{
	Status: http.StatusServiceUnavailable, Text: "too many requests at once",
}, Retry: 1}

// ErrCrowded is the error of a client that has more than its share of the places.
var ErrCrowded = &Refusal{Err: millrace.RequestError{
	Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: "too many streams from one client: end one of them",
}, Retry: 30}

// Enter takes a place. Call end to give it back.
func (s *Slots) Enter(c Client) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open >= s.most:
		return nil, ErrBusy
	case s.open >= s.most/2 && s.each[c] >= s.few():
		return nil, ErrCrowded
	}
	s.count(c, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count(c, -1)
	}, nil
}

// errCrowd is for who has many requests while others have none.
var errCrowd = &Refusal{Err: millrace.RequestError{
	Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: "too many requests at once from one client",
}, Retry: 1}

// Enter takes a place among the requests that are answered. Once half of them are
// taken, one client gets only a few of the rest: one that reads slowly does not keep
// the others out.
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

// Listen takes a place among the requests that listen, which take none from the
// others. Call end to give it back.
func (q *Request) Listen() (end func(), err error) { return q.guard.streams.Enter(q.who()) }

// Leave frees the place. Only the first call has an effect.
func (q *Request) Leave() {
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

// Active returns how many requests are answered now.
func (g *Guard) Active() int64 { return g.active.Load() }

// Listening returns how many requests listen now.
func (g *Guard) Listening() int {
	g.streams.mu.Lock()
	defer g.streams.mu.Unlock()
	return g.streams.open
}

// count adds n streams of a client. The lock is held.
func (s *Slots) count(c Client, n int) {
	s.open += n
	if s.each[c] += n; s.each[c] == 0 {
		delete(s.each, c)
	}
	if s.changed != nil {
		s.changed(s.open)
	}
}

// Streams from which on the collector is eager, and below which it is lazy.
const (
	manyStreams  = 256
	fewerStreams = 128
	eagerPercent = 100 // of GOGC
)

// Collect returns an [Options.Streams] for a process whose garbage collector is
// lazy, by the percentage that GOGC has otherwise: as long as many listen, it
// is eager. Each holds buffers and stacks of some 25 kB, of which a lazy
// collector would let several times as much grow in garbage.
func Collect(lazy int) func(open int) {
	eager := false
	return func(open int) {
		switch {
		case !eager && open >= manyStreams:
			eager = true
			debug.SetGCPercent(min(lazy, eagerPercent))
		case eager && open < fewerStreams:
			eager = false
			debug.SetGCPercent(lazy)
		}
	}
}
