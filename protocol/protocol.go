// Package protocol defines what a protocol package provides: its names, its
// publisher, its reader and its rules. The protocols are the packages below it;
// package all lists them.
package protocol

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
)

// Protocol describes one protocol. Every member is set, unless the
// specification has nothing for it.
type Protocol struct {
	Name    string // as on the command line, such as "tct-01"
	Label   string // short name for people, such as "TCT 01"; Name is its lower case, with "-" for spaces
	Title   string // of the specification
	Version string // of the specification
	Date    string // of the specification, YYYY-MM-DD; "" = it has none
	Source  string // URL of the specification; "" = not published

	// Collections: pages come with their content, many in a file. Where a site has
	// that, probing another protocol may cost more than reading the site.
	Collections bool

	// Entry are the paths that clients begin with on every site, such as
	// "/llms.txt"; nil = none, or Rules check whether robots.txt allows them.
	Entry []string

	// Home is the path, under the endpoint base, of the document that clients begin
	// with. HomeLink is the link of the home page that leads there, without its URL;
	// without Rel, the home page has no such link.
	Home     string
	HomeLink millrace.Link
	// Public: the content is public by design, so that it is not published where it
	// would need a key.
	Public bool
	// OnRequest: the specification is not settled, so that a site is published in the
	// protocol only if its owner asks for that.
	OnRequest bool
	// Feeds: it publishes feeds, which hubs distribute (WebSub).
	Feeds bool
	// Partial reports whether a page that was read says that parts of it are not for
	// all, so that its HTML must not complete it; nil = no page says so.
	Partial func(p *millrace.Page) bool
	// Named reports whether a robots.txt names the protocol, whose policy is not asked
	// for on other sites; nil = no robots.txt does.
	Named func(r *fetch.Robots) bool

	// Carry returns what is left of a page that went through the protocol, nil if
	// the protocol does not carry the page. It is pure, total and idempotent. Pages
	// are those of a View of site; only its Base and Language count.
	Carry func(site millrace.Site, p *millrace.Page) *millrace.Page
	// Tagger computes the protocol's tags in the store.
	Tagger millrace.Tagger
	// NewPublisher returns the protocol's publisher; nil options are the zero value.
	NewPublisher func(o *PublisherOptions) millrace.Publisher
	// NewReader returns a source that reads a remote site. endpoint is the site's
	// root, or a single page where the protocol can start from one. If client is
	// nil, the guarded default.
	NewReader func(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source
	// Probe finds out what a site has in the protocol and what it costs to read,
	// with few and small requests. It looks where the specification lets a client
	// look, and fetches no more of a list or of documents than the estimates need.
	// Endpoint, client and options are those of NewReader. ErrNotFound: the site
	// does not have the protocol. While a site is probed, the client caches
	// responses, so protocols that look in the same place ask once.
	Probe func(ctx context.Context, client *http.Client, endpoint string, o *ReaderOptions) (*Offer, error)
	// Rules are the specification's requirements as checks.
	Rules func() []check.Rule
}

// PublisherOptions configure the publisher of any protocol. The zero value works.
type PublisherOptions struct {
	ListItems int // most items in one list before it is split into shards; 0 = 50,000
	// Static: the documents become files on a host that ignores queries and
	// generates nothing.
	Static bool
	// Contact is a URL or an e-mail address for operators of machines; "" = none.
	Contact string
	// Auth: documents other than discovery documents need a key.
	Auth bool
	// Policy is the owner's policy for the use of the content; nil = none is
	// published. It is valid ([millrace.Policy.Validate]).
	Policy *millrace.Policy
	// Also are the names of protocols with OnRequest in which the site is published.
	Also []string
	// Protocols are the names of all protocols that the site is published in. Two
	// that clients could confuse then use different names.
	Protocols []string
	// Own are the options of single protocols, such as a *scp.PublisherOptions, at
	// most one of a type; see [Own].
	Own []any
}

// Own returns the options of type T, which are a single protocol's; zero ones if
// there are none.
func Own[T any](o *PublisherOptions) *T {
	if o != nil {
		for _, v := range o.Own {
			if own, ok := v.(*T); ok {
				return own
			}
		}
	}
	return new(T)
}

// ReaderOptions configure the reader of any protocol. The zero value works.
type ReaderOptions struct {
	// Note receives violations that do not stop the reader; nil = ignored. It is
	// called from any goroutine.
	Note func(Note)
	// Key returns the key for an origin, such as "https://example.com", or "". It is
	// sent as a Bearer token to that origin only, and not after a redirect to
	// another one. nil = no keys. It is called from any goroutine.
	Key func(origin string) string
	// Policy receives every document that says what the content may be used for,
	// before anything is taken under it. Its error stops the reader, and so does a
	// policy that cannot be parsed. nil = policies are ignored, and one that cannot
	// be parsed is a Note. It is called from any goroutine.
	Policy func(Terms) error
	// MaxList is the size limit in bytes, decoded, of a list of all pages that is
	// one file. A longer one is ErrTooLarge, and nothing of it is applied. If zero,
	// the protocol's own limit.
	MaxList int64
	// Handshake: check for each page that it leads to the document that the list
	// names for it, with one more request a document. A page that leads elsewhere
	// is ErrInvalid. Only TCT draft-00 uses it: only there do pages name their
	// documents.
	Handshake bool
	// Deletions: another [DeletionReader] reports deleted pages, so the reader
	// fetches nothing only to find them.
	Deletions bool
	Now       func() time.Time // the clock; nil = time.Now
}

// Terms are a document in which a site says what its content may be used for.
type Terms struct {
	URL    string
	Policy *millrace.Policy // read-only
	// Names are the names of the document's members, such as
	// "purposes.allow_ai_train"; "" for a member that the document lacks.
	Names MemberNames
}

// MemberNames are the names that a protocol's documents use for parts of a
// policy.
type MemberNames struct {
	Purposes          map[millrace.Purpose]string
	PerSecond, PerDay string // of the rate
}

// PolicyReader is an optional interface of a reader whose protocol has a document
// about the use of the content.
type PolicyReader interface {
	// Policy returns what the document says, which the caller must not change. It
	// fetches the document once in 24 hours. ErrNotFound: the site has none;
	// ErrInvalid, ErrTooLarge: it cannot be parsed; ErrUnavailable: it could not be
	// fetched. An error of ReaderOptions.Policy is returned as it is.
	Policy(ctx context.Context) (*millrace.Policy, error)
}

// Note is a violation of a specification that a reader tolerated.
type Note struct {
	Rule string // id of the checker's rule, or below NAME/reader/ if it has none
	URL  string // of the document
	Text string // what is wrong
}
