package store

import (
	"context"
	"iter"
	"time"
)

// Fleet schedules the pulls of many sites among workers, which may be on several machines. All
// methods are safe for concurrent use. All times are those of the clock of the store.
//
// A site belongs to the host of its URL, and a host to a group. A group is one host, or the
// hosts that share an address. One worker at a time has the lease of a group, and with it the
// turn of one of its sites. A host on a network of more than [MaxGroupHosts] hosts has a group
// of its own, and the turns of the network are limited by a rate.
//
// Turns go to the sites that have been due for the longest time. If more sites are due than
// there are workers, most turns go to sites that were never pulled and those with
// [PriorityHigh], fewer to those with [PriorityNormal], and some to those with [PriorityLow].
type Fleet interface {
	// Put adds sites, or changes the settings of sites that it has, in one transaction: an error
	// of sites changes nothing. It returns the number of sites that it did not have. If a URL
	// has no host, or a setting is invalid, it returns ErrInvalid.
	Put(ctx context.Context, sites iter.Seq2[FleetSite, error]) (added int, err error)
	// Remove removes the sites of a query, and returns their number. The mirrored pages remain.
	Remove(ctx context.Context, q FleetQuery) (removed int, err error)
	// Pause pauses or resumes the sites of a query, and returns the number of changed sites.
	Pause(ctx context.Context, q FleetQuery, paused bool) (changed int, err error)
	// Sites yields the sites of a query, ordered by URL.
	Sites(ctx context.Context, q FleetQuery) iter.Seq2[FleetSite, error]
	// Hosts returns the hosts that failed last, those with the most failures in a row first. It
	// returns at most limit hosts.
	Hosts(ctx context.Context, limit int) ([]FleetHost, error)
	// Stats returns counts of all sites that are not unlisted.
	Stats(ctx context.Context) (FleetStats, error)

	// Lease gives a worker at most n turns, each with the lease of another group for a
	// duration. The sites are due and not paused. If sites is not nil, turns are of these sites
	// only, else of all that are not unlisted. If there are fewer than n turns, next is when to
	// ask again: when the next site is due, or a lease of its group ends. If no site is
	// scheduled, next is zero.
	Lease(ctx context.Context, worker string, n int, d time.Duration, sites []string) (turns []Turn, next time.Time, err error)
	// Renew extends the leases of groups, and returns those that are still valid.
	Renew(ctx context.Context, d time.Duration, leases ...Lease) ([]Lease, error)
	// Place records the address of the host of a turn, such as "192.0.2.1". Hosts with the same
	// address share a group. If rate is positive, the address is the name of a network that many
	// hosts share, and rate is in requests a second. If the host has another address than
	// before, Place moves it to the group of that address, and returns the turn with the lease
	// of that group. If another worker has that lease, or the group was asked too recently,
	// Place ends the turn. Its site stays due, and the error is ErrConflict with the code
	// "group-busy". A host moves at most three times a day; then its last group remains.
	Place(ctx context.Context, t Turn, address string, rate float64) (Turn, error)
	// Done ends a turn, and gives the lease of the group back. The next turn of the group
	// begins after the longest Delay of its hosts. If the lease was lost, Done changes nothing
	// and returns ErrConflict. A removed site is not an error.
	Done(ctx context.Context, l Lease, site string, o TurnResult) error
	// Defer gives no turn of a host until a time, and counts a failure of the host. The next
	// successful turn resets the count.
	Defer(ctx context.Context, host string, until time.Time, why string) error
	// Hint makes a site due, because it reports a change, but not before the Soonest of its
	// last outcome. A paused or unknown site is ignored.
	Hint(ctx context.Context, site string) error
}

// Priorities of sites.
const (
	PriorityLow    = 1
	PriorityNormal = 2
	PriorityHigh   = 3
)

// MaxGroupHosts is the number of hosts on an address above which they do not share a group.
const MaxGroupHosts = 50

// FleetSite is one site of a [Fleet].
type FleetSite struct {
	URL string // of the site or of a folder; ends with "/"

	// Put keeps the stored value of a setting that is zero. If Due is set and earlier than the
	// stored time, the site is due then, even if its host was deferred. A site is due no later
	// than Max after its last successful turn.

	Labels   []string      // Put adds them; with a "-" in front, it removes the label
	Priority int           // if zero at first, PriorityNormal
	Min, Max time.Duration // bounds of the interval between two pulls; if negative, those of the worker
	Due      time.Time     // when the next turn is due
	Unlisted bool          // only a Lease that names the site gives a turn; Put without it lists the site

	// Put ignores the fields below.

	Host   string
	Paused bool
	Added  time.Time // when the site was added
	Pulled time.Time // end of the last successful turn; zero = never
	Error  string    // error of the last turn; "" = successful
	Name   string    // name of the site in the store; "" = never pulled
	State  []byte    // from the last TurnResult
}

// FleetQuery selects sites. The zero value selects all.
type FleetQuery struct {
	Sites []string // URLs; at most a few thousand
	Label string   // "" = any
}

// Turn is the right of a worker to pull one site.
type Turn struct {
	Lease   Lease // of the group, for [Site.Ending] and the methods of [Fleet]
	Site    FleetSite
	Address string        // of the host; "" = never placed
	Delay   time.Duration // longest delay of the hosts of the group
	Failed  int           // failures of the host in a row
	Hinted  bool          // a Hint made the site due
}

// TurnResult is the result of a turn.
type TurnResult struct {
	Due      time.Time // of the next turn
	Soonest  time.Time // earliest turn after a Hint
	OK       bool      // the pull was successful
	Error    string    // if it was not
	Name     string    // see FleetSite.Name
	State    []byte
	Delay    time.Duration // delay that the host requires between two requests
	Requests int64         // sent in the turn
	Received int64         // bytes received in the turn
}

// FleetHost is the state of a host.
type FleetHost struct {
	Host, Address string
	Sites         int       // sites of the host
	Until         time.Time // no turn before; zero = any time
	Why           string    // reason of the last Defer
	Failures      int       // in a row
	Requests      int64     // of all turns
	Received      int64     // bytes of all turns
}

// FleetStats counts the sites of a [Fleet].
type FleetStats struct {
	Sites, Hosts, Groups int
	Paused               int
	New                  int // never pulled
	Failing              int // whose last turn failed
	// Errors are the numbers of these sites by TurnResult.Error; nil = none.
	Errors map[string]int
	// Requests and Received are the sums of all turns, without those of removed hosts.
	Requests, Received int64
	Due                int // due now, without a turn
	Leased             int // groups with a lease
	// Lag has the percentiles 50, 90, 99 and 100 of how long sites are due. A site that is not
	// due has no lag.
	Lag [4]time.Duration
}
