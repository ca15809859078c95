package gateway

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/millrace/millrace"
)

// limits remembers what clients have taken, in bounded memory: some sixteen
// bytes for each that has not paid it back yet, and 32 MB at most. Whoever has
// paid back is as good as new and needs no place. Should there be more than two
// million who have not, those are forgotten first who owe the least.
type limits struct {
	now    func() time.Time
	start  time.Time
	seed   maphash.Seed
	shards [1 << shardBits]limitShard
}

// A shard is a hash table. An entry may stand in one of two buckets; a table
// grows when it finds no place in either.
const (
	shardBits  = 6
	ways       = 8                     // entries of a bucket: two lines of the processor's cache
	leastSlots = 8 * ways              // of a shard
	mostSlots  = 1 << (21 - shardBits) // the same, two million in all
	burstTime  = 2                     // seconds whose share a client may take at once
	wide       = 16                    // times what one client may take, for all around it
)

type limitShard struct {
	mu    sync.Mutex
	slots []slot
	_     [32]byte // a line of its own
}

// slot is what a client owes: it has paid back at a time, in nanoseconds since
// the start.
type slot struct {
	id   uint64 // 0 = nobody's
	paid int64
}

// quota is how much each client may take: burst at once, and one unit more every
// so often.
type quota struct {
	number int           // tells quotas apart
	every  time.Duration // for one unit
	burst  int64         // units, at least 1
	name   string        // as RateLimit fields have it
	policy string        // the value of RateLimit-Policy
}

// newQuota makes a quota of a rate per second.
func newQuota(number int, name string, perSecond float64) *quota {
	every := max(time.Duration(float64(time.Second)/perSecond), 1)
	burst := int64(min(max(1, math.Ceil(burstTime*perSecond)), math.MaxInt32))
	q := &quota{number: number, every: every, burst: burst, name: name}
	window := int64(math.Ceil((time.Duration(burst) * every).Seconds()))
	q.policy = `"` + name + `";q=` + strconv.FormatInt(burst, 10) + ";w=" + strconv.FormatInt(max(1, window), 10)
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

// client is whom a limit counts for: a key, a bot, or else an address.
type client struct {
	key  string
	bot  string
	from netip.Addr // of IPv6 its network, which one customer has
}

func newLimits() *limits { return &limits{now: time.Now, start: time.Now(), seed: maphash.MakeSeed()} }

// id gives the name under which a client's debt is remembered, of which nobody
// outside can find two that are the same. bits are those of an address that
// count.
func (l *limits) id(q *quota, c client, bits int) uint64 {
	var b [24]byte
	b[0], b[1] = byte(bits), byte(q.number)
	b[3], b[4] = byte(q.number>>8), byte(q.number>>16)
	switch {
	case c.key != "":
		b[2] = 1
		binary.LittleEndian.PutUint64(b[8:], maphash.String(l.seed, c.key))
	case c.bot != "":
		b[2] = 2
		binary.LittleEndian.PutUint64(b[8:], maphash.String(l.seed, c.bot))
	case c.from.Is4():
		a := c.from.As4()
		copy(b[8:], a[:])
		mask(b[8:12], bits)
	default:
		b[2] = 3
		a := c.from.As16()
		copy(b[8:], a[:])
		mask(b[8:], bits)
	}
	return max(1, maphash.Bytes(l.seed, b[:]))
}

func mask(b []byte, bits int) {
	for i := range b {
		if keep := bits - 8*i; keep < 8 {
			b[i] &= ^byte(0) << (8 - max(0, keep))
		}
	}
}

// take counts a request. wait is 0 if it is let in, with what the client has
// left and when it has paid back; else it is when the next one will be, and
// nothing is counted. Many clients of one network share sixteen times what one
// has: a /24, or of IPv6 a /48.
func (l *limits) take(q *quota, c client) (left int64, full, wait time.Duration) {
	now := int64(l.now().Sub(l.start))
	most := q.burst * int64(q.every)
	ids, costs := l.ids(q, c)
	one, around := ids[0], ids[1]
	owed, wait := l.shard(one).add(one, now, costs[0], most)
	if wait > 0 {
		return 0, time.Duration(owed), wait
	}
	if around != 0 {
		if _, wait = l.shard(around).add(around, now, costs[1], most); wait > 0 {
			l.shard(one).add(one, now, -costs[0], most)
			return 0, wait, wait
		}
	}
	return (most - owed) / costs[0], time.Duration(owed), 0
}

// ids gives the names of a client and of the network around it, 0 if there is
// none, and what a request costs each of them.
func (l *limits) ids(q *quota, c client) (ids [2]uint64, costs [2]int64) {
	costs = [2]int64{int64(q.every), max(1, int64(q.every)/wide)}
	switch {
	case c.key != "" || c.bot != "":
		ids[0] = l.id(q, c, 128)
	case c.from.Is4():
		ids = [2]uint64{l.id(q, c, 32), l.id(q, c, 24)}
	default:
		ids = [2]uint64{l.id(q, c, 64), l.id(q, c, 48)}
	}
	return ids, costs
}

// spent says when a client could take something again, 0 if at once.
func (l *limits) spent(q *quota, c client) (wait time.Duration) {
	now := int64(l.now().Sub(l.start))
	most := q.burst * int64(q.every)
	ids, costs := l.ids(q, c)
	for i, id := range ids {
		if id != 0 {
			wait = max(wait, l.shard(id).owes(id, now)+time.Duration(costs[i]-most))
		}
	}
	return max(0, wait)
}

// pace counts n units in any case, and says how long to wait before they are
// spent. Less than none are given back.
func (l *limits) pace(q *quota, c client, n int64) (wait time.Duration) {
	now := int64(l.now().Sub(l.start))
	id := l.id(q, c, 128)
	owed, _ := l.shard(id).add(id, now, n*int64(q.every), math.MaxInt64)
	return time.Duration(max(0, owed-q.burst*int64(q.every)))
}

func (l *limits) shard(id uint64) *limitShard { return &l.shards[id>>(64-shardBits)] }

// add makes a client owe more time, unless that were more than it may: then it
// says when it would not be. A client that is given back owes less.
func (s *limitShard) add(id uint64, now, cost, most int64) (owed int64, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(id)
	if e == nil {
		e = s.place(id, now)
	}
	paid := max(e.paid, now) + cost
	if paid-now > most {
		return max(0, e.paid-now), time.Duration(paid - now - most)
	}
	e.id, e.paid = id, paid
	return paid - now, 0
}

// owes gives what a client owes.
func (s *limitShard) owes(id uint64, now int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(id); e != nil {
		return time.Duration(max(0, e.paid-now))
	}
	return 0
}

// buckets gives the two buckets of a client.
func (s *limitShard) buckets(id uint64) (one, other []slot) {
	n := uint64(len(s.slots) / ways)
	i, j := id%n, (id>>24)%n
	return s.slots[i*ways : (i+1)*ways], s.slots[j*ways : (j+1)*ways]
}

func (s *limitShard) find(id uint64) *slot {
	if s.slots == nil {
		s.slots = make([]slot, leastSlots)
	}
	one, other := s.buckets(id)
	for _, b := range [2][]slot{one, other} {
		for i := range b {
			if b[i].id == id {
				return &b[i]
			}
		}
	}
	return nil
}

// place finds a place for a client that has none: an empty one, one of a client
// that has paid back, or that of who owes the least. What is in it has gone.
func (s *limitShard) place(id uint64, now int64) *slot {
	for {
		one, other := s.buckets(id)
		var least *slot
		for _, b := range [2][]slot{one, other} {
			for i := range b {
				e := &b[i]
				if e.id == 0 || e.paid <= now {
					*e = slot{}
					return e
				}
				if least == nil || e.paid < least.paid {
					least = e
				}
			}
		}
		if len(s.slots) >= mostSlots {
			*least = slot{}
			return least
		}
		s.grow(now)
	}
}

// grow doubles the table.
func (s *limitShard) grow(now int64) {
	was := s.slots
	s.slots = make([]slot, 2*len(was))
	for _, e := range was {
		if e.id == 0 || e.paid <= now {
			continue
		}
		one, other := s.buckets(e.id)
		put := false
		for _, b := range [2][]slot{one, other} {
			for i := range b {
				if !put && b[i].id == 0 {
					b[i], put = e, true
				}
			}
		}
		// Who finds no place in a table that is half empty begins anew.
	}
}

// tooMany is the refusal of a request too many.
func tooMany(text string, wait time.Duration) error {
	return &refusal{
		err:   millrace.RequestError{Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: text},
		retry: int(min(max(1, math.Ceil(wait.Seconds())), 3600)),
	}
}

// charge counts a request for content, once.
func (q *Request) charge() error {
	if q.guard.rate == nil || q.charged || q.owned {
		return nil
	}
	q.charged = true
	return q.count(q.guard.rate, q.who())
}

// count takes one request from a quota.
func (q *Request) count(of *quota, c client) error {
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

// tell says in the header what is left of the quotas that the request has been
// taken from (draft-ietf-httpapi-ratelimit-headers). A 304 has nothing of it:
// caches would keep it with what they hold (RFC 9111, section 3.2).
func (q *Request) tell(h http.Header) {
	policies, limits := make([]string, q.counts), make([]string, q.counts)
	for i, c := range q.standings[:q.counts] {
		policies[i] = c.q.policy
		limits[i] = `"` + c.q.name + `";r=` + strconv.FormatInt(c.left, 10) + ";t=" + strconv.FormatInt(int64((c.full+time.Second-1)/time.Second), 10)
	}
	h["Ratelimit-Policy"], h["Ratelimit"] = policies, limits
}

// who says whom a request counts for: a key, whatever else is wrong with it,
// else an address.
func (q *Request) who() client {
	if q.r.Header["Authorization"] != nil {
		if _, err := q.may(millrace.ScopeRead); err == nil || q.key != nil {
			return client{key: q.key.Name}
		}
	}
	return q.network()
}

// network gives the client by its address.
func (q *Request) network() client {
	return client{from: customer(q.client())}
}

// customer gives an address, of IPv6 the network that one customer has.
func customer(a netip.Addr) netip.Addr {
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
