package schedule

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// The bounds of what is learned, when nobody has said others, and what it
// starts from.
const (
	DefaultMin = 5 * time.Minute
	DefaultMax = 24 * time.Hour
	start      = time.Hour
)

const (
	retry     = time.Minute // after a first failure, doubled with every further one
	share     = 4           // looks take one part of the time, and this many are left free
	softly    = time.Second // between a look and one that a hint brings about
	maxIdle   = 10          // hints in a row that came to nothing, beyond which they weigh no more
	tolerance = 10          // one part of that many is how much chance moves a look
)

// Rules say how often sites are looked at. The zero value works.
type Rules struct {
	Min, Max time.Duration  // bounds of the time between two looks; 0 = DefaultMin, DefaultMax
	Rand     func() float64 // in [0, 1), so that sites do not all come at once; nil = math/rand
}

// State is what is known of one site. The zero value is a site that has never
// been looked at. Its JSON is for those who keep it.
type State struct {
	Interval time.Duration `json:"interval"`           // learned, in nanoseconds; 0 = nothing yet
	Last     time.Time     `json:"last"`               // when the last look ended
	Next     time.Time     `json:"next"`               // when the next one is due
	Soonest  time.Time     `json:"soonest"`            // when the next one may be, if there is a hint
	Held     bool          `json:"held,omitempty"`     // the site has asked for patience
	Failures int           `json:"failures,omitempty"` // looks in a row that failed
	Idle     int           `json:"idle,omitempty"`     // looks in a row that followed a hint and found nothing
}

// Scan is what came of a look at a site.
type Scan struct {
	Ended   time.Time
	Took    time.Duration
	Changed bool // something was new
	Failed  bool // what there is to see is not known
	Refused bool // with Failed: the site does not want to be looked at
	Hinted  bool // a hint has brought it about
	Doubted bool // what it saw has to be seen twice
	// NotBefore is when the site allows the next look; zero = it has not said.
	NotBefore time.Time
	// Gap is the least time between two looks by the site's own rates.
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

// After gives the state of a site after a look.
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
	case s.Interval == 0: // there was nothing to compare with
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
	if l.Doubted {
		wait = min(wait, max(least, retry))
	}
	wait += time.Duration((2*r.random() - 1) * float64(wait/tolerance))
	// A look that takes hours is not followed by the next one at once.
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
		// All who were told the same time do not come in the same second.
		s.Next = l.NotBefore.Add(time.Duration(r.random() * float64(min(retry, most/tolerance))))
	}
	return s
}

// Resume gives the state of a site that was kept by another process, which may
// have had other bounds. A look that has failed there is due again: what it
// lacked, such as a key, this one may have. What the site has asked for counts.
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

// Due gives how long it is until the next look, 0 if it is due. A clock that has
// been set back makes nobody wait longer than was meant.
func (s State) Due(now time.Time) time.Duration { return s.until(s.Next, now) }

// Hint gives how long it is until the look that a hint is worth.
func (s State) Hint(now time.Time) time.Duration { return s.until(s.Soonest, now) }

func (s State) until(t, now time.Time) time.Duration {
	return max(0, min(t.Sub(now), t.Sub(s.Last)))
}
