package fetch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	politeDelay = 250 * time.Millisecond
	manyHosts   = 1024 // hosts remembered before the idle ones are forgotten
)

// pacer spaces out the starts of requests to one host.
type pacer struct {
	delay time.Duration // as in Options
	mu    sync.Mutex
	hosts map[string]*rate.Limiter
	sweep int // forget idle hosts at this many
}

// wait returns when a request to host may start, in the order of asking. A
// context that would end before then fails at once.
func (p *pacer) wait(ctx context.Context, host string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	delay := p.delay
	if delay == 0 && !loopbackName(host) {
		delay = politeDelay
	}
	if delay <= 0 {
		return nil
	}
	err := p.limiter(strings.ToLower(host), delay).Wait(ctx)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the turn of %s comes too late: %w", host, context.DeadlineExceeded)
	}
	return err
}

func (p *pacer) limiter(host string, delay time.Duration) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, ok := p.hosts[host]; ok {
		return l
	}
	if p.hosts == nil {
		p.hosts, p.sweep = make(map[string]*rate.Limiter), manyHosts
	}
	if len(p.hosts) >= p.sweep {
		for h, l := range p.hosts {
			if l.Tokens() >= 1 { // as good as new
				delete(p.hosts, h)
			}
		}
		// Doubling keeps the cost of sweeping constant per new host.
		p.sweep = max(manyHosts, 2*len(p.hosts))
	}
	l := rate.NewLimiter(rate.Every(delay), 1)
	p.hosts[host] = l
	return l
}
