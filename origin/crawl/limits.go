package crawl

import "github.com/millrace/millrace"

// limits are the limits that excluded addresses. Requests for the pages that link to these
// addresses get a 304. When a limit is relaxed, the next run therefore fetches all pages once
// without conditions.
type limits struct {
	Pages  int    `json:"pages,omitempty"`  // Options.MaxPages; 0 = no address was excluded
	Depth  int    `json:"depth,omitempty"`  // Options.MaxDepth; 0 = no address was excluded
	Robots string `json:"robots,omitempty"` // [fetch.Robots.Fingerprint]; "" = robots.txt excluded none
}

// Special values of limits.Robots.
const (
	noRules   = "-" // robots.txt is ignored or empty
	lostCount = "+" // matches no rules; set if more addresses were lost than a cursor holds, and some have pages again
)

// pass is the state of a run that fetches all pages again and was cut off.
type pass struct {
	By      limits `json:"by"`           // limits in effect
	At      string `json:"at,omitempty"` // last address that it reached
	Refused limits `json:"refused"`      // limits of By that excluded addresses so far
}

// lifted reports whether the limits by may admit an address that l excluded.
func (l limits) lifted(by limits) bool {
	return l.Pages > 0 && by.Pages > l.Pages || l.Depth > 0 && by.Depth > l.Depth || l.Robots != "" && by.Robots != l.Robots
}

// with returns the tighter of each pair of limits.
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

// limit sets the limits in effect, and whether the run fetches all pages again.
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

// limits saves the limits in the cursor of the next run.
func (r *run) limits(next *cursor) {
	switch {
	case r.reread: // the run was cut off
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

// limitError is the reason why an address that may have a page is not fetched. It is a
// [millrace.ErrTooLarge].
type limitError struct{ code, text string }

func (e limitError) Error() string { return e.text }

// ErrorCode returns the code.
func (e limitError) ErrorCode() string { return e.code }

// Unwrap returns [millrace.ErrTooLarge].
func (limitError) Unwrap() error { return millrace.ErrTooLarge }
