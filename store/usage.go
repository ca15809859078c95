package store

import (
	"context"
	"iter"
	"time"
)

// Usage stores requests by machines: events for a limited time, and their sums for longer. All
// methods are safe for concurrent use.
type Usage interface {
	// Record stores events of a site, and adds them to its sums and its most requested items, in one
	// transaction. It numbers the events in the order of the slice, regardless of their times,
	// because the clock may have been set back. It converts texts to valid UTF-8, replaces control
	// characters with U+FFFD, and truncates texts to [MaxEventText] bytes. If the site does not exist,
	// Record returns ErrNotFound.
	Record(ctx context.Context, site string, events []Event) error
	// Events yields the events of a query. For an unknown site, Events, Sums and Top return nothing
	// and no error.
	Events(ctx context.Context, site string, q EventQuery) iter.Seq2[Event, error]
	// Sums yields the sums of a site, ordered by Start, Bot, Protocol, Endpoint, Outcome and
	// Identity. For days whose hourly sums were deleted, it yields the daily sums. A period has at
	// most a few thousand sums. Then events of further kinds are counted under the bot "other",
	// without family and as [Unverified].
	Sums(ctx context.Context, site string, q SumQuery) iter.Seq2[Sum, error]
	// Top returns at most limit of the most requested items, in descending order, or all if limit is
	// zero. It counts requests on the UTC days that begin at or after from and before to. A zero time
	// is no bound. [Usage.Tidy] keeps a few thousand items per day and deletes the rest.
	Top(ctx context.Context, site string, of Topic, from, to time.Time, limit int) ([]TopItem, error)
	// Tidy deletes the events before a time, and the hourly sums of the days that end before
	// another time. An event whose time is in the future by the store's clock is deleted with the
	// next event whose time is not in the future. Tidy uses small transactions, so other processes
	// can write in between. If the site does not exist, Tidy returns ErrNotFound. If the lease has
	// expired or has another holder, it returns ErrConflict. The zero Lease is not checked.
	Tidy(ctx context.Context, l Lease, site string, events, hours time.Time) error
}

// MaxEventText is the maximum length of each text of an event in bytes.
const MaxEventText = 256

// Event is one response to a machine. It contains no personal data: no address and
// no key (OpenFeeder 1.0, section 12).
type Event struct {
	Number   uint64        // number among the site's events, from 1; set by the store
	Time     time.Time     // time of the request, to the millisecond
	Bot      string        // token of the bot, such as "GPTBot"; "other" = an unknown machine
	Family   string        // operator of the bot, such as "openai", or "" if unknown
	Identity BotIdentity   // whether the bot's name is genuine
	Protocol string        // name of the protocol, such as "tct-01"; "html" = a page or file of the site; "site" = a site-wide document, such as robots.txt
	Endpoint Endpoint      // kind of document
	Path     string        // path of the page or document, without the query
	Query    string        // search query
	Intent   string        // value of X-OpenFeeder-Intent
	Results  int64         // hits of a search, or pages in an index; for one page, 1 if it was sent in full or was unchanged, else 0
	Status   int           // status of the response
	Cached   bool          // the response was a 304 or came from stored bytes
	Bytes    int64         // bytes of the body on the wire
	Size     int64         // bytes of the uncompressed body, or 0 if unknown or for a 304
	HTML     int64         // bytes of the page's uncompressed HTML, or 0 if unknown or for other responses
	Received int64         // bytes of the page's HTML on the wire, or 0 if unknown
	Took     time.Duration // time until the response was sent, to the microsecond
}

// Endpoint is the kind of a document.
type Endpoint string

// The endpoints of OpenFeeder 1.0, section 12, for every protocol.
const (
	EndpointSearch    Endpoint = "search"
	EndpointFetch     Endpoint = "fetch"     // one page
	EndpointIndex     Endpoint = "index"     // lists of pages: indexes, deltas, snapshots and feeds
	EndpointDiscovery Endpoint = "discovery" // entry points and terms of use
	EndpointFile      Endpoint = "file"      // a file of the site, such as an image or a script
)

// BotIdentity is the result of checking the name of a machine.
type BotIdentity string

// Values of BotIdentity.
const (
	Unverified BotIdentity = ""         // the name was not verified
	Verified   BotIdentity = "verified" // verified by address or signature
	Forged     BotIdentity = "forged"   // the name belongs to a different machine
)

// Outcome is the result of a request, derived from the status of the response.
type Outcome string

// Values of Outcome.
const (
	Sent       Outcome = "sent"       // 2xx and 3xx except 304
	Unmodified Outcome = "unmodified" // 304, 412
	Missing    Outcome = "missing"    // 404, 410
	Refused    Outcome = "refused"    // 401, 402, 403, 429, 451
	Invalid    Outcome = "invalid"    // other 4xx
	Failed     Outcome = "failed"     // 5xx, and interrupted responses
)

// OutcomeOf returns the outcome of a status. If the status is zero, the response was interrupted.
func OutcomeOf(status int) Outcome {
	switch {
	case status == 304, status == 412:
		return Unmodified
	case status == 404, status == 410:
		return Missing
	case status == 401, status == 402, status == 403, status == 429, status == 451:
		return Refused
	case status >= 400 && status < 500:
		return Invalid
	case status < 100, status >= 500:
		return Failed
	}
	return Sent
}

// EventQuery selects events. A zero field sets no condition. The oldest events come first, unless
// Newest is set.
type EventQuery struct {
	After    uint64    // only events with higher numbers, or with lower ones if Newest is set; 0 = all
	Newest   bool      // list the newest events first
	From, To time.Time // at or after From, before To; zero = no bound
	Bot      string
	Protocol string
	Endpoint Endpoint
	Path     string
	Outcomes []Outcome // outcomes of the events, any of these
	Limit    int       // maximum number of events
}

// SumQuery selects sums.
type SumQuery struct {
	From, To time.Time // periods that begin at or after From, and before To; zero = no bound
	Per      Period    // Hour or Day; if zero, Day
}

// Period is the length of the time that a sum covers.
type Period time.Duration

// Values of Period. Periods begin at full hours and days in UTC.
const (
	Hour = Period(time.Hour)
	Day  = Period(24 * time.Hour)
)

// Sum is the counts of the events with the same period, bot, family, protocol, endpoint,
// outcome and identity.
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
	Events           int64
	Cached           int64 // cached responses
	Results          int64
	Bytes            int64
	Size             int64
	HTML             int64
	Received         int64
	HTMLKnown        int64         // events whose HTML is known
	HTMLWithReceived int64         // sum of HTML over the events with a known Received
	Took             time.Duration // sum of Took
}

// Topic is a kind of item that [Usage.Top] counts.
type Topic string

// Topics.
const (
	TopPages   Topic = "pages"   // successful fetches of pages, including 304 responses, by page
	TopQueries Topic = "queries" // successful searches, by query
	TopMissing Topic = "missing" // requests for missing paths
)

// TopItem is one requested item.
type TopItem struct {
	Name   string // path or query
	Events int64
	Empty  int64     // searches without results; for pages, 304 responses
	Bytes  int64     // bytes sent in responses
	Last   time.Time // time of the last request; if that was on an earlier day, the start of the day
}
