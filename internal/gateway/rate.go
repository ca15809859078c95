package gateway

import (
	"context"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/millrace/millrace"
)

// rates limits how often each client asks. It remembers a bounded number of
// clients: whoever was not seen for longer than all others is forgotten first,
// and begins anew should it come back.
type rates struct {
	each  rate.Limit
	burst int
	now   func() time.Time

	mu         sync.Mutex
	young, old map[client]*rate.Limiter // two generations, so that forgetting costs nothing
}

// client is whom a limit counts for: a key, or else an address, with those
// that one customer of a network has.
type client struct {
	key  string
	from netip.Addr
}

// generation is how many clients are new in one generation at most.
const generation = 16 << 10

func newRates(perSecond float64) *rates {
	return &rates{
		each: rate.Limit(perSecond), burst: int(min(max(1, math.Ceil(2*perSecond)), math.MaxInt32)), now: time.Now,
		young: make(map[client]*rate.Limiter),
	}
}

// take counts a request. wait is 0 if it is let in, else when the next one will be.
func (l *rates) take(c client) (wait time.Duration) {
	l.mu.Lock()
	lim := l.young[c]
	if lim == nil {
		if lim = l.old[c]; lim == nil {
			lim = rate.NewLimiter(l.each, l.burst)
		}
		if len(l.young) >= generation {
			l.young, l.old = make(map[client]*rate.Limiter), l.young
		}
		l.young[c] = lim
	}
	l.mu.Unlock()
	now := l.now()
	next := lim.ReserveN(now, 1)
	if wait = next.DelayFrom(now); wait > 0 {
		next.CancelAt(now) // what is refused does not count
	}
	return wait
}

// tooMany is the refusal of a request too many.
func tooMany(text string, wait time.Duration) error {
	return &refusal{
		err:   millrace.RequestError{Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: text},
		retry: int(min(max(1, math.Ceil(wait.Seconds())), 3600)),
	}
}

// charge counts a request for content, once.
func (w *response) charge() error {
	if w.g.rates == nil || w.charged {
		return nil
	}
	w.charged = true
	if wait := w.g.rates.take(w.who()); wait > 0 {
		return tooMany("too many requests: slow down", wait)
	}
	return nil
}

// who says whom a request counts for: a key, whatever else is wrong with it,
// else an address.
func (w *response) who() client {
	c := client{from: w.client()}
	if c.from.Is6() {
		if p, err := c.from.Prefix(64); err == nil {
			c.from = p.Addr()
		}
	}
	if w.r.Header["Authorization"] != nil {
		if _, err := w.may(millrace.RightRead); err == nil || w.key != nil {
			c = client{key: w.key.Name}
		}
	}
	return c
}

// client gives the address that a request comes from. X-Forwarded-For counts
// as far as proxies have written it that are trusted: from its end.
func (w *response) client() netip.Addr {
	from := address(w.r.RemoteAddr)
	if !w.g.trusted(from) {
		return from
	}
	hops := strings.Split(strings.Join(w.r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		next := address(strings.TrimSpace(hop))
		if !next.IsValid() {
			break
		}
		if from = next; !w.g.trusted(from) {
			break
		}
	}
	return from
}

func (g *Gateway) trusted(a netip.Addr) bool {
	return slices.ContainsFunc(g.o.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// address reads an IP address, which may have a port. A zone, which may be any
// text, is left out.
func address(s string) netip.Addr {
	if a, err := netip.ParseAddrPort(s); err == nil {
		return a.Addr().Unmap().WithZone("")
	}
	a, _ := netip.ParseAddr(strings.Trim(s, "[]")) // the zero value is no address
	return a.Unmap().WithZone("")
}

// turns lets a few do something costly at once; others wait a little.
type turns struct {
	places chan struct{}
	wait   time.Duration
}

func newTurns(most int) *turns { return &turns{make(chan struct{}, most), 2 * time.Second} }

// enter waits for a place. Call end to give it back.
func (t *turns) enter(ctx context.Context) (end func(), err error) {
	end = func() { <-t.places }
	select {
	case t.places <- struct{}{}:
		return end, nil
	default:
	}
	timer := time.NewTimer(t.wait)
	defer timer.Stop()
	select {
	case t.places <- struct{}{}:
		return end, nil
	case <-timer.C:
		return nil, tooMany("too many searches at once: try again", t.wait)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
