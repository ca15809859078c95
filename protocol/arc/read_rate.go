package arc

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/fetch"
)

// maxGap is the maximum gap between two pages that a site can set, as for a Crawl-delay. With a
// longer gap, a mirror would never be complete.
const maxGap = time.Minute

// pace keeps a minimum time between the starts of requests, in the order of calls.
type pace struct {
	mu   sync.Mutex
	gap  time.Duration
	next time.Time
}

func (p *pace) set(gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gap = min(gap, maxGap)
}

// wait waits until the caller may send its request.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	turn := p.next.Sub(now)
	p.next = p.next.Add(p.gap)
	p.mu.Unlock()
	if turn <= 0 {
		return ctx.Err()
	}
	return fetch.Sleep(ctx, turn)
}
