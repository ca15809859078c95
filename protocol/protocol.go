// Package protocol holds the plan of a room: what every protocol package says
// of itself, in the same words. The rooms are the packages below it, and
// package all is the only list of them.
package protocol

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// Protocol describes one room. Every member is filled by every room, but for
// what its specification does not say.
type Protocol struct {
	Name    string // as on the command line, such as "tct-01"
	Label   string // short name for people, such as "TCT 01"; Name is its lower case, with "-" for spaces
	Title   string // of the specification
	Version string // of the specification
	Date    string // of the specification, YYYY-MM-DD; "" = it has none
	Source  string // where the specification is published; "" = it does not say

	// Collections: pages come with their content, many in a file. Where a site
	// has that, a look anywhere else may cost more than reading it.
	Collections bool

	// Entry are the paths that clients begin with on every site, such as
	// "/llms.txt"; nil = there are none, or Rules say whether robots.txt allows
	// them.
	Entry []string

	// Carry gives what is left of a page once it has gone through the
	// protocol, nil if the protocol does not carry the page. It is pure,
	// total and idempotent. Pages are those of a View of site, of which Base
	// and Language count.
	Carry func(site millrace.Site, p *millrace.Page) *millrace.Page
	// Tagger computes the room's tags in the store.
	Tagger millrace.Tagger
	// NewPublisher makes the room's publisher; nil options are the zero value.
	NewPublisher func(o *PublisherOptions) millrace.Publisher
	// NewReader reads a remote site: endpoint is the site's root, or a single
	// page where the protocol can start from one. client nil = the guarded default.
	NewReader func(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source
	// Look finds out what a site has in the protocol and what it costs to read,
	// in few and small requests: where the specification lets a client look, and
	// no more of a list, and of documents as samples, than estimates need.
	// Endpoint, client and options are those of NewReader. ErrNotFound: the site
	// does not have it. The client remembers what was asked for while a site is
	// looked at, so that rooms that look in the same place ask once.
	Look func(ctx context.Context, client *http.Client, endpoint string, o *ReaderOptions) (*Offer, error)
	// Rules are the specification's sentences as checks.
	Rules func() []check.Rule
}

// PublisherOptions configure any room's publisher. The zero value works.
type PublisherOptions struct {
	ListItems int // most items in one list before it is split in shards; 0 = 50,000
	// Sections are prefixes of paths that make the parts of the site that have
	// documents of their own; nil = the first segments of paths do.
	Sections []string
	// UpdateFrequency is how often documents of the site's size promise to be
	// made anew: hourly, daily, weekly or monthly; "" = as often as the site
	// changes.
	UpdateFrequency string
	// FilesURL is where files with fixed bytes are fetched from, such as a CDN:
	// absolute, without "/" at its end; "" = where they are made.
	FilesURL string
	// NoChecksum: collections have no checksum in their metadata.
	NoChecksum bool
	// Static: the documents are going to be files on a host that looks at no
	// query and answers nothing by itself.
	Static bool
	// Contact is whom machines' operators can ask: a URL or an e-mail address;
	// "" = nobody.
	Contact string
	// Auth: what is not discovery needs a key.
	Auth bool
	// Policy is what the owner says about the use of the content; nil = nothing,
	// and no document about it. It is valid ([millrace.Policy.Validate]).
	Policy *millrace.Policy
	// Priorities say which pages matter most to machines, from 0 to 1: by path
	// under the base, with everything below; the longest that fits counts. nil =
	// nothing is said.
	Priorities map[string]float64
	// Listed are URLs of the site, or paths of it, whose pages are listed by URL
	// alone, as not to be indexed. Other pages that are hidden are never named.
	Listed []string
	// NoSitemapLine: robots.txt does not name what is no XML sitemap as one.
	NoSitemapLine bool
	// Beside are the names of the protocols that the site is published in, this
	// one perhaps among them: two that could be taken for each other keep apart.
	Beside []string
	// Embeddings: searches compare vectors of a model.
	Embeddings bool
	// Hubs are the hubs that are told when a topic has changed (WebSub): absolute
	// URLs. A document that is a topic ([millrace.Notice].Topics) names them, and
	// its own URL as rel="self", in Link fields and in its own form, if it has one
	// for it. nil = there are none.
	Hubs []string
	// MarkdownPublic: shared caches may keep the Markdown that is given at a page's
	// own URL, since those in front of the site mind Vary.
	MarkdownPublic bool
	// LLMsFull: there is a file with the Markdown of all pages.
	LLMsFull bool
}

// ReaderOptions configure any room's reader. The zero value works.
type ReaderOptions struct {
	Note func(Note) // told of what is odd but no reason to stop; nil = nobody. Called from any goroutine
	// Key gives the key that an origin, such as "https://example.com", has
	// given, "" for none. It is sent as a Bearer token to that origin alone, and
	// not once a redirect has left it. nil = there are none. Called from any goroutine.
	Key func(origin string) string
	// Policy is told of every document that says what the content may be used
	// for, as soon as it is read and before anything is taken under it. Its
	// error ends what the reader is doing, as does a document that cannot be
	// understood: nobody could keep to it. nil = nobody, and such a document is
	// a Note. Called from any goroutine.
	Policy func(Terms) error
	// MaxList is how many bytes, without coding, a list of all pages may have
	// that is one file, and whatever is read in its place; what is longer is
	// ErrTooLarge, and nothing of it applied. 0 = the room's own limit.
	MaxList int64
	// Handshake: each page is asked, too, whether it leads to the document that
	// the list names for it; one more request for each document, and a page that
	// leads elsewhere is ErrInvalid. Of TCT draft-00 alone: the others' documents
	// are not named by their pages' HTML.
	Handshake bool
	// Deletions: somebody else tells of the pages that are gone, as a
	// [DeletionReader] does, so nothing is read for their sake alone.
	Deletions bool
	Now       func() time.Time // the clock; nil = time.Now
}

// Start sets the options that every reader needs to their defaults, and returns
// what it begins with: a client that sends the keys, the guarded default if
// client is nil, and the canonical URLs of the endpoint and of the root of its
// origin. name is the protocol's.
func (o *ReaderOptions) Start(name string, client *http.Client, endpoint string) (with *http.Client, at, root string, err error) {
	if client == nil {
		client = fetch.New(nil).HTTP()
	}
	if o.Note == nil {
		o.Note = func(Note) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if at, err = canon.URL(endpoint); err != nil {
		err = fmt.Errorf("%s: %w: %w", name, err, millrace.ErrInvalid)
	}
	return fetch.WithKeys(client, o.Key), at, canon.Origin(at) + "/", err
}

// Terms are a document in which a site says what its content may be used for.
type Terms struct {
	URL    string
	Policy *millrace.Policy // not to be changed
	// Names are those of members of the document, such as
	// "purposes.allow_ai_train"; "" for what it has no member for.
	Names MemberNames
}

// MemberNames are how the documents of a protocol name what a policy says.
type MemberNames struct {
	Purposes          map[millrace.Purpose]string
	PerSecond, PerDay string // of the rate
}

// PolicyReader is a reader whose protocol has a document about the use of the
// content. It is found by assertion.
type PolicyReader interface {
	// Policy gives what the document says, which the caller must not change. It
	// asks for it once in 24 hours. ErrNotFound: the site has none; ErrInvalid,
	// ErrTooLarge: it cannot be understood; ErrUnavailable: it is out of reach
	// for now. An error of ReaderOptions.Policy is given as it is.
	Policy(ctx context.Context) (*millrace.Policy, error)
}

// Note is something odd that a reader saw and went on from.
type Note struct {
	Rule string // id of the rule that it breaks, as the checker names it; below NAME/reader/ what breaks none
	URL  string // the document
	Text string // what is odd, in words
}
