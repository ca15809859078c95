package access

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// pacing limits the transfer rate of large documents, per client and in total.
type pacing struct {
	each, all *quota // limits in bytes per second. If nil, there is no limit.
	chunk     int    // bytes per write
	places    *Slots
}

// total is the client to which the total limit applies.
var total = Client{bot: "total"}

// newPacing returns the limits, or nil if both are zero. places is the maximum number of concurrent
// requests. Large documents may take a quarter of these slots, and one client only part of that
// quarter.
func newPacing(each, all float64, places int64) *pacing {
	if each <= 0 && all <= 0 {
		return nil
	}
	p := &pacing{places: NewSlots(max(1, int(places/4)), nil)}
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
	p.chunk = int(min(max(rate/8, 1<<10), 256<<10))
	for _, q := range []*quota{p.each, p.all} {
		if q != nil {
			q.burst, q.minBurst = max(q.burst, p.chunk), p.chunk
		}
	}
	return p
}

// BeginLarge reserves a slot for the download of a large document, whose body the caller then writes
// with [Request.Send] within the transfer limits. If no slot is free, it returns an error. The caller
// must call end afterwards.
func (q *Request) BeginLarge() (end func(), err error) {
	if q == nil || q.guard.pacing == nil {
		return func() {}, nil
	}
	p := q.guard.pacing
	leave, err := p.places.Enter(q.client())
	if err != nil {
		return nil, tooMany("too many concurrent downloads; try again later", 10*time.Second)
	}
	q.paced = true
	return func() { q.paced = false; leave() }, nil
}

// stall is the time limit of one write.
const stall = time.Minute

// Paced reports whether the body must be written by [Request.Send].
func (q *Request) Paced() bool { return q.paced }

// Send writes part of a large document's body within the transfer limits.
func (q *Request) Send(w http.ResponseWriter, b []byte) (sent int, err error) {
	p, ctx, c := q.guard.pacing, q.r.Context(), q.client()
	control := http.NewResponseController(w)
	for chunk := range slices.Chunk(b, p.chunk) {
		wait, undo := p.count(q.guard.limits, c, len(chunk))
		// Ignore the error of writers without deadlines, as in tests.
		_ = control.SetWriteDeadline(time.Now().Add(wait + stall))
		if err := rest(ctx, wait); err != nil {
			undo() // count only the bytes sent
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

// count counts n bytes and returns the wait before they may be sent. undo reverts
// the count.
func (p *pacing) count(l *limits, c Client, n int) (wait time.Duration, undo func()) {
	none := func() {}
	each, all := none, none
	if p.each != nil {
		wait, each = l.pace(p.each, c, n)
	}
	if p.all != nil {
		var rest time.Duration
		rest, all = l.pace(p.all, total, n)
		wait = max(wait, rest)
	}
	return wait, func() { each(); all() }
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
