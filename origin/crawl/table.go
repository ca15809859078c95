package crawl

import (
	"math"
	"sync"
	"time"
)

// state is the state of an address in a run.
type state uint8

const (
	unknown state = iota
	pending       // found, but not fetched yet
	hasPage       // the address has a page
	aliased       // the address is an alias
	gone          // the page is missing or not allowed
	claimed       // the canonical address of a page, on another site
	refused       // excluded by robots.txt or a limit
)

// entry is the state of one address in memory. An entry takes 16 bytes, and its key 8.
type entry struct {
	// about is the page's sketch. For an alias, it is the key of the page to which the alias
	// points. For a claimed address, it is the key of the page that claims the address.
	about    uint64
	hint     uint32 // newest modification time in the lists, in seconds since 1970, or 0
	asked    uint32 // time of the last fetch in this process, in seconds since 1970, or 0
	interval uint16 // number of minutes until the address is due again
	state    state
	flags    uint8
}

// date records a modification time from a list. The newest time counts, whatever the order of the
// lists.
func (e *entry) date(hint int64) { e.hint = max(e.hint, uint32(min(max(hint, 0), math.MaxUint32))) }

// Flags for an address in the current run.
const (
	named         uint8 = 1 << iota // the sink has stored or received the address
	tried                           // the address was fetched
	keptUnchanged                   // the page was yielded as unchanged
	listed                          // a sitemap contains the address

	// The upper bits are kept between runs. They contain the number of the last sitemap with the
	// address, or 0.
	byShift = 4
	byMask  = 0xF << byShift
)

// Limits of the interval after which a page is fetched again.
const (
	minInterval      = 5 * time.Minute
	maxInterval      = 24 * time.Hour
	minFirstInterval = time.Hour
	maxFirstInterval = 24 * time.Hour
)

// minutes converts an interval to minutes, within the limits.
func minutes(d time.Duration) uint16 {
	return uint16(min(max(d, minInterval), maxInterval) / time.Minute)
}

// checked records a fetch of an address. age is the age of the page, or 0 if unknown.
func (e *entry) checked(now time.Time, changed bool, age time.Duration) {
	switch {
	case e.interval == 0:
		e.interval = minutes(min(max(age/10, minFirstInterval), maxFirstInterval))
	case changed:
		e.interval = minutes(time.Duration(e.interval) * time.Minute / 2)
	default:
		e.interval = minutes(time.Duration(e.interval) * time.Minute * 3 / 2)
	}
	e.asked = seconds(now)
}

// due reports whether to fetch an address again. If the clock was set back, the address is due
// after one interval.
func (e *entry) due(now time.Time) bool {
	if e.asked == 0 {
		return true
	}
	if e.asked > seconds(now) {
		e.asked = seconds(now)
	}
	return seconds(now) >= e.next()
}

func (e *entry) next() uint32 { return e.asked + uint32(e.interval)*60 }

func seconds(t time.Time) uint32 { return uint32(max(t.Unix(), 1)) }

// table contains the state of all addresses. Workers read it while the goroutine of the run writes
// it.
type table struct {
	mu sync.RWMutex
	m  map[uint64]entry
}

func (t *table) get(k uint64) (entry, bool) {
	t.mu.RLock()
	e, ok := t.m[k]
	t.mu.RUnlock()
	return e, ok
}

func (t *table) set(k uint64, e entry) {
	t.mu.Lock()
	t.m[k] = e
	t.mu.Unlock()
}

func (t *table) drop(k uint64) {
	t.mu.Lock()
	delete(t.m, k)
	t.mu.Unlock()
}

// begin removes the state of the previous run. If all is set, begin removes everything.
func (t *table) begin(all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if all || t.m == nil {
		t.m = map[uint64]entry{}
		return
	}
	for k, e := range t.m {
		e.flags, e.state, e.about = e.flags&byMask, unknown, 0
		t.m[k] = e
	}
}

// prune removes addresses that the sink has not stored.
func (t *table) prune() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, e := range t.m {
		if e.flags&named == 0 {
			delete(t.m, k)
		}
	}
}

// withdrawn marks an address as due if a changed sitemap contained it earlier and no sitemap
// contains it now. Because several sitemaps share a number, a few addresses of other sitemaps
// become due, too.
func (t *table) withdrawn(changed [byMask>>byShift + 1]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, e := range t.m {
		if by := e.flags & byMask >> byShift; by != 0 && changed[by] && e.flags&listed == 0 {
			e.flags &^= byMask
			e.asked, e.hint = 0, 0
			t.m[k] = e
		}
	}
}

// earliest returns the time at which the first address is due, or 0 if no address was fetched.
func (t *table) earliest() uint32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var least uint32
	for _, e := range t.m {
		if e.asked != 0 && (e.state == hasPage || e.state == pending) && (least == 0 || e.next() < least) {
			least = e.next()
		}
	}
	return least
}
