package access

import (
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

// maxBuckets is the maximum number of buckets in memory, of about 220 bytes each. The least
// recently used ones are dropped.
const maxBuckets = 1 << 18

const (
	burstTime = 2  // size of a burst, in seconds at the full rate
	wide      = 16 // limit of a network, as a multiple of the limit of one client
)

// limits holds the token buckets of clients. Each replica enforces its share of each quota.
type limits struct {
	now      func() time.Time
	replicas func() int
	seed     maphash.Seed

	mu      sync.Mutex
	buckets *simplelru.LRU[uint64, *rate.Limiter]
	parts   int // number of replicas for which the buckets are sized
}

// quota is a rate limit per client.
type quota struct {
	number   int        // identifies the quota in the keys of buckets
	rate     rate.Limit // units per second
	burst    int        // maximum units at once, at least 1
	minBurst int        // minimum burst of a replica's share of the quota
	name     string     // name in RateLimit fields
}

// newQuota returns a quota of perSecond units, with a burst of burstTime seconds.
func newQuota(number int, name string, perSecond float64) *quota {
	burst := int(min(max(1, math.Ceil(burstTime*perSecond)), math.MaxInt32/wide))
	return &quota{number: number, rate: rate.Limit(perSecond), burst: burst, minBurst: 1, name: name}
}

// policy returns the value of RateLimit-Policy for a bucket of the quota.
func (q *quota) policy(b *rate.Limiter) string {
	window := int64(math.Ceil(float64(b.Burst()) / float64(b.Limit())))
	return `"` + q.name + `";q=` + strconv.Itoa(b.Burst()) + ";w=" + strconv.FormatInt(max(1, window), 10)
}

// Numbers of the quotas. The numbers of bot rules start at quotaClasses.
const (
	quotaContent = iota + 1
	quotaGuesses
	quotaBytes
	quotaAllBytes
	quotaClasses
)

// Burst and rate of wrong keys per network.
const (
	guessesAtOnce    = 30
	guessesPerSecond = 0.5
)

// Client is the unit to which a limit applies: a key, a bot, or an address.
type Client struct {
	key  string
	bot  string
	from netip.Addr // address; for IPv6, the network of one customer
}

func newLimits() *limits {
	buckets, _ := simplelru.NewLRU[uint64, *rate.Limiter](maxBuckets, nil) // fails only for a size below 1
	return &limits{now: time.Now, replicas: func() int { return 1 }, seed: maphash.MakeSeed(), buckets: buckets}
}

// of returns a client's bucket, and the bucket of its network, which is a /24, or a /48 for IPv6. A
// network's limit is sixteen times a client's. around is nil for a key or a bot.
func (l *limits) of(q *quota, c Client) (one, around *rate.Limiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.replicas(); n != l.parts {
		l.parts = n
		l.buckets.Purge()
	}
	if c.key != "" || c.bot != "" || !c.from.IsValid() {
		return l.bucket(q, c, netip.Prefix{}, 1), nil
	}
	bits, network := 64, 48
	if c.from.Is4() {
		bits, network = 32, 24
	}
	return l.bucket(q, c, netip.PrefixFrom(c.from, bits), 1), l.bucket(q, c, netip.PrefixFrom(c.from, network), wide)
}

// bucket returns the bucket of a key, a bot or a network. times multiplies the quota's rate and
// burst. The caller holds the lock.
func (l *limits) bucket(q *quota, c Client, network netip.Prefix, times int) *rate.Limiter {
	id := maphash.Comparable(l.seed, struct {
		quota    int
		key, bot string
		network  netip.Prefix
	}{q.number, c.key, c.bot, network.Masked()})
	b, ok := l.buckets.Get(id)
	if !ok {
		burst := max(q.minBurst, (q.burst+l.parts-1)/l.parts)
		b = rate.NewLimiter(q.rate*rate.Limit(times)/rate.Limit(l.parts), burst*times)
		l.buckets.Add(id, b)
	}
	return b
}

// take counts a request if it is allowed. Otherwise, take counts nothing, and wait is the time
// until the next request is allowed.
func (l *limits) take(q *quota, c Client) (is remainingQuota, wait time.Duration) {
	now := l.now()
	one, around := l.of(q, c)
	is = remainingQuota{q: q, bucket: one, full: until(one, now, one.Burst())}
	if wait = until(one, now, 1); wait > 0 {
		return is, wait
	}
	if around != nil {
		if wait = until(around, now, 1); wait > 0 || !around.AllowN(now, 1) {
			is.full = wait
			return is, max(wait, 1)
		}
	}
	one.AllowN(now, 1) // a concurrent request may have emptied the bucket
	is.left, is.full = int64(one.TokensAt(now)), until(one, now, one.Burst())
	return is, 0
}

// until returns the time until a bucket has n tokens.
func until(b *rate.Limiter, now time.Time, n int) time.Duration {
	lacking := float64(n) - b.TokensAt(now)
	return max(0, time.Duration(math.Ceil(lacking/float64(b.Limit())*float64(time.Second))))
}

// spent returns the time until the client may send another request, or 0 if it may send one now.
func (l *limits) spent(q *quota, c Client) (wait time.Duration) {
	now := l.now()
	one, around := l.of(q, c)
	if wait = until(one, now, 1); around != nil {
		wait = max(wait, until(around, now, 1))
	}
	return wait
}

// pace counts n units and returns the wait before they may be used. n is at most the burst. undo
// reverts the count.
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

// tooMany returns the refusal of a request over a limit.
func tooMany(text string, wait time.Duration) error {
	return &Refusal{
		Err:   millrace.RequestError{Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: text},
		Retry: int(min(max(1, math.Ceil(wait.Seconds())), 3600)),
	}
}

// Charge counts the request against the content limit, unless the request is already counted or was
// sent by the owner. It returns an error if the client is over the limit.
func (q *Request) Charge() error {
	if q.guard.rate == nil || q.charged || q.Owned {
		return nil
	}
	q.charged = true
	return q.count(q.guard.rate, q.client())
}

// count counts one request against a quota.
func (q *Request) count(of *quota, c Client) error {
	is, wait := q.guard.limits.take(of, c)
	if q.counts < len(q.remainingQuotas) {
		q.remainingQuotas[q.counts] = is
		q.counts++
	}
	if wait > 0 {
		return tooMany("too many requests; send fewer requests per second", wait)
	}
	return nil
}

// remainingQuota is the remaining quota of a client, and the time until it is full.
type remainingQuota struct {
	q      *quota
	bucket *rate.Limiter
	left   int64 // number of requests allowed now
	full   time.Duration
}

// SetRateLimit sets the RateLimit fields of the quotas that count the request
// (draft-ietf-httpapi-ratelimit-headers). A 304 has no such fields, because caches would store them
// (RFC 9111, section 3.2).
func (q *Request) SetRateLimit(h http.Header) {
	if q.counts == 0 {
		return
	}
	policies, limits := make([]string, q.counts), make([]string, q.counts)
	for i, c := range q.remainingQuotas[:q.counts] {
		policies[i] = c.q.policy(c.bucket)
		limits[i] = `"` + c.q.name + `";r=` + strconv.FormatInt(c.left, 10) + ";t=" + strconv.FormatInt(int64((c.full+time.Second-1)/time.Second), 10)
	}
	h["Ratelimit-Policy"], h["Ratelimit"] = policies, limits
}

// client returns the client of a request: its key if the key is valid, whatever its scopes, or else
// its address.
func (q *Request) client() Client {
	if q.r.Header["Authorization"] != nil {
		if _, err := q.may(millrace.ScopeRead); err == nil || q.key != nil {
			return Client{key: q.key.Name}
		}
	}
	return q.network()
}

// ClientAt returns the client of an address, see [Network].
func ClientAt(a netip.Addr) Client { return Client{from: Network(a)} }

// network returns the client of the request's address.
func (q *Request) network() Client {
	return ClientAt(q.Address())
}

// Network returns an IPv4 address unchanged. For an IPv6 address, it returns the /64 network, which
// belongs to one customer.
func Network(a netip.Addr) netip.Addr {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
