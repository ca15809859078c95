package access

import (
	"container/heap"
	"context"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// turns limits the number of requests that are processed at once. Other requests wait, and the
// request of the client with the least work comes first (start-time fair queuing). A client with
// any number of requests therefore delays the single request of another client only by the turns
// that have already begun.
type turns struct {
	mu      sync.Mutex
	free    int
	now     time.Duration // virtual time, which advances only while requests are processed: the start of the last turn
	next    *simplelru.LRU[Client, time.Duration]
	waiting waiters
}

// quantum is the expected duration of a turn.
const quantum = time.Millisecond

// maxTurnClients is the maximum number of clients whose work is stored.
const maxTurnClients = 4096

func newTurns(most int) *turns {
	next, _ := simplelru.NewLRU[Client, time.Duration](maxTurnClients, nil) // fails only for a size below 1
	return &turns{free: most, next: next}
}

// take waits for a turn, but not longer than limit if that is above zero. The caller must call give
// at the end of the turn. take returns the context's error, or [context.DeadlineExceeded] after the
// limit.
func (t *turns) take(ctx context.Context, c Client, limit time.Duration) error {
	t.mu.Lock()
	start, _ := t.next.Get(c)
	start = max(start, t.now)
	t.next.Add(c, start+quantum)
	if t.free > 0 {
		t.free--
		t.now = start
		t.mu.Unlock()
		return nil
	}
	w := &waiter{start: start, turn: make(chan struct{})}
	heap.Push(&t.waiting, w)
	t.mu.Unlock()
	if limit <= 0 {
		limit = math.MaxInt64
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var err error
	select {
	case <-w.turn:
		return nil
	case <-timer.C:
		err = context.DeadlineExceeded
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.place < 0 { // the request got its turn in the meantime
		t.pass()
	} else {
		heap.Remove(&t.waiting, w.place)
	}
	return err
}

// give ends a turn of a client. took is the duration of the turn.
func (t *turns) give(c Client, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next, ok := t.next.Get(c); ok {
		t.next.Add(c, next+took-quantum)
	}
	t.pass()
}

// pass gives a turn to the next waiting request. The caller holds the lock.
func (t *turns) pass() {
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	w := heap.Pop(&t.waiting).(*waiter)
	t.now = max(t.now, w.start)
	close(w.turn)
}

// waiter is a request that waits for a turn.
type waiter struct {
	start time.Duration
	place int // index in the heap; -1 = none
	turn  chan struct{}
}

// waiters is a heap of requests, ordered by their starts.
type waiters []*waiter

func (h waiters) Len() int           { return len(h) }
func (h waiters) Less(i, j int) bool { return h[i].start < h[j].start }
func (h waiters) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].place, h[j].place = i, j }

// Push implements [heap.Interface].
func (h *waiters) Push(x any) {
	w := x.(*waiter)
	w.place = len(*h)
	*h = append(*h, w)
}

// Pop implements [heap.Interface].
func (h *waiters) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	w.place = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return w
}

// WaitTurn waits for a turn of the request, unless it already has one. The turn ends when the request
// sends bytes, see [Request.Pause], or ends.
func (q *Request) WaitTurn() error {
	if q == nil || q.Owned || !q.began.IsZero() {
		return nil
	}
	if err := q.guard.work.take(q.r.Context(), q.client(), 0); err != nil {
		return err
	}
	q.began = time.Now()
	return nil
}

// Pause ends the turn of the request, if it has one, before the request waits for its client.
func (q *Request) Pause() {
	if !q.began.IsZero() {
		q.guard.work.give(q.client(), time.Since(q.began))
		q.began = time.Time{}
	}
}

// searchWait is the time limit of a search that waits for its turn.
const searchWait = 2 * time.Second

// Search counts the request against the content limit, and waits until the request may search. Call
// end afterwards.
func (q *Request) Search() (end func(), err error) {
	if q == nil {
		return func() {}, nil
	}
	if err := q.Charge(); err != nil {
		return nil, err
	}
	q.Pause()
	t, c := q.guard.searches, q.client()
	if err := t.take(q.r.Context(), c, searchWait); err != nil {
		if q.r.Context().Err() == nil {
			err = tooMany("too many concurrent searches; try again later", searchWait)
		}
		return nil, err
	}
	began := time.Now()
	return func() { t.give(c, time.Since(began)) }, nil
}
