package discover

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Web is the name of the way that reads the pages themselves and follows their links.
const Web = "crawl"

// Options configures [Probe]. The zero value probes the plain web only.
type Options struct {
	Protocols []protocol.Protocol     // protocols to probe; the results are in this order
	Reader    *protocol.ReaderOptions // options of the protocols' readers; if nil, the zero value
	// Purpose is the intended use of the content. If empty, [millrace.AIInput].
	Purpose millrace.Purpose
	// IgnorePolicy treats a way as allowed even if the site's policy documents forbid its use. The
	// client decides whether robots.txt is obeyed.
	IgnorePolicy bool

	// Previous is the result of an earlier probe of the same site, or nil. Probe checks each of its
	// protocols with one HEAD request. If the document still exists, Probe keeps the earlier
	// figures.
	Previous *SiteReport

	MaxRequests int   // maximum number of requests, without robots.txt; 0 means 60
	MaxBytes    int64 // maximum number of body bytes as transferred; 0 means 16 MiB
	// Timeout ends the probe with the results so far. If zero, one minute plus 30 times the
	// crawl delay of robots.txt.
	Timeout time.Duration

	// Quick ends the probe at the first way that provides every page, if further probing would
	// probably cost more than other ways could save. It sets SiteReport.Quick.
	Quick bool
	// PolicyKnown reports whether the caller has read the policy documents and obeys them. If so,
	// Probe fetches only those documents that a protocol itself needs.
	PolicyKnown bool

	// Progress is called at each request with the number of requests so far. It may be nil, and may
	// be called from any goroutine.
	Progress func(requests int)
	Logger   *slog.Logger     // if nil, nothing is logged
	Now      func() time.Time // if nil, time.Now
}

// SiteReport is the result of a probe. It is plain data and encodes as JSON. A decoded SiteReport
// gives the same plans.
type SiteReport struct {
	URL  string    `json:"url"`  // URL of the root
	Time time.Time `json:"time"` // time of the probe
	// Measured is the time of the oldest figures. It is before Time if the report contains figures
	// of an earlier probe.
	Measured time.Time `json:"measured"`
	// Moved is the URL to which the root redirects, if that URL is on another origin and thus
	// belongs to another site.
	Moved string `json:"moved,omitempty"`
	// Quick reports whether the probe ended early ([Options].Quick). If so, protocols that it did
	// not reach are neither in Ways nor in Absent. The probe did not fetch the root, and estimated
	// the plain web from the sitemaps only.
	Quick bool `json:"quick,omitempty"`
	// Ways are the ways to read the site, including failed ones. The last one is always the plain
	// web.
	Ways   []Way    `json:"ways"`
	Absent []string `json:"absent,omitempty"` // protocols that were not found
	// Page is the cost of one page as HTML. It is measured, or a typical value if the probe fetched
	// no page.
	Page protocol.Cost `json:"page"`

	Robots   Robots           `json:"robots"`
	Terms    []protocol.Terms `json:"terms,omitempty"`    // usage policy documents
	Licenses []License        `json:"licenses,omitempty"` // licenses to which the root or robots.txt refers
	Spent    protocol.Cost    `json:"spent"`              // cost of the probe, without robots.txt
	// Inconclusive is the limit that ended a part of the probe, or "". Protocols in Absent may
	// exist nevertheless.
	Inconclusive string `json:"inconclusive,omitempty"`

	// Observed contains further observations. It is not part of the JSON.
	Observed Observed `json:"-"`
}

// Observed contains observations of a probe that are shown to users.
type Observed struct {
	Server    string   // Server field of the response to the root
	Generator string   // generator in the HTML of the root
	Links     []string // URLs of the same origin that the root links to, at most 2,000
	Listed    []string // evenly spread sample of the URLs in the sitemaps
}

// Way is one way to read a site.
type Way struct {
	Protocol string `json:"protocol"`        // name of a protocol, or [Web]
	Label    string `json:"label,omitempty"` // display name of the protocol; if empty, Protocol
	// Offer is nil if the way provides no pages; Reason says why.
	Offer   *protocol.Offer `json:"offer,omitempty"`
	Allowed bool            `json:"allowed"`          // robots.txt and the policies allow the purpose
	Reason  string          `json:"reason,omitempty"` // why the way is not allowed, or the error
	Code    string          `json:"code,omitempty"`   // error code of the reason
	// Unavailable reports whether the way was temporarily unavailable; a later probe may find it.
	Unavailable bool `json:"unavailable,omitempty"`
	// SendsChanges reports whether the server sends the document at Offer.Entry as a delta to
	// clients that have an earlier version (RFC 9842).
	SendsChanges bool `json:"sends_changes,omitempty"`
}

// label returns the display name of a way.
func (s *SiteReport) label(name string) string {
	if w := s.Way(name); w != nil {
		return cmp.Or(w.Label, name)
	}
	return name
}

// Open reports whether the way can be used.
func (w Way) Open() bool { return w.Offer != nil && w.Allowed }

// Robots contains the rules of a site's robots.txt for the client.
type Robots struct {
	RootRule   string            `json:"root_rule,omitempty"`   // record that disallows the root, or ""
	Delay      time.Duration     `json:"crawl_delay,omitempty"` // value of Crawl-delay
	Statements []RobotsStatement `json:"statements,omitempty"`  // records about the use of the content
}

// RobotsStatement is one record of robots.txt, such as "Content-Signal: ai-train=no".
type RobotsStatement struct {
	Name  string `json:"name"`  // name of the record, in lower case
	Value string `json:"value"` // value of the record
	Line  int    `json:"line"`  // line number
}

// License is a document with the license of the content.
type License struct {
	URL  string `json:"url"`
	From string `json:"from"` // location of the link: "Link", "HTML" or "robots.txt"
}

// Way returns the way with the given name, or nil if the report does not contain it.
func (s *SiteReport) Way(name string) *Way {
	for i := range s.Ways {
		if s.Ways[i].Protocol == name {
			return &s.Ways[i]
		}
	}
	return nil
}
