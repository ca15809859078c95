package crawl

import "github.com/millrace/millrace"

// limits are those of what keeps addresses from being asked for that has
// refused some. The pages that link to them answer 304: when a limit is lifted
// they are read again without conditions, once.
type limits struct {
	Pages  int    `json:"pages,omitempty"`  // Options.MaxPages; 0 = has refused none
	Depth  int    `json:"depth,omitempty"`  // Options.MaxDepth, likewise
	Robots string `json:"robots,omitempty"` // the rules of robots.txt, likewise; see [fetch.Robots.Fingerprint]
}

// What stands for no rules in limits.
const (
	noRules   = "-" // robots.txt is ignored, or says nothing
	lostCount = "+" // none: more was lost than a cursor holds, and is coming back
)

// pass is a run that reads all pages again and was cut off.
type pass struct {
	By      limits `json:"by"`           // in force
	At      string `json:"at,omitempty"` // it has come to this address
	Refused limits `json:"refused"`      // of By, so far
}

// lifted reports whether something that was refused may not be refused by
// others.
func (l limits) lifted(by limits) bool {
	return l.Pages > 0 && by.Pages > l.Pages || l.Depth > 0 && by.Depth > l.Depth || l.Robots != "" && by.Robots != l.Robots
}

// with returns the tighter of two limits each.
func (l limits) with(m limits) limits {
	if l.Pages == 0 || m.Pages > 0 && m.Pages < l.Pages {
		l.Pages = m.Pages
	}
	if l.Depth == 0 || m.Depth > 0 && m.Depth < l.Depth {
		l.Depth = m.Depth
	}
	if m.Robots != "" {
		l.Robots = m.Robots
	}
	return l
}

// limit finds out what is in force, and whether all pages are to be read
// again.
func (r *run) limit() {
	r.by = limits{Pages: r.o.MaxPages, Depth: r.o.MaxDepth, Robots: noRules}
	if rules := r.robots.Fingerprint(); rules != "" && !r.o.IgnoreRobots {
		r.by.Robots = rules
	}
	if r.reread = r.since.Limits.lifted(r.by); !r.reread {
		return
	}
	r.since.At = ""
	if p := r.since.Pass; p != nil && p.By == r.by {
		r.since.At, r.met = p.At, p.Refused
	}
	r.log.Info("limits or robots.txt changed; fetching all pages again", "site", r.scope.base)
}

// limits writes what the next run is to know of limits.
func (r *run) limits(next *cursor) {
	switch {
	case r.reread: // cut off
		next.Limits = r.since.Limits
		next.Pass = &pass{By: r.by, At: next.At, Refused: r.met}
	case r.read:
		next.Limits = r.met
	default:
		next.Limits = r.since.Limits.with(r.met)
	}
	next.LostMore = r.since.LostMore || r.lostMore
	if next.LostMore && r.regains {
		next.LostMore, next.Limits.Robots = false, lostCount
	}
}

// limitError is why an address is not asked for that may well have a page. It
// is a [millrace.ErrTooLarge].
type limitError struct{ code, text string }

func (e limitError) Error() string { return e.text }

// ErrorCode returns the code.
func (e limitError) ErrorCode() string { return e.code }

// Unwrap returns [millrace.ErrTooLarge].
func (limitError) Unwrap() error { return millrace.ErrTooLarge }
