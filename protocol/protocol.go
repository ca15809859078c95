// Package protocol defines what a protocol package provides: its names, its publisher, its
// reader and its rules. The protocols are its subpackages; package all lists them.
package protocol

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
)

// Protocol describes one protocol. Every member is set, unless the specification does not
// define it.
type Protocol struct {
	Name    string // as on the command line, such as "tct-01"
	Label   string // short display name, such as "TCT 01"; Name is its lower case, with "-" for spaces
	Title   string // title of the specification
	Version string // version of the specification
	Date    string // date of the specification, YYYY-MM-DD; "" = undated
	Source  string // URL of the specification; "" = not published

	// Collections reports that files contain many pages with their content. On such a site,
	// probing another protocol may cost more than reading the site.
	Collections bool

	// Fallback reports that the specification requires readers to read the site another way
	// whenever this one fails.
	Fallback bool

	// Entry lists the paths that clients fetch first on every site, such as "/llms.txt"; nil if
	// there are none, or if Rules already checks that robots.txt allows them.
	Entry []string

	// Home is the path, below the endpoint base, of the document that clients fetch first.
	// HomeLink is the home page's link to it, without its URL; if Rel is empty, the home page
	// has no such link.
	Home     string
	HomeLink millrace.Link
	// Public reports that the content is public by design. The site is not published in the
	// protocol if its documents need a key.
	Public bool
	// OnRequest reports that the specification is not settled. A site is published in the
	// protocol only if its owner enables it.
	OnRequest bool
	// Repeats reports that the documents repeat the text of every page, as the Markdown of
	// protocol/web does, so the protocol is not part of a compact build; see
	// [PublisherOptions].
	Repeats bool
	// Elements reports that pages must have elements in the head of their HTML.
	Elements bool
	// Feeds reports that the protocol publishes feeds, which hubs distribute (WebSub).
	Feeds bool
	// Partial reports whether a page declares that parts of it are not public, so its HTML
	// must not complete it; nil = no page does.
	Partial func(p *millrace.Page) bool
	// Sitemap is part of the URL of a sitemap by which robots.txt names the protocol. The policy
	// of other sites is not requested; "" = robots.txt does not name it.
	Sitemap string

	// Carry returns what remains of a page after a round trip through the protocol, or nil if the
	// protocol does not carry the page. It is pure, total and idempotent. Pages are those of a View
	// of site; only site's Base and Language matter.
	Carry func(site millrace.Site, p *millrace.Page) *millrace.Page
	// Tagger computes the protocol's tags in the store.
	Tagger millrace.Tagger
	// NewPublisher returns the protocol's publisher. nil options mean the zero value.
	NewPublisher func(o *PublisherOptions) millrace.Publisher
	// NewReader returns a source that reads a remote site. endpoint is the site's root, or a
	// single page if the protocol can start at one. If client is nil, the source uses the
	// guarded default client.
	NewReader func(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source
	// Probe finds out what a site publishes in the protocol and what reading it costs, with
	// few and small requests. It requests only URLs that the specification defines for
	// discovery, and fetches only the parts of lists and documents that the estimates need.
	// Its parameters are those of NewReader. ErrNotFound: the site does not have the protocol.
	// While a site is probed, the client caches responses, so protocols that request the same
	// URL fetch it once.
	Probe func(ctx context.Context, client *http.Client, endpoint string, o *ReaderOptions) (*Offer, error)
	// Deletions yields the deleted pages of a site without its other pages, as Deletes with
	// absolute URLs; nil = the protocol does not report them. Its first parameters are those of
	// NewReader. It ends with one checkpoint, whose cursor the next call takes. It skips deleted
	// pages that exist again, and reports pages of other sites as a Note. If it fails, discard
	// what it yielded.
	//
	// Call it after reading the primary source, which may list pages that are already deleted.
	// from is the oldest state that this reading has reported: the Time of its checkpoints, or
	// its start if they have none; zero if it has reported nothing. Without a cursor,
	// Deletions starts at from, less a margin for clock differences; if from is zero, it
	// starts now. With a cursor, it starts there, or at from if that is earlier.
	//
	// If nothing has changed, it takes one small request or a 304. The first call in 24 hours
	// also looks for the endpoint again. If pages have changed, the response also lists the
	// changed pages.
	//
	// [millrace.ErrConflict]: the site no longer has all deletions since the cursor. Read the
	// primary source completely, then call Deletions without a cursor.
	// [errors.ErrUnsupported]: the site does not report deletions.
	Deletions func(ctx context.Context, client *http.Client, endpoint string, o *ReaderOptions, since millrace.Cursor, from time.Time) iter.Seq2[millrace.Change, error]
	// Notify calls changed whenever a site reports a change, until ctx ends, and returns the
	// context's error; nil = the protocol has no event stream. Its first parameters are those
	// of NewReader. A report is a hint; read the site to find the changes. position is the
	// argument of an earlier call of changed: Notify also reports the events since then. If
	// position is empty, Notify calls changed once as soon as the stream is open. Calls do not
	// overlap; changed must return at once.
	//
	// Notify reconnects with growing delays and continues at its position.
	// [millrace.ErrNotFound]: the site has no events; [millrace.ErrForbidden]: the site
	// refuses them to this client; [millrace.ErrInvalid]: they cannot be parsed.
	// ErrUnavailable does not end it.
	Notify func(ctx context.Context, client *http.Client, endpoint string, o *ReaderOptions, position string, changed func(position string)) error
	// Rules are the specification's requirements as checks.
	Rules func() []check.Rule
}

// PublisherOptions are the options of any protocol's publisher. The zero value works.
type PublisherOptions struct {
	ListItems int // maximum items in one list before it is split into shards; 0 = 50,000
	// Static makes the publisher write its documents for a host that serves only files and
	// ignores queries.
	Static bool
	// NoElements reports that pages get no elements in the head of their HTML.
	NoElements bool
	// Contact is a URL or an e-mail address for operators of bots; "" = none.
	Contact string
	// Auth reports that all documents except discovery documents need a key.
	Auth bool
	// Policy is the owner's policy for the use of the content; nil = no policy is published.
	// It must be valid ([millrace.Policy.Validate]).
	Policy *millrace.Policy
	// Compact omits documents that repeat another one in another coding, in another format or
	// at another path, and protocols with Repeats.
	Compact bool
	// Also lists the protocols with OnRequest or Repeats in which the site is published.
	Also []string
	// Protocols lists all protocols in which the site is published. Two that clients could
	// confuse use different names if both are listed.
	Protocols []string
	// Own contains the options of single protocols, such as a *scp.PublisherOptions, at most
	// one of each type; see [Own].
	Own []any
}

// Own returns the options of type T, which belong to a single protocol, or a zero T if there
// are none.
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

// ReaderOptions are the options of any protocol's reader. The zero value works.
type ReaderOptions struct {
	// Note receives violations that do not stop the reader; nil = ignored. It may be called
	// from any goroutine.
	Note func(Note)
	// Key returns the key for an origin, such as "https://example.com", or "". The reader
	// sends it as a Bearer token only to that origin, and drops it on a redirect to another
	// one. nil = no keys. It may be called from any goroutine.
	Key func(origin string) string
	// Policy receives every document that declares a usage policy, before any content under
	// that policy is read. Its error stops the reader, as does a policy that cannot be parsed.
	// If nil, policies are ignored, and one that cannot be parsed is a Note. It may be called
	// from any goroutine.
	Policy func(Terms) error
	// MaxList is the maximum decoded size, in bytes, of a list of all pages in one file. A
	// longer list is ErrTooLarge, and no part of it is applied. If zero, the protocol's own
	// limit.
	MaxList int64
	// Handshake makes the reader check for each page that the page links to the document that
	// the list names, with one more request per document. A page that links elsewhere is
	// ErrInvalid. Only TCT draft-00 uses it, because only its pages link to their documents.
	Handshake bool
	// Deletions reports that another protocol's Deletions reports deleted pages, so the reader
	// fetches nothing only to find them.
	Deletions bool
	Now       func() time.Time // clock; nil = time.Now
}

// Terms is a document in which a site declares how its content may be used.
type Terms struct {
	URL    string
	Policy *millrace.Policy // read-only
	// Names contains the names of the document's members, such as "purposes.allow_ai_train";
	// "" for a member that the document lacks.
	Names MemberNames
}

// MemberNames contains the names that a protocol's documents use for the parts of a policy.
type MemberNames struct {
	Purposes          map[millrace.Purpose]string
	PerSecond, PerDay string // rate limits
}

// PolicyReader is an optional interface of a reader whose protocol defines a usage policy
// document.
type PolicyReader interface {
	// Policy returns the site's policy, which the caller must not change. It fetches the
	// document once in 24 hours. ErrNotFound: the site has none; ErrInvalid, ErrTooLarge: it
	// cannot be parsed; ErrUnavailable: it could not be fetched. It returns an error of
	// ReaderOptions.Policy unchanged.
	Policy(ctx context.Context) (*millrace.Policy, error)
}

// Note is a violation of a specification that a reader has tolerated.
type Note struct {
	Rule string // ID of the checker's rule, or an ID below NAME/reader/
	URL  string // URL of the document
	Text string // description of the violation
}
