package schedule

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Default bounds of the learned interval, and its initial value.
const (
	DefaultMin = 5 * time.Minute
	DefaultMax = 24 * time.Hour
	start      = time.Hour
)

const (
	retry     = time.Minute // pause after a first failure, doubled by each further failure
	share     = 4           // a pause is at least this many times as long as the scan
	softly    = time.Second // minimum pause before a hinted scan
	maxIdle   = 10          // maximum of State.Idle
	tolerance = 10          // the maximum jitter is the pause divided by this number
)

// Rules limit the frequency of scans. The zero value works.
type Rules struct {
	Min, Max time.Duration  // bounds of the interval. If zero, DefaultMin, DefaultMax; see Scan for longer pauses.
	Rand     func() float64 // in [0, 1), for the jitter. If nil, math/rand.
}

// State is the schedule of one site. The zero value is a site that was never
// scanned. Callers store it as JSON.
type State struct {
	Interval time.Duration `json:"interval"`           // learned interval in nanoseconds, or 0
	Last     time.Time     `json:"last"`               // end of the last scan
	Next     time.Time     `json:"next"`               // time of the next scan
	Soonest  time.Time     `json:"soonest"`            // earliest time of a hinted scan
	Held     bool          `json:"held,omitempty"`     // the site has set a time before which it allows no scan
	Failures int           `json:"failures,omitempty"` // failed scans in a row
	Idle     int           `json:"idle,omitempty"`     // hinted scans in a row that found nothing
}

// Scan is the result of one scan of a site.
type Scan struct {
	Ended       time.Time
	Took        time.Duration // the pause is at least four times as long
	Changed     bool          // the scan found changes
	Failed      bool          // the scan failed, so the state of the site is unknown
	Refused     bool          // with Failed: the site refuses scans
	Hinted      bool          // a hint caused the scan
	Unconfirmed bool          // a second scan must confirm the result
	// NotBefore is the earliest time at which the site allows the next scan; zero = any time.
	NotBefore time.Time
	// Gap is the minimum pause that the site's rate limits require.
	Gap time.Duration
}

func (r *Rules) bounds() (least, most time.Duration) {
	least, most = cmp.Or(r.Min, DefaultMin), cmp.Or(r.Max, DefaultMax)
	return least, max(least, most)
}

func (r *Rules) random() float64 {
	if r.Rand != nil {
		return r.Rand()
	}
	return rand.Float64()
}

// After returns the state of a site after a scan.
func (r *Rules) After(s State, l Scan) State {
	least, most := r.bounds()
	interval := min(max(cmp.Or(s.Interval, start), least), most)
	wait := time.Duration(0)
	switch {
	case l.Failed && l.Refused:
		s.Failures, wait = s.Failures+1, most
	case l.Failed:
		wait = most
		if first, n := max(least, min(retry, interval)), min(s.Failures, 60); first <= most>>n {
			wait = first << n
		}
		s.Failures++
	case s.Interval == 0: // there was no earlier scan to compare with
	case l.Changed && l.Hinted:
		s.Idle = 0
	case l.Changed:
		interval, s.Idle = max(interval/2, least), 0
	case l.Hinted:
		s.Idle = min(s.Idle+1, maxIdle)
	default:
		interval += min(interval/2, most-interval)
	}
	if !l.Failed {
		s.Failures, s.Interval, wait = 0, interval, interval
	}
	if l.Unconfirmed {
		wait = min(wait, max(least, retry))
	}
	wait += time.Duration((2*r.random() - 1) * float64(wait/tolerance))
	// After a scan that takes hours, the next one must not follow immediately.
	floor := max(l.Gap, share*l.Took, 0)
	s.Last, s.Held = l.Ended, l.NotBefore.After(l.Ended)
	s.Next = l.Ended.Add(max(wait, floor))
	if s.Soonest = l.Ended.Add(max(softly<<s.Idle, floor)); l.Failed || s.Soonest.After(s.Next) {
		s.Soonest = s.Next
	}
	if l.NotBefore.After(s.Soonest) {
		s.Soonest = l.NotBefore
	}
	if l.NotBefore.After(s.Next) {
		// Add a jitter, so that clients with the same Retry-After do not return in the same
		// second.
		s.Next = l.NotBefore.Add(time.Duration(r.random() * float64(min(retry, most/tolerance))))
	}
	return s
}

// Resume adapts a state that another process stored, perhaps with other bounds. After a failed
// scan, the next one is due at once, because this process may have something that the other
// process lacked, such as a key. If the site has set a time for the next scan, it still applies.
func (r *Rules) Resume(s State) State {
	least, most := r.bounds()
	if s.Failures > 0 && !s.Held {
		s.Next = s.Last
	}
	if s.Interval != 0 {
		s.Interval = min(max(s.Interval, least), most)
	}
	if latest := s.Last.Add(most + most/tolerance); !s.Held && s.Next.After(latest) {
		s.Next = latest
	}
	return s
}

// Due returns the time until the next scan, or 0 if it is due. If the clock was set back, Due
// returns at most the planned pause.
func (s State) Due(now time.Time) time.Duration { return s.until(s.Next, now) }

// Hint returns the time until a hinted scan is allowed.
func (s State) Hint(now time.Time) time.Duration { return s.until(s.Soonest, now) }

func (s State) until(t, now time.Time) time.Duration {
	return max(0, min(t.Sub(now), t.Sub(s.Last)))
}
