package crawl

import (
	"sync"
	"time"
)

// state is what a run knows of an address.
type state uint8

const (
	unknown state = iota
	pending       // found, not yet had
	had           // a page
	muted         // no page of its own
	gone          // not there, or not for us
	claimed       // an address on another site that one of the pages goes by
	refused       // never asked for: robots.txt, or a limit
)

// entry is what is kept in memory of one address: 16 bytes, and 8 for its key.
type entry struct {
	// about is the page's sketch; of a muted one, the key of the page that
	// is meant; of a claimed one, the key of the page that claims it.
	about    uint64
	asked    uint32 // when, seconds since 1970; 0 = not by this process
	interval uint16 // minutes until it is due again
	state    state
	flags    uint8
}

// What happened to an address in the present run.
const (
	named  uint8 = 1 << iota // the sink holds it, or was given it
	tried                    // it was asked for
	stood                    // it was named as standing
	listed                   // a sitemap names it

	// The upper bits of the flags stay from one run to the next: a number for
	// the sitemap that named the address last, 0 = none.
	byShift = 4
	byMask  = 0xF << byShift
)

// The intervals at which a page is asked for again.
const (
	leastInterval = 5 * time.Minute
	mostInterval  = 24 * time.Hour
	firstLeast    = time.Hour
	firstMost     = 24 * time.Hour
)

// minutes returns an interval as an entry keeps it.
func minutes(d time.Duration) uint16 {
	return uint16(min(max(d, leastInterval), mostInterval) / time.Minute)
}

// checked notes that an address was asked for. age is how old the page is, 0
// if that is not known.
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

// due reports whether an address is to be asked for again. A clock that was
// set back puts nothing off for longer than its interval.
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

// table is what is kept of all addresses. Workers read it while the run's own
// goroutine writes it.
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

// begin forgets what was only about the last run; all forgets everything.
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

// prune forgets the addresses that the sink does not hold.
func (t *table) prune() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, e := range t.m {
		if e.flags&named == 0 {
			delete(t.m, k)
		}
	}
}

// withdrawn makes the addresses due at once that one of some sitemaps has named
// before, and now none does: the sitemaps have changed. As their numbers are
// few, some that another sitemap names are among them.
func (t *table) withdrawn(changed [byMask>>byShift + 1]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, e := range t.m {
		if by := e.flags & byMask >> byShift; by != 0 && changed[by] && e.flags&listed == 0 {
			e.flags &^= byMask
			e.asked = 0
			t.m[k] = e
		}
	}
}

// earliest returns when the first address is due, or 0 if none.
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
