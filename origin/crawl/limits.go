package crawl

import "github.com/millrace/millrace"

// limits are the limits that have excluded addresses. Requests for the pages that link to these
// addresses result in a 304, which contains no links. Therefore, when a limit is raised or the
// robots.txt rules change, the next run fetches all pages once without conditions.
type limits struct {
	Pages  int    `json:"pages,omitempty"`  // Options.MaxPages, or 0 if it excluded no address
	Depth  int    `json:"depth,omitempty"`  // Options.MaxDepth, or 0 if it excluded no address
	Robots string `json:"robots,omitempty"` // [fetch.Robots.Fingerprint], or "" if robots.txt excluded no address
}

// Special values of limits.Robots.
const (
	noRules   = "-" // robots.txt is ignored or empty
	lostCount = "+" // differs from every fingerprint; set if more addresses were lost than a cursor can contain, and a lost page exists again
)

// pass is the state of a run that fetched all pages again and was interrupted.
type pass struct {
	By      limits `json:"by"`           // limits in effect
	At      string `json:"at,omitempty"` // last address that the run reached
	Refused limits `json:"refused"`      // limits in By that have excluded addresses so far
}

// relaxed reports whether the new limits by may admit an address that the limits l have excluded.
func (l limits) relaxed(by limits) bool {
	return l.Pages > 0 && by.Pages > l.Pages || l.Depth > 0 && by.Depth > l.Depth || l.Robots != "" && by.Robots != l.Robots
}

// with returns the stricter of each pair of numbers, and the robots.txt rules of m if m has any.
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

// limit sets the current limits, and decides whether the run fetches all pages again.
func (r *run) limit() {
	r.by = limits{Pages: r.o.MaxPages, Depth: r.o.MaxDepth, Robots: noRules}
	if rules := r.robots.Fingerprint(); rules != "" && !r.o.IgnoreRobots {
		r.by.Robots = rules
	}
	if r.reread = r.since.Limits.relaxed(r.by); !r.reread {
		return
	}
	r.since.At = ""
	if p := r.since.Pass; p != nil && p.By == r.by {
		r.since.At, r.met = p.At, p.Refused
	}
	r.log.Info("limits or robots.txt changed; fetching all pages again", "site", r.scope.base)
}

// limits saves the limits in the cursor of the next run.
func (r *run) limits(next *cursor) {
	switch {
	case r.reread: // the run was interrupted
		next.Limits = r.since.Limits
		next.Pass = &pass{By: r.by, At: next.At, Refused: r.met}
	case r.read:
		next.Limits = r.met
	default:
		next.Limits = r.since.Limits.with(r.met)
	}
	next.LostMore = r.since.LostMore || r.lostMore
	if next.LostMore && r.recovered {
		next.LostMore, next.Limits.Robots = false, lostCount
	}
}

// limitError is the reason why an address that may have a page is not fetched. It wraps
// [millrace.ErrTooLarge].
type limitError struct{ code, text string }

func (e limitError) Error() string { return e.text }

// ErrorCode returns the code of the limit.
func (e limitError) ErrorCode() string { return e.code }

// Unwrap returns [millrace.ErrTooLarge].
func (limitError) Unwrap() error { return millrace.ErrTooLarge }
