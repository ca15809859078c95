package gateway

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// pacing is how fast large documents are sent: to each client, and to all.
type pacing struct {
	each, all *quota // of bytes; nil = as fast as they go
	chunk     int64  // bytes that are sent at once
	places    *streams
}

// everybody is the client that a limit of all counts for.
var everybody = client{bot: "everybody"}

// newPacing gives nil when there is no limit. Those who are sent something
// slowly take at most some of the places, and one of them not all of these.
func newPacing(each, all float64, places int64) *pacing {
	if each <= 0 && all <= 0 {
		return nil
	}
	p := &pacing{places: newStreams(max(1, int(places/4)), nil)}
	rate := each
	if each > 0 {
		p.each = newQuota(quotaBytes, "bytes", each)
	}
	if all > 0 {
		p.all = newQuota(quotaAllBytes, "bytes", all)
		if rate <= 0 || all < rate {
			rate = all
		}
	}
	p.chunk = int64(min(max(rate/8, 1<<10), 256<<10))
	return p
}

// Large implements [edition.Gate].
func (q *Request) Large() (end func(), err error) {
	p := q.guard.pacing
	if p == nil {
		return func() {}, nil
	}
	leave, err := p.places.enter(q.who())
	if err != nil {
		return nil, tooMany("too many downloads at once: try again", 10*time.Second)
	}
	q.paced = true
	return func() { q.paced = false; leave() }, nil
}

// slowly is send of the response's own writer.
func (w *response) slowly(b []byte) (int, error) { return w.send(w.ResponseWriter, b) }

// stall is how long a client may take for one chunk.
const stall = time.Minute

// send sends bytes slowly.
func (q *Request) send(w http.ResponseWriter, b []byte) (sent int, err error) {
	p, ctx, c := q.guard.pacing, q.r.Context(), q.who()
	control := http.NewResponseController(w)
	for chunk := range slices.Chunk(b, int(p.chunk)) {
		n := int64(len(chunk))
		wait := p.count(q.guard.limits, c, n)
		// A writer without deadlines, as in tests, has none to move.
		_ = control.SetWriteDeadline(time.Now().Add(wait + stall))
		if err := rest(ctx, wait); err != nil {
			p.count(q.guard.limits, c, -n) // what is not sent is not counted
			return sent, err
		}
		n1, err := w.Write(chunk)
		sent += n1
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// count counts n bytes, and says how long to wait before they are sent.
func (p *pacing) count(l *limits, c client, n int64) (wait time.Duration) {
	if p.each != nil {
		wait = l.pace(p.each, c, n)
	}
	if p.all != nil {
		wait = max(wait, l.pace(p.all, everybody, n))
	}
	return wait
}

func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
