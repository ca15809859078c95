package store

import (
	"context"
	"iter"
	"time"
)

// Fleet schedules the pulls of many sites among workers, which may be on several machines. All
// methods are safe for concurrent use. All times are those of the store's clock.
//
// A site belongs to the host of its URL, and a host belongs to a group. A group is one host, or the
// hosts that share an address. A worker leases a group to pull one of its sites; this is a turn. A
// group has at most one lease. On a network of more than [MaxGroupHosts] hosts, each host is a
// group, and a rate limits the turns of the network.
//
// Turns go first to the sites that have been due the longest. If there are more due sites than
// workers, most turns go to sites that were never pulled and those with [PriorityHigh], fewer to
// those with [PriorityNormal], and the fewest to those with [PriorityLow]. If a group has more due
// sites than turns, most of its turns go to sites that were never pulled and those with
// [PriorityHigh], and the others to the sites that have been due the longest.
type Fleet interface {
	// Put adds sites, and changes the settings of sites that the fleet has, in one transaction: if
	// the sequence yields an error, nothing changes. It returns the numbers of added sites and of
	// other sites whose settings have changed. If a URL has no host, or a setting is invalid, Put
	// returns ErrInvalid.
	Put(ctx context.Context, sites iter.Seq2[FleetSite, error]) (added, changed int, err error)
	// Remove removes the sites of a query, and returns their number. The mirrored pages remain.
	// If pages is set, the sites are Removing and due at once, until a worker has deleted their
	// pages. Put cancels the removal.
	Remove(ctx context.Context, q FleetQuery, pages bool) (removed int, err error)
	// Pause pauses the sites of a query, or resumes them, and returns the number of paused or resumed
	// sites. Resumed sites, including those that were not paused, are due at once, even if their host
	// was deferred.
	Pause(ctx context.Context, q FleetQuery, paused bool) (changed int, err error)
	// Sites yields the sites of a query, ordered by URL.
	Sites(ctx context.Context, q FleetQuery) iter.Seq2[FleetSite, error]
	// Hosts returns at most limit hosts whose last turn failed, those with the most failures in a
	// row first. With a label, it returns only hosts that have a site with that label.
	Hosts(ctx context.Context, label string, limit int) ([]FleetHost, error)
	// Stats counts the listed sites with a label, or all listed sites if the label is empty.
	Stats(ctx context.Context, label string) (FleetStats, error)

	// Lease gives a worker at most n turns, each with the lease of a different group. Their sites are
	// due and not paused. A lease lasts for the duration d plus the delay of the group: if the worker
	// is killed after a request, the group does not get the next one too early. If sites is not nil,
	// Lease considers only these sites, else all that are not unlisted. If it returns fewer than n
	// turns, next is the time to ask again: when the next site is due, or the lease of its group
	// ends. If no site is scheduled, next is zero.
	Lease(ctx context.Context, worker string, n int, d time.Duration, sites []string) (turns []Turn, next time.Time, err error)
	// Renew extends the leases of groups as Lease does, and returns those that are still valid.
	Renew(ctx context.Context, d time.Duration, leases ...Lease) ([]Lease, error)
	// SetAddress records the address of the host of a turn, such as "192.0.2.1". Hosts with the
	// same address share a group. If rate is positive, the address is the name of a network that
	// many hosts share, and rate is its limit in requests per second. If the address has changed,
	// SetAddress moves the host to the group of the new address, and returns the turn with the
	// lease of that group. If another worker has that lease, or the delay of that group is not
	// over, SetAddress ends the turn. The site stays due, and the error is ErrConflict with the
	// code "group-busy". A host moves at most three times a day, and then stays in its last group.
	SetAddress(ctx context.Context, t Turn, address string, rate float64) (Turn, error)
	// Visit leases the group of another machine for the duration d, so that a turn may send requests
	// to that machine. address and rate are as for SetAddress. The group is that of the address, or
	// that of the host if the address is the name of a network. The group need not have a site. If it
	// is the group of the turn, Visit returns the lease of the turn. If another turn has the group's
	// lease, its delay is not over, the host was deferred, or the rate of the network permits no
	// request yet, the error is ErrConflict with the code "group-busy". The Expires of the returned
	// lease is then the time to try again. If the Fence of turn is 0, the visit belongs to no turn,
	// but to a visitor that the Holder and Name of turn identify.
	Visit(ctx context.Context, turn Lease, d time.Duration, host, address string, rate float64) (Visit, error)
	// Leave ends visits. The next turn or visit of a group begins after the Delay of the visit, or
	// after the longest delay of the group's hosts if that is longer.
	Leave(ctx context.Context, visits ...Visit) error
	// Done ends a turn and releases the lease of the group. The next turn of the group begins after
	// the longest Delay of its hosts. If the lease was lost, Done changes nothing and returns
	// ErrConflict. If the site was removed, Done returns no error.
	Done(ctx context.Context, l Lease, site string, o TurnResult) error
	// Hint makes a site due because the site reports a change, but not before the Soonest of its
	// last result. A paused or unknown site is ignored.
	Hint(ctx context.Context, site string) error
}

// Priorities of sites.
const (
	PriorityLow    = 1
	PriorityNormal = 2
	PriorityHigh   = 3
)

// MaxGroupHosts is the maximum number of hosts of one address that share a group.
const MaxGroupHosts = 50

// FleetSite is one site of a [Fleet].
type FleetSite struct {
	URL string // URL of the site or of a folder; ends with "/"

	// If a setting is zero, Put keeps the stored value. If Due is set and earlier than the stored
	// time, the site is due at Due, even if its host was deferred. A site is due no later than Max
	// after its last successful turn.

	Labels   []string      // Put adds them to the stored labels, or removes a label with the prefix "-"
	Priority int           // if zero for a new site, PriorityNormal
	Min, Max time.Duration // limits of the interval between two pulls, from 1 s to 365 days; if negative, those of the worker
	Due      time.Time     // when the next turn is due
	Webhook  string        // URL to which changes are posted; if "-", or "" for a new site, the receiver of the worker
	Unlisted bool          // Lease returns the site only if its caller names it; Put without Unlisted lists the site again

	// Put ignores the fields below.

	Host   string
	Paused bool
	// Removing reports that the next turn deletes the pages of the site, and removes the site.
	Removing bool
	Added    time.Time // when the site was added
	Pulled   time.Time // end of the last successful turn; zero = never
	Error    string    // error of the last turn; empty if the turn succeeded
	Name     string    // name of the site in the store, or "" if it was never pulled
	State    []byte    // State of the last TurnResult
}

// FleetQuery selects sites. The zero value selects all.
type FleetQuery struct {
	Sites    []string // URLs; at most a few thousand
	Label    string   // label of the sites; if empty, all sites
	Removing bool     // only sites that are being removed with their pages
}

// Turn is the right of a worker to pull one site.
type Turn struct {
	Lease   Lease // lease of the group, for [Site.Ending] and the methods of [Fleet]
	Site    FleetSite
	Address string        // address of the host, or "" if unknown
	Delay   time.Duration // longest delay of the hosts of the group
	Failed  int           // number of failures of the host in a row
	Hinted  bool          // a Hint made the site due
}

// Visit is the right of a turn to send requests to another machine.
type Visit struct {
	Lease    Lease
	Delay    time.Duration // longest delay of the hosts of the group; for Leave, the delay after the visit
	Requests int64         // for Leave: requests sent to the machine
}

// TurnResult is the result of a turn.
type TurnResult struct {
	Due time.Time // time of the next turn
	// Until is the time before which the host gets no turn. If it is set and the pull failed, the
	// host has one more failure; a successful turn resets their number. If it is zero, a failed
	// pull leaves the stored time, and a successful one removes it.
	Until    time.Time
	Soonest  time.Time // earliest turn after a Hint
	OK       bool      // the pull was successful
	Error    string    // error of the pull, or ""
	Name     string    // see FleetSite.Name
	State    []byte
	Delay    time.Duration // delay that the host requires between two requests
	Requests int64         // requests sent in the turn
	Received int64         // bytes received in the turn
}

// FleetHost is the state of a host.
type FleetHost struct {
	Host, Address string
	Sites         int       // sites of the host
	Until         time.Time // no turn until this time; zero = no limit
	Why           string    // error of the turn that set Until
	Failures      int       // number of failures in a row
	Requests      int64     // requests sent in all turns
	Received      int64     // bytes received in all turns
}

// FleetStats counts sites of a [Fleet].
type FleetStats struct {
	Time                 time.Time // when the sites were counted
	Sites, Hosts, Groups int
	Paused               int
	New                  int // sites that were never pulled and are not paused
	Failing              int // sites whose last turn failed and that are not paused
	Webhooks             int // sites with a Webhook
	// Errors are the numbers of failing sites by TurnResult.Error, or nil.
	Errors map[string]int
	// Requests and Received are the totals of all turns of the hosts.
	Requests, Received int64
	Due                int // sites that are due, or have a turn, except those of deferred hosts
	Leased             int // groups with a valid lease
	// Lag contains the percentiles 50, 90, 99 and 100 of the time for which sites have been due. A
	// site that is not due, or whose host gets no turn yet, has the lag 0.
	Lag [4]time.Duration
}
