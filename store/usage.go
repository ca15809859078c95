package store

import (
	"context"
	"iter"
	"time"
)

// Usage stores the requests of machines: single events for a while, and their sums
// for longer. All methods are safe for concurrent use.
type Usage interface {
	// Record stores events of a site, and adds them to its sums and tops, in one
	// transaction. The events get the next numbers, in order, whatever their times
	// are: the clock may have been set. Texts become valid UTF-8 without control
	// characters and are cut to [MaxEventText] bytes. ErrNotFound: the store does
	// not have the site.
	Record(ctx context.Context, site string, events []Event) error
	// Events yields the events of a query. An unknown site has no events, sums or
	// tops.
	Events(ctx context.Context, site string, q EventQuery) iter.Seq2[Event, error]
	// Sums yields the sums of a site, ordered by Start, Bot, Protocol, Endpoint,
	// Outcome and Identity. Where hours are gone, it yields the day. A period has a
	// few thousand sums. Further events count as those of the bot "other", without
	// family and [Unverified].
	Sums(ctx context.Context, site string, q SumQuery) iter.Seq2[Sum, error]
	// Top returns the most requested items on the days in UTC that begin at or
	// after from and before to, most first: at most limit items, 0 = all. A zero
	// time is no bound. [Usage.Tidy] keeps a few thousand items per day and drops
	// the rest.
	Top(ctx context.Context, site string, of Topic, from, to time.Time, limit int) ([]TopItem, error)
	// Tidy drops events before a time, and the sums of the hours of days that end
	// before another. An event whose time is still to come, by the store's clock,
	// goes with the next event whose time is not. Tidy works in small transactions,
	// so that others can write in between. ErrNotFound: the store has no site of the
	// name. ErrConflict: the lease has expired or another holder has it. The zero
	// Lease is not checked.
	Tidy(ctx context.Context, l Lease, site string, events, hours time.Time) error
}

// MaxEventText is the most bytes of each text of an event.
const MaxEventText = 256

// Event is one response to a machine. It contains no personal data: no address and
// no key (OpenFeeder 1.0, section 12).
type Event struct {
	Number   uint64        // of the site's events, from 1; set by the store
	Time     time.Time     // of the request; milliseconds
	Bot      string        // its token, such as "GPTBot"; "other" = an unknown machine
	Family   string        // its operator, such as "openai"; "" = unknown
	Identity BotIdentity   // whether the name is genuine
	Protocol string        // such as "tct-01"; "html" = a page or file of the site; "site" = a site-wide document, such as robots.txt
	Endpoint Endpoint      // the kind of document
	Path     string        // path of the page, else of the document, without the query
	Query    string        // of a search
	Intent   string        // X-OpenFeeder-Intent
	Results  int64         // of a search, the hits; of an index, the pages that it names; of one page, 1 if it was sent in full or unchanged; else 0
	Status   int           // of the answer
	Cached   bool          // a 304, or stored bytes
	Bytes    int64         // of the body on the wire
	Size     int64         // of the uncompressed body, 0 for a 304; 0 = unknown
	HTML     int64         // bytes of the page's uncompressed HTML; 0 = unknown, or no page
	Received int64         // the same on the wire; 0 = not known
	Took     time.Duration // until the response was sent; microseconds
}

// Endpoint is the kind of a document.
type Endpoint string

// The endpoints of OpenFeeder 1.0, section 12, for every protocol.
const (
	EndpointSearch    Endpoint = "search"
	EndpointFetch     Endpoint = "fetch"     // one page
	EndpointIndex     Endpoint = "index"     // lists, deltas, snapshots, feeds: names of many pages
	EndpointDiscovery Endpoint = "discovery" // entry points, and terms of use
	EndpointFile      Endpoint = "file"      // a file of the site: an image, a script
)

// BotIdentity is the result of checking the name of a machine.
type BotIdentity string

// Values of BotIdentity.
const (
	Unverified BotIdentity = ""         // unknown
	Verified   BotIdentity = "verified" // by its address or its signature
	Forged     BotIdentity = "forged"   // the name is another's
)

// Outcome is the result of a request, by the status of the response.
type Outcome string

// Values of Outcome.
const (
	Sent       Outcome = "sent"       // 2xx and 3xx except 304
	Unmodified Outcome = "unmodified" // 304, 412
	Missing    Outcome = "missing"    // 404, 410
	Refused    Outcome = "refused"    // 401, 402, 403, 429, 451
	Mistaken   Outcome = "mistaken"   // other 4xx
	Failed     Outcome = "failed"     // 5xx, and interrupted responses
)

// OutcomeOf returns the outcome of a status; 0 = the response was interrupted.
func OutcomeOf(status int) Outcome {
	switch {
	case status == 304, status == 412:
		return Unmodified
	case status == 404, status == 410:
		return Missing
	case status == 401, status == 402, status == 403, status == 429, status == 451:
		return Refused
	case status >= 400 && status < 500:
		return Mistaken
	case status < 100, status >= 500:
		return Failed
	}
	return Sent
}

// EventQuery selects events. The zero value selects all, oldest first.
type EventQuery struct {
	After    uint64    // with higher numbers; with Newest, with lower ones, 0 = from the end
	Newest   bool      // newest first
	From, To time.Time // at or after From, before To; zero = no bound
	Bot      string    // "" = all
	Protocol string
	Endpoint Endpoint
	Path     string
	Outcomes []Outcome // any of these; nil = all
	Limit    int       // 0 = no limit
}

// SumQuery selects sums.
type SumQuery struct {
	From, To time.Time // periods that begin at or after From, and before To; zero = no bound
	Per      Period    // Hour or Day; 0 = Day
}

// Period is the length of a sum.
type Period time.Duration

// Lengths of a sum. Sums begin with hours and days in UTC.
const (
	Hour = Period(time.Hour)
	Day  = Period(24 * time.Hour)
)

// Sum is the counts of one period, bot with its family, protocol, endpoint, outcome
// and identity.
type Sum struct {
	Start    time.Time
	Per      Period
	Bot      string
	Family   string
	Identity BotIdentity
	Protocol string
	Endpoint Endpoint
	Outcome  Outcome
	Counts
}

// Counts are counts of events.
type Counts struct {
	Events    int64
	Cached    int64 // of them
	Results   int64
	Bytes     int64
	Size      int64
	HTML      int64
	Received  int64
	HTMLKnown int64         // events whose HTML is known
	Wired     int64         // HTML of the events whose Received is known
	Took      time.Duration // in total
}

// Topic is what [Usage.Top] counts.
type Topic string

// Topics.
const (
	TopPages   Topic = "pages"   // successful fetches and 304, by page
	TopQueries Topic = "queries" // successful searches, by query
	TopMissing Topic = "missing" // requests for missing paths
)

// TopItem is one requested item.
type TopItem struct {
	Name   string // path, or query
	Events int64
	Empty  int64     // searches without results; of pages, 304
	Bytes  int64     // sent
	Last   time.Time // the last day; on that day, the time
}
