package discover

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Web is the name of the way through the pages themselves and their links.
const Web = "crawl"

// Options of [Probe]. The zero value looks for the plain web alone.
type Options struct {
	Protocols []protocol.Protocol     // what is looked for, in the order in which it is shown
	Reader    *protocol.ReaderOptions // for the protocols; nil = the zero value
	// Purpose is what the content is wanted for; "" = [millrace.AIInput].
	Purpose millrace.Purpose
	// IgnorePolicy: what the site's documents about use do not allow is a way
	// in all the same. robots.txt is obeyed by the client or not.
	IgnorePolicy bool

	// Previous is what an earlier look at the same site has found: the ways that have
	// been there then are asked by one HEAD each whether they still are, and
	// their figures stand. nil = there was none.
	Previous *Site

	MaxRequests int   // that are sent at most, robots.txt not counted; 0 = 60
	MaxBytes    int64 // of bodies that are read at most, as they are sent; 0 = 16 MiB
	// Timeout ends the look with what is known by then; 0 = one minute, and 30
	// times the gap that robots.txt asks for.
	Timeout time.Duration

	// Quick ends the look as soon as a way has been found that brings every page,
	// if looking further is likely to cost more than the others could save. The
	// Site is Quick then.
	Quick bool
	// PolicyKnown says that the caller has read the policy documents and obeys
	// them. They are fetched only by protocols that need theirs.
	PolicyKnown bool

	// Progress is called at each request with the number of requests so far; it
	// may be nil. Any goroutine may call it.
	Progress func(requests int)
	Logger   *slog.Logger     // nil = discard
	Now      func() time.Time // nil = time.Now
}

// Site is the result of a look at a site. It is plain data and encodes as JSON;
// a decoded Site has the same plans.
type Site struct {
	URL  string    `json:"url"`  // of the root that was looked at
	Time time.Time `json:"time"` // when
	// Measured is when the oldest of the figures were: before Time, if an earlier
	// look counts still.
	Measured time.Time `json:"measured"`
	// Moved is where the root leads to, if that is on another origin: what is
	// found there is another site.
	Moved string `json:"moved,omitempty"`
	// Quick: the look ended when it had found enough ([Options].Quick). Protocols
	// that it did not come to are neither in Ways nor in Absent, the root was not
	// asked for, and the plain web is estimated by its sitemaps alone.
	Quick bool `json:"quick,omitempty"`
	// Ways are those that the site has, or that something is wrong with; the
	// plain web is the last one, and always there.
	Ways   []Way    `json:"ways"`
	Absent []string `json:"absent,omitempty"` // protocols that were not found
	// Page is what one page costs as HTML: measured if the site showed one,
	// else a usual one.
	Page protocol.Cost `json:"page"`

	Robots   Robots           `json:"robots"`
	Terms    []protocol.Terms `json:"terms,omitempty"`    // documents about the use of the content
	Licenses []License        `json:"licenses,omitempty"` // that the root or robots.txt name
	Spent    protocol.Cost    `json:"spent"`              // what the look has cost, robots.txt not counted

	// Seen is what else the look has come by. It is not kept in JSON.
	Seen Seen `json:"-"`
}

// Seen holds observations of a look for people.
type Seen struct {
	Server    string   // that the root was sent by, as it names itself; "" = it does not
	Generator string   // that the root was made by, as its HTML says; "" = it does not
	Links     []string // addresses on the same origin that the root links to, at most 2,000
	Listed    []string // some that its sitemaps list, evenly spread
}

// Way is one way to read a site.
type Way struct {
	Protocol string `json:"protocol"`        // name of a protocol, or [Web]
	Label    string `json:"label,omitempty"` // of the protocol for people; "" = Protocol
	// Offer is nil if nothing can be had this way: Reason says why.
	Offer *protocol.Offer `json:"offer,omitempty"`
	// Deletions: the protocol's reader can be asked for what is gone alone
	// ([protocol.DeletionReader]).
	Deletions bool   `json:"deletions,omitempty"`
	Allowed   bool   `json:"allowed"`          // by robots.txt and the policies, for the purpose
	Reason    string `json:"reason,omitempty"` // why not, or what is wrong
	Code      string `json:"code,omitempty"`   // of the reason, as millrace.ErrorCode has it
	// Later: it was out of reach, so that another look may find it.
	Later bool `json:"later,omitempty"`
}

// label returns the name of a way for people.
func (s *Site) label(name string) string {
	if w := s.Way(name); w != nil {
		return cmp.Or(w.Label, name)
	}
	return name
}

// Open reports whether the way can be used.
func (w Way) Open() bool { return w.Offer != nil && w.Allowed }

// Robots is what the robots.txt of a site says to the client.
type Robots struct {
	Closed string        `json:"closed,omitempty"`      // the record that disallows the root; "" = none does
	Delay  time.Duration `json:"crawl_delay,omitempty"` // that it asks for
	Said   []Said        `json:"said,omitempty"`        // records about the use of the content, as they stand
}

// Said is one record of robots.txt, such as "Content-Signal: ai-train=no".
type Said struct {
	Name  string `json:"name"`  // name of the line
	Value string `json:"value"` // value of the line
	Line  int    `json:"line"`  // number of the line
}

// License is a document with the licence terms of the content.
type License struct {
	URL  string `json:"url"`
	From string `json:"from"` // where it is named: "Link", "HTML" or "robots.txt"
}

// Way returns a way by its name, or nil if the site does not have it.
func (s *Site) Way(name string) *Way {
	for i := range s.Ways {
		if s.Ways[i].Protocol == name {
			return &s.Ways[i]
		}
	}
	return nil
}
