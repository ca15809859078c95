package arc

import (
	"context"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxGap is the longest gap between two pages that a site can ask for: with
// more, a mirror would never be whole. It is that of a Crawl-delay, too.
const maxGap = time.Minute

// gapOf gives the least time between two requests that a crawl rate asks for
// (E.7), such as 1 s for "1/s": a number, a slash, and s, m, h or d, or a word
// that starts so. false: it cannot be understood.
func gapOf(rate string) (time.Duration, bool) {
	number, unit, ok := strings.Cut(rate, "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(n > 0) || math.IsInf(n, 0) {
		return 0, false
	}
	var per time.Duration
	switch strings.ToLower(strings.TrimSpace(unit)) {
	case "s", "sec", "second":
		per = time.Second
	case "m", "min", "minute":
		per = time.Minute
	case "h", "hour":
		per = time.Hour
	case "d", "day":
		per = 24 * time.Hour
	default:
		return 0, false
	}
	gap := float64(per) / n
	if gap >= float64(maxGap) {
		return maxGap, true
	}
	return time.Duration(gap), true
}

// pace keeps a gap between the starts of requests, in the order of asking.
type pace struct {
	mu   sync.Mutex
	gap  time.Duration
	next time.Time
}

func (p *pace) set(gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gap = gap
}

// wait gives way to those who have asked before.
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
	t := time.NewTimer(turn)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
