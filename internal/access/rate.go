package access

import (
	"context"
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/millrace/millrace"
)

// mostBuckets bounds how many clients are remembered, each in some 220 bytes. When
// there are more, those are forgotten that asked least recently.
const mostBuckets = 1 << 18

const (
	burstTime = 2  // seconds whose share a client may take at once
	wide      = 16 // times what one client may take, for all of its network
)

// limits holds the token buckets of clients.
type limits struct {
	now  func() time.Time
	seed maphash.Seed

	mu      sync.Mutex
	buckets *simplelru.LRU[uint64, *rate.Limiter]
}

// quota is how much each client may take.
type quota struct {
	number int        // tells quotas apart
	rate   rate.Limit // units a second
	burst  int        // units at once, at least 1
	name   string     // as RateLimit fields have it
	policy string     // the value of RateLimit-Policy
}

// newQuota returns a quota of a rate per second.
func newQuota(number int, name string, perSecond float64) *quota {
	burst := int(min(max(1, math.Ceil(burstTime*perSecond)), math.MaxInt32/wide))
	q := &quota{number: number, rate: rate.Limit(perSecond), burst: burst, name: name}
	window := int64(math.Ceil(float64(burst) / perSecond))
	q.policy = `"` + name + `";q=` + strconv.Itoa(burst) + ";w=" + strconv.FormatInt(max(1, window), 10)
	return q
}

// Numbers of the quotas. From the last on they are those of classes.
const (
	quotaContent = iota + 1
	quotaGuesses
	quotaBytes
	quotaAllBytes
	quotaClasses
)

// A network may try so many wrong keys at once, and so many a second.
const (
	guessesAtOnce    = 30
	guessesPerSecond = 0.5
)

// Client is whom a limit counts for: a key, a bot, or else an address.
type Client struct {
	key  string
	bot  string
	from netip.Addr // of IPv6 its network, which one customer has
}

func newLimits() *limits {
	buckets, _ := simplelru.NewLRU[uint64, *rate.Limiter](mostBuckets, nil) // an error is for a size below 1
	return &limits{now: time.Now, seed: maphash.MakeSeed(), buckets: buckets}
}

// of returns the bucket of a client, and that of the network around it: a /24, or
// of IPv6 a /48, whose clients share sixteen times what one has. It is nil for a key
// or a bot.
func (l *limits) of(q *quota, c Client) (one, around *rate.Limiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.key != "" || c.bot != "" || !c.from.IsValid() {
		return l.bucket(q, c, netip.Prefix{}, 1), nil
	}
	bits, network := 64, 48
	if c.from.Is4() {
		bits, network = 32, 24
	}
	return l.bucket(q, c, netip.PrefixFrom(c.from, bits), 1), l.bucket(q, c, netip.PrefixFrom(c.from, network), wide)
}

// bucket returns the bucket of a client with an address in a network. The lock is
// held.
func (l *limits) bucket(q *quota, c Client, network netip.Prefix, times int) *rate.Limiter {
	id := maphash.Comparable(l.seed, struct {
		quota    int
		key, bot string
		network  netip.Prefix
	}{q.number, c.key, c.bot, network.Masked()})
	b, ok := l.buckets.Get(id)
	if !ok {
		b = rate.NewLimiter(q.rate*rate.Limit(times), q.burst*times)
		l.buckets.Add(id, b)
	}
	return b
}

// take counts a request. wait is 0 if it is let in, with how many more the client
// may make at once and when it has all of them again; else it is when the next one
// will be let in, and nothing is counted.
func (l *limits) take(q *quota, c Client) (left int64, full, wait time.Duration) {
	now := l.now()
	one, around := l.of(q, c)
	if full, wait = until(one, now, q.burst), until(one, now, 1); wait > 0 {
		return 0, full, wait
	}
	if around != nil {
		if wait = until(around, now, 1); wait > 0 || !around.AllowN(now, 1) {
			return 0, wait, max(wait, 1)
		}
	}
	one.AllowN(now, 1) // another request may have been faster: then the bucket is empty
	return int64(one.TokensAt(now)), until(one, now, q.burst), 0
}

// until returns how long it takes until a bucket has n tokens.
func until(b *rate.Limiter, now time.Time, n int) time.Duration {
	lacking := float64(n) - b.TokensAt(now)
	return max(0, time.Duration(math.Ceil(lacking/float64(b.Limit())*float64(time.Second))))
}

// spent returns when a client could take something again, 0 if at once.
func (l *limits) spent(q *quota, c Client) (wait time.Duration) {
	now := l.now()
	one, around := l.of(q, c)
	if wait = until(one, now, 1); around != nil {
		wait = max(wait, until(around, now, 1))
	}
	return wait
}

// pace counts n units, at most the burst of the quota, and returns how long to wait
// before they are spent. undo gives them back.
func (l *limits) pace(q *quota, c Client, n int) (wait time.Duration, undo func()) {
	now := l.now()
	one, around := l.of(q, c)
	first := one.ReserveN(now, n)
	wait = first.DelayFrom(now)
	if around == nil {
		return wait, func() { first.CancelAt(now) }
	}
	second := around.ReserveN(now, n)
	return max(wait, second.DelayFrom(now)), func() { first.CancelAt(now); second.CancelAt(now) }
}

// tooMany is the refusal of a request too many.
func tooMany(text string, wait time.Duration) error {
	return &Refusal{
		Err:   millrace.RequestError{Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: text},
		Retry: int(min(max(1, math.Ceil(wait.Seconds())), 3600)),
	}
}

// Charge counts the request as one for content, once.
func (q *Request) Charge() error {
	if q.guard.rate == nil || q.charged || q.Owned {
		return nil
	}
	q.charged = true
	return q.count(q.guard.rate, q.who())
}

// count takes one request from a quota.
func (q *Request) count(of *quota, c Client) error {
	left, full, wait := q.guard.limits.take(of, c)
	if q.counts < len(q.standings) {
		q.standings[q.counts] = standing{of, left, full}
		q.counts++
	}
	if wait > 0 {
		return tooMany("too many requests: slow down", wait)
	}
	return nil
}

// standing is what a client has left of a quota, and how long it takes until it
// has all of it.
type standing struct {
	q    *quota
	left int64
	full time.Duration
}

// SetRateLimit sets the fields that say what is left of the quotas that count the
// request (draft-ietf-httpapi-ratelimit-headers). A 304 has nothing of it:
// caches would keep it with what they hold (RFC 9111, section 3.2).
func (q *Request) SetRateLimit(h http.Header) {
	if q.counts == 0 {
		return
	}
	policies, limits := make([]string, q.counts), make([]string, q.counts)
	for i, c := range q.standings[:q.counts] {
		policies[i] = c.q.policy
		limits[i] = `"` + c.q.name + `";r=` + strconv.FormatInt(c.left, 10) + ";t=" + strconv.FormatInt(int64((c.full+time.Second-1)/time.Second), 10)
	}
	h["Ratelimit-Policy"], h["Ratelimit"] = policies, limits
}

// who says whom a request counts for: a key, whatever else is wrong with it,
// else an address.
func (q *Request) who() Client {
	if q.r.Header["Authorization"] != nil {
		if _, err := q.may(millrace.ScopeRead); err == nil || q.key != nil {
			return Client{key: q.key.Name}
		}
	}
	return q.network()
}

// ClientAt returns the client at an address, of IPv6 in the network that one
// customer has.
func ClientAt(a netip.Addr) Client { return Client{from: Network(a)} }

// network returns the client by its address.
func (q *Request) network() Client {
	return ClientAt(q.Address())
}

// Network returns an address, of IPv6 the network that one customer has.
func Network(a netip.Addr) netip.Addr {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
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
