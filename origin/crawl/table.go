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
	pending       // found and not yet fetched
	had           // the address has a page
	muted         // an alias, without a page of its own
	gone          // missing or not allowed
	claimed       // canonical address of a page on another site
	refused       // excluded by robots.txt or a limit
)

// entry is the state of one address in memory. It has 16 bytes, and its key has 8.
type entry struct {
	// about is the page's sketch. For a muted address, it is the key of the page to which the alias
	// points. For a claimed address, it is the key of the page that claims the address.
	about    uint64
	hint     uint32 // newest modification time in the lists, seconds since 1970; 0 = none
	asked    uint32 // time of the last fetch by this process, seconds since 1970; 0 = none
	interval uint16 // minutes until it is due again
	state    state
	flags    uint8
}

// date adds a modification time in a list. The newest counts, so the order of the lists does
// not matter.
func (e *entry) date(hint int64) { e.hint = max(e.hint, uint32(min(max(hint, 0), math.MaxUint32))) }

// Flags of an address in the current run.
const (
	named  uint8 = 1 << iota // the sink has stored or received it
	tried                    // the address was fetched
	stood                    // the page was yielded as unchanged
	listed                   // a sitemap names it

	// The upper bits survive a run. They hold the number of the sitemap that last named the
	// address, 0 = none.
	byShift = 4
	byMask  = 0xF << byShift
)

// The limits of the intervals at which a page is fetched again.
const (
	leastInterval = 5 * time.Minute
	mostInterval  = 24 * time.Hour
	firstLeast    = time.Hour
	firstMost     = 24 * time.Hour
)

// minutes converts an interval for an entry, within its limits.
func minutes(d time.Duration) uint16 {
	return uint16(min(max(d, leastInterval), mostInterval) / time.Minute)
}

// checked records a fetch of an address. age is the age of the page, 0 if unknown.
func (e *entry) checked(now time.Time, changed bool, age time.Duration) {
	switch {
	case e.interval == 0:
		e.interval = minutes(min(max(age/10, firstLeast), firstMost))
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

// table holds the state of all addresses. Workers read it while the goroutine of the run
// writes it.
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

// begin removes the state of the last run. If all is set, it removes everything.
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

// prune removes the addresses that the sink has not stored.
func (t *table) prune() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, e := range t.m {
		if e.flags&named == 0 {
			delete(t.m, k)
		}
	}
}

// withdrawn makes the addresses due that a changed sitemap named earlier, if no sitemap names them
// now. Because several sitemaps share a number, a few addresses of other sitemaps also become due.
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

// earliest returns the time when the first address is due, or 0 without addresses.
func (t *table) earliest() uint32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var least uint32
	for _, e := range t.m {
		if e.asked != 0 && (e.state == had || e.state == pending) && (least == 0 || e.next() < least) {
			least = e.next()
		}
	}
	return least
}
