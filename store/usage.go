package store

import (
	"context"
	"iter"
	"time"
)

// Usage stores the requests of machines: single events for a while, and their
// sums for long. All methods are safe for concurrent use.
type Usage interface {
	// Record stores events of a site and adds them to its sums and to what is asked
	// for most, in one transaction. The events get the next numbers, in their order,
	// whatever their times are: the clock may have been set. Texts become valid
	// UTF-8 without control characters and are cut to [MaxEventText] bytes.
	// ErrNotFound: the store has no site of the name.
	Record(ctx context.Context, site string, events []Event) error
	// Events yields the events of a site that q asks for. A site that the store does
	// not have has no events, no sums and nothing asked for.
	Events(ctx context.Context, site string, q EventQuery) iter.Seq2[Event, error]
	// Sums yields the sums of a site, in the order of Start, Bot, Protocol, Endpoint,
	// Outcome and Verdict. Where hours are no longer kept, it yields the day. One
	// period has some thousand sums: further events are summed as of the bot
	// "other", of no family and [Unverified].
	Sums(ctx context.Context, site string, q SumQuery) iter.Seq2[Sum, error]
	// Top returns what was asked for most on the days of UTC that begin at or after
	// from and before to, most first: at most limit items, 0 = all. A zero time is
	// no bound. Of each day, [Usage.Tidy] keeps some thousand things, those that were
	// asked for most; the counts of others are lost.
	Top(ctx context.Context, site string, of Topic, from, to time.Time, limit int) ([]TopItem, error)
	// Tidy drops events before a time, and the sums of the hours of days that end
	// before another. An event whose time is still to come, by the store's clock,
	// goes with the next event whose time is not. Tidy works in small transactions,
	// so that others can write in between. ErrNotFound: the store has no site of the
	// name. ErrConflict: the lease has expired or another holder has it. The zero
	// Lease is not checked.
	Tidy(ctx context.Context, l Lease, site string, events, hours time.Time) error
}

// MaxEventText is the most bytes that are kept of each text of an event.
const MaxEventText = 256

// Event is one answer to a machine. Nothing in it is about a person: there is
// no address and no key (OpenFeeder 1.0, section 12).
type Event struct {
	Number   uint64        // of the site's events, from 1; the store's to say
	Time     time.Time     // when the request came; milliseconds
	Bot      string        // its token, such as "GPTBot"; "other" = a machine of no known name
	Family   string        // who runs it, such as "openai"; "" = not known
	Identity BotIdentity   // whether it is who it says
	Protocol string        // such as "tct-01"; "html" = a page or file of the site; "site" = what is composed of all, such as robots.txt
	Endpoint Endpoint      // what kind of document was asked for
	Path     string        // identity of the page, else the path of the document, without a query
	Query    string        // of a search
	Intent   string        // X-OpenFeeder-Intent
	Results  int64         // of a search, the hits; of an index, the pages that it names; 1 of one page, if all of it was sent or stands; else 0
	Status   int           // of the answer
	Cached   bool          // nothing was made for it: a 304, or bytes that were there
	Bytes    int64         // of the body, as they went over the wire
	Size     int64         // of the body without coding, 0 with a 304; 0 = not known
	HTML     int64         // bytes of the HTML, without coding, of the page that this is of; 0 = of none, or not known
	Received int64         // the same on the wire; 0 = not known
	Took     time.Duration // until the answer was out; microseconds
}

// Endpoint is what kind of document was asked for.
type Endpoint string

// The endpoints of OpenFeeder 1.0, section 12, for every protocol.
const (
	EndpointSearch    Endpoint = "search"
	EndpointFetch     Endpoint = "fetch"     // one page
	EndpointIndex     Endpoint = "index"     // lists, deltas, snapshots, feeds: what names many pages
	EndpointDiscovery Endpoint = "discovery" // what leads to the others, and what they may be used for
	EndpointFile      Endpoint = "file"      // of the site's own: an image, a script
)

// BotIdentity is whether a machine is who it says.
type BotIdentity string

// The verdicts.
const (
	Unverified BotIdentity = ""         // unknown
	Verified   BotIdentity = "verified" // by its address or its signature
	Forged     BotIdentity = "forged"   // it is not
)

// Outcome is what became of a request, by the status of the answer.
type Outcome string

// The outcomes.
const (
	Sent       Outcome = "sent"       // 2xx and 3xx but 304
	Unmodified Outcome = "unmodified" // 304, 412
	Missing    Outcome = "missing"    // 404, 410
	Refused    Outcome = "refused"    // 401, 402, 403, 429, 451
	Mistaken   Outcome = "mistaken"   // other 4xx
	Failed     Outcome = "failed"     // 5xx, and answers that broke off
)

// OutcomeOf gives the outcome of a status; 0 = the answer broke off.
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

// EventQuery says which events are wanted. The zero value asks for all, the
// oldest first.
type EventQuery struct {
	After    uint64    // those of a higher number; with Newest, of a lower one, 0 = from the end
	Newest   bool      // the newest first
	From, To time.Time // at or after From, before To; zero = no bound
	Bot      string    // of this one; "" = of all
	Protocol string
	Endpoint Endpoint
	Path     string
	Outcomes []Outcome // any of these; nil = all
	Limit    int       // at most so many; 0 = all
}

// SumQuery says which sums are wanted.
type SumQuery struct {
	From, To time.Time // whole periods that begin at or after From, and before To; zero = no bound
	Per      Period    // Hour or Day; 0 = Day
}

// Period is how long a sum is of.
type Period time.Duration

// The periods. They begin with the hours and days of UTC.
const (
	Hour = Period(time.Hour)
	Day  = Period(24 * time.Hour)
)

// Sum counts the events of one period, bot with its family, protocol, endpoint,
// outcome and verdict.
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

// Counts are what some events come to.
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
	Took      time.Duration // all together
}

// Topic is what the most asked are counted of.
type Topic string

// The topics.
const (
	TopPages   Topic = "pages"   // fetches that were answered, 304 or not, by the page
	TopQueries Topic = "queries" // searches that were answered, by the query
	TopMissing Topic = "missing" // paths that are not there
)

// TopItem is one thing that was asked for.
type TopItem struct {
	Name   string // path, or query
	Events int64
	Empty  int64     // searches that found nothing; of pages, 304s
	Bytes  int64     // sent
	Last   time.Time // the day, or while that lasts the time
}
