// Package protocol defines what a protocol package provides: a description, a publisher, a reader
// and rules. The protocols are its subpackages; package all lists them.
package protocol

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
)

// Protocol describes one protocol. Fields that do not apply to the protocol are zero.
type Protocol struct {
	Name    string // name on the command line, such as "tct-01"
	Label   string // short display name, such as "TCT 01"; Name is the same in lower case, with "-" for spaces
	Title   string // title of the specification
	Version string // version of the specification
	Date    string // date of the specification, YYYY-MM-DD, or "" if undated
	Source  string // URL of the specification, or "" if not published

	// Collections reports whether the protocol has files that contain many pages with their
	// content. On a site with such files, probing another protocol may cost more than reading the
	// site.
	Collections bool

	// Fallback reports whether the specification requires readers to read the site in another way
	// if this protocol fails.
	Fallback bool

	// Entry lists the paths that clients fetch first on every site, such as "/llms.txt". It is nil
	// if there are no such paths, or if Rules already checks that robots.txt allows them.
	Entry []string

	// Home is the path, below the endpoint base, of the document that clients fetch first. HomeLink
	// is the link from the home page to this document; its URL is empty. If HomeLink.Rel is empty,
	// the home page has no such link.
	Home     string
	HomeLink millrace.Link
	// Public reports whether the content is public by design. If so, a site whose documents need a
	// key is not published in the protocol.
	Public bool
	// OnRequest reports whether the protocol is off by default, because its specification is not
	// final. If so, sites are published in the protocol only if their owners enable it.
	OnRequest bool
	// Repeats reports whether the documents repeat the text of every page, as the Markdown of
	// protocol/web does. Such a protocol is not part of a compact build; see [PublisherOptions].
	Repeats bool
	// Elements reports whether the protocol requires elements in the head of each page's HTML.
	Elements bool
	// Feeds reports whether the protocol publishes feeds, which hubs distribute (WebSub).
	Feeds bool
	// Partial reports whether a page declares that parts of it are not public. The HTML of such a
	// page must not be used to complete it. If Partial is nil, no page declares this.
	Partial func(p *millrace.Page) bool
	// Sitemap is a substring of the sitemap URLs in robots.txt that identify the protocol. If a
	// site without such a URL is read in another protocol, its policy in this protocol is not
	// requested. If empty, robots.txt does not identify the protocol.
	Sitemap string

	// Carry returns what remains of a page after a round trip through the protocol, or nil if the
	// protocol does not carry the page. Carry is pure, total and idempotent. p is a page of a View
	// of site. Carry uses only the Base and Language of site.
	Carry func(site millrace.Site, p *millrace.Page) *millrace.Page
	// Tagger computes the protocol's tags in the store.
	Tagger millrace.Tagger
	// NewPublisher returns the protocol's publisher. Nil options mean the zero value.
	NewPublisher func(o *PublisherOptions) millrace.Publisher
	// NewReader returns a source that reads a remote site. endpoint is the site's root, or a single
	// page if the protocol can start at a page. If client is nil, the source uses the guarded
	// default client.
	NewReader func(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source
	// Probe finds out what a site publishes in the protocol and what reading it costs, with few,
	// small requests. It requests only URLs that the specification defines for discovery, and
	// fetches only the parts of lists and documents that the estimates need. Its parameters are
	// those of NewReader. If the site does not have the protocol, the error is ErrNotFound. The
	// client caches responses while a site is probed, so a URL that several protocols request is
	// fetched once.
	Probe func(ctx context.Context, client *http.Client, endpoint string, o *ReaderOptions) (*Offer, error)
	// Notify calls changed whenever a site reports a change, until ctx ends, and returns the
	// context's error. If Notify is nil, the protocol has no event stream. Its first parameters are
	// those of NewReader. A report is only a hint: read the site to find the changes. position is
	// the argument of an earlier call of changed; Notify then also reports the events since that
	// call. If position is empty, Notify calls changed once as soon as the stream is open. Calls do
	// not overlap; changed must return at once.
	//
	// Notify reconnects with growing delays, and continues at its position. The error is
	// [millrace.ErrNotFound] if the site has no events, [millrace.ErrForbidden] if it refuses them
	// to this client, and [millrace.ErrInvalid] if they cannot be parsed. An ErrUnavailable does
	// not end Notify.
	Notify func(ctx context.Context, client *http.Client, endpoint string, o *ReaderOptions, position string, changed func(position string)) error
	// Rules returns the requirements of the specification as checks.
	Rules func() []check.Rule
}

// PublisherOptions are the options of every protocol's publisher. The zero value is ready to use.
type PublisherOptions struct {
	ListItems int // maximum number of items in one list before it is split into shards. If zero, 50,000.
	// Static makes the publisher write its documents for a host that serves only files and ignores
	// queries.
	Static bool
	// NoElements reports whether the head of each page's HTML gets no additional elements.
	NoElements bool
	// Contact is a URL or an e-mail address for operators of bots, or "".
	Contact string
	// Auth reports whether all documents except discovery documents need a key.
	Auth bool
	// Policy is the owner's usage policy. If nil, no policy is published. It must be valid
	// ([millrace.Policy.Validate]).
	Policy *millrace.Policy
	// Compact omits protocols with Repeats, and documents that repeat another document in another
	// coding, in another format, or at another path.
	Compact bool
	// Also lists protocols in which the site is published even if OnRequest, Compact or NoElements
	// excludes them.
	Also []string
	// Protocols lists all protocols in which the site is published. If two protocols that clients
	// could confuse are both listed, they use different names.
	Protocols []string
	// Own contains the options of individual protocols, such as a *scp.PublisherOptions, at most
	// one of each type; see [Own].
	Own []any
}

// Own returns the options of type T, which belong to an individual protocol, or a zero T if o
// contains none.
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

// ReaderOptions are the options of every protocol's reader. The zero value is ready to use.
type ReaderOptions struct {
	// Note receives violations that do not stop the reader. If nil, they are ignored. It may be
	// called from any goroutine.
	Note func(Note)
	// Key returns the access key for an origin, such as "https://example.com", or "". The reader
	// sends the key as a Bearer token to that origin only, and drops it on a redirect to another
	// origin. If nil, there are no keys. It may be called from any goroutine.
	Key func(origin string) string
	// Policy receives every document that declares a usage policy, before any content under that
	// policy is read. If it returns an error, the reader stops. The reader also stops if a policy
	// cannot be parsed. If Policy is nil, policies are ignored, and a policy that cannot be parsed
	// is a Note. It may be called from any goroutine.
	Policy func(Terms) error
	// MaxList is the maximum decoded size, in bytes, of a file that lists all pages. For a longer
	// file, the error is ErrTooLarge, and no part of the file is applied. If zero, the limit of the
	// protocol applies.
	MaxList int64
	// Quota is the maximum number of decoded bytes that one run fetches and stores in temporary
	// files, for files with many pages such as SCP collections. Beyond it, the error is
	// ErrTooLarge. If zero, the limit of the protocol applies.
	Quota int64
	// CheckPageLinks makes the reader check that each page links to the document that the list
	// names for it. This takes one more request per document. If a page links to another document,
	// the error is ErrInvalid. Only TCT draft-00 uses it, because only that draft requires these
	// links.
	CheckPageLinks bool
	Now            func() time.Time // clock. If nil, time.Now.
}

// Terms is a document in which a site declares how its content may be used.
type Terms struct {
	URL    string
	Policy *millrace.Policy // read-only
	// Names contains the names of the document's members, such as "purposes.allow_ai_train", or ""
	// for missing members.
	Names MemberNames
}

// MemberNames contains the names that the documents of a protocol use for the parts of a policy.
type MemberNames struct {
	Purposes          map[millrace.Purpose]string
	PerSecond, PerDay string // names of the rate limits
}

// PolicyReader is an optional interface of a reader whose protocol defines a usage policy document.
type PolicyReader interface {
	// Policy returns the site's policy, which the caller must not change. It fetches the document
	// at most once in 24 hours. The error is ErrNotFound if the site has no policy, ErrInvalid or
	// ErrTooLarge if the policy cannot be parsed, and ErrUnavailable if it could not be fetched. If
	// ReaderOptions.Policy returns an error, Policy returns that error unchanged.
	Policy(ctx context.Context) (*millrace.Policy, error)
}

// Note is a violation of a specification that a reader tolerates.
type Note struct {
	Rule string // ID of the checker's rule, or an ID that starts with NAME/reader/
	URL  string // URL of the document
	Text string // description of the violation
}
