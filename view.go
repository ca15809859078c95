package millrace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// View is a [Source] that is fixed at one sequence number, without an open transaction: two reads
// of one View, minutes apart, agree. Its pages and refs have absolute C-URLs. Methods with a URL
// parameter also accept an identity. A View contains only the pages that the site's visibility rule
// allows.
//
// As a Source, a View yields the store's log. Its cursor is a sequence number with the epoch of the
// log ([Site.At]). A cursor of another log gives ErrConflict; see [Site.SeqOf]. The Version of a
// page is its revision. From the start, a View yields the pages in the order of their identities.
type View interface {
	Source
	// Site describes the view. It does not access the store.
	Site() Site
	// Scan yields the pages that s selects, in the order that s requests.
	Scan(ctx context.Context, s Scan) iter.Seq2[*Page, error]
	// Tag returns the value that a protocol's [Tagger] computed for one page. If the view has no
	// such page, or the protocol does not publish it, Tag returns ErrNotFound. If an earlier
	// edition had a tag for the page, it returns ErrGone, which is an ErrNotFound. A page that was
	// created and deleted between two editions was never public, and gives ErrNotFound only.
	Tag(ctx context.Context, protocol, url string) (Tag, error)
	// Tags yields a protocol's tags in the order of their identities, starting after the URL after.
	// If after is empty, it yields all.
	Tags(ctx context.Context, protocol, after string) iter.Seq2[Tag, error]
	// SeqAt returns the last sequence number committed at or before a time, or 0 if no change was
	// committed by then.
	SeqAt(ctx context.Context, t time.Time) (uint64, error)
}

// Site describes the state of a site in a [View].
type Site struct {
	Base         string         // base of the C-URLs: absolute, ends with "/"
	EndpointBase string         // base of the protocol documents: absolute, ends with "/"
	Home         string         // identity of the home page: "/", or the page to which "/" redirects. If empty, there is no visible home page.
	Title        string         // title from the source, else the title of the home page, else the host
	Language     string         // language of the home page, or "" if unknown
	Epoch        string         // random name of the view's log
	Volatile     bool           // the log ends with the process, so documents contain no tokens or dates from it
	Earlier      []Epoch        // earlier logs that this one continues, oldest first
	Seq          uint64         // sequence number of the view
	Time         time.Time      // commit time of the newest log entry, strictly increasing with Seq
	Pages        int            // number of visible pages of the site
	Sections     []Section      // sections by name
	Tagged       map[string]int // number of pages with a tag, by protocol
}

// Epoch is an earlier log that another log continues after the sequence number Last.
type Epoch struct {
	Name string
	Last uint64
}

// Has reports whether a sequence number of an epoch belongs to the site's log.
func (s Site) Has(epoch string, seq uint64) bool {
	for _, e := range s.Earlier {
		if e.Name == epoch {
			return seq <= e.Last
		}
	}
	return epoch == s.Epoch
}

// FirstEpoch returns the name of the oldest log that the site's log continues, or Epoch if there
// are no earlier logs. The name stays the same when another log continues this one.
func (s Site) FirstEpoch() string {
	if len(s.Earlier) > 0 {
		return s.Earlier[0].Name
	}
	return s.Epoch
}

// At returns the cursor after the log entry with sequence number seq.
func (s Site) At(seq uint64) Cursor {
	return Cursor(s.Epoch + ":" + strconv.FormatUint(seq, 10))
}

// SeqOf returns the sequence number of a cursor. It is the inverse of [Site.At], and also accepts
// cursors of earlier epochs. If the cursor belongs to another log, SeqOf returns ErrConflict.
func (s Site) SeqOf(c Cursor) (uint64, error) {
	epoch, number, _ := strings.Cut(string(c), ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !s.Has(epoch, seq) {
		return 0, fmt.Errorf("cursor %q: %w: belongs to another log; start over", c, ErrConflict)
	}
	return seq, nil
}

// Section is a part of a site with the number of its visible pages.
type Section struct {
	Name  string
	Pages int
}

// Scan selects pages of a view and their order.
type Scan struct {
	Section    string // section of the pages. If empty, all pages.
	Order      Order
	After      string // resume after the page with this URL. If empty, from the start.
	Limit      int    // maximum number of pages. If zero, all.
	WithBlocks bool   // include Blocks, which cost more to read
}

// Order is an order of pages.
type Order uint8

// The orders of a scan.
const (
	ByURL       Order = iota // by identity, in bytewise order
	ByPublished              // newest first, then by identity, undated pages last
	BySeq                    // most recently changed first
)

// Tag is the value that a protocol computed for one version of a page.
type Tag struct {
	URL      string    // the page's C-URL, absolute
	Value    string    // hash that the protocol prescribes, without quotes
	N        int       // 1, or more if pages that take precedence claim the same name (see [Tagger])
	Modified time.Time // modification time of the page
}

// Tagger computes a protocol's tags. The store calls it once for each version of a page.
type Tagger struct {
	Protocol string // name, such as "tct-01"
	Format   int    // changes when Tag returns different values for the same pages
	// Tag returns the value for a page of a View. It must not change the page's Blocks. "" means
	// that the protocol publishes no document of the page.
	Tag func(site Site, p *Page) (string, error)
	// Conflicts returns the identities that affect the name of the given page's document, and the
	// identities whose document names the page affects. The N of a page is one more than the number
	// of existing pages in before. If Conflicts is nil, names never clash.
	Conflicts func(pagePath string) (before, after []string)
}

// Publisher renders the documents of one protocol. It has no side effects. The edition serves,
// builds and caches the documents, and handles conditional requests.
type Publisher interface {
	// Find returns the document that a request names, without rendering it. The path of r is
	// relative to the endpoint base. If the protocol has no such document, Find returns
	// ErrNotFound. The edition matches the paths of large documents before it calls Find.
	Find(ctx context.Context, v View, r *http.Request) (*Document, error)
	// All yields every document, large ones first.
	All(ctx context.Context, v View) iter.Seq2[*Document, error]
	// Advertise returns the links by which clients find the protocol's documents.
	Advertise(v View) Advertisement
}

// Document is something that can be served or written to a file: bytes without content coding, and
// their metadata. The edition adds content codings, digests, ranges, HEAD and 304.
type Document struct {
	Path string // path under the endpoint base, starting with "/", including a query if any
	// ETag is the strong validator of the bytes without content coding. It has no quotes. If it is
	// empty for a large document, the edition derives it from the parts.
	ETag string
	// Header contains fields such as Content-Type, Cache-Control, Link and Last-Modified. If it
	// contains Content-Encoding, even an empty one, the edition adds no coding.
	Header http.Header
	// SharedETag reports whether every content coding has the same ETag. If so, ranges are not served.
	// All clients get the same document: the bytes depend on no request field except
	// Accept-Encoding. TCT requires this.
	SharedETag bool
	// DigestETag reports whether the ETag is "sha256-" followed by the SHA-256 of the bytes. If so,
	// the bytes are sent without a content coding and without ranges; a request that does not accept
	// this form gets 406. The response to HEAD has all fields of the response to GET. The edition
	// sets the ETag of a large document. TCT draft-03 requires this.
	DigestETag bool
	Large      bool // the document grows with the site; it is rendered when the edition is built, never during a request
	// Subject describes the content of the document. For a large document, PageCount is
	// approximate. A Public document needs no key, and requests for it have no query.
	Subject
	// CacheField names a header field of the response. If the body was rendered for an earlier
	// request, the value of the field is HIT, and the response has an Age; if it was rendered for
	// this request, MISS. Large documents have no CacheField.
	CacheField string
	// Variant distinguishes several documents of one URL, for example by the media type that the
	// request accepts. If empty, the URL has one document. A request that selects no variant gets
	// the document of another protocol or the page. Path is the URL that always returns the same
	// bytes.
	Variant string
	// Write writes the bytes without content coding. It may be called more than once.
	Write func(ctx context.Context, w io.Writer) error
	// Parts contains the bytes of a large document in pieces. It must be set if Large is true. A
	// piece is rewritten only if it has changed. If several documents of a publisher have the same
	// Parts, they are one document under several paths.
	Parts *Parts
	// PartsKeyed contains the bytes for requests with a key that has ScopeRead. If nil, these
	// requests get Parts. If set, both forms vary by Authorization, and shared caches do not store
	// the form for keys. A request with an invalid key gets neither.
	PartsKeyed *Parts
}

// Advertisement holds the links by which clients find the documents of one protocol. The
// gateway combines the advertisements of all protocols.
type Advertisement struct {
	Root []Link // links for the response to the origin's root, after redirects
	// RootData are JSON-LD objects for the head of the root's HTML page, each in its own script
	// element.
	RootData []json.RawMessage
	// Page returns the links for the response to the page at pagePath, or none if the protocol does
	// not publish that page. If Page is nil, there are none.
	Page func(ctx context.Context, pagePath string) ([]Link, error)
	// ExplainFallback explains why a request for the protocol's form of a page gets the page
	// itself. The explanation is a header field and its value. If field is empty or
	// ExplainFallback is nil, there is no explanation.
	ExplainFallback func(ctx context.Context, r *http.Request) (field, why string, err error)
	// Robots are lines for the origin's robots.txt outside of its groups, such as "Sitemap:
	// https://example.com/sitemap.xml".
	Robots []string
	// Allow lists robots.txt patterns (RFC 9309, section 2.2.2) under the endpoint base. They match
	// all paths that clients of the protocol fetch.
	Allow []string
	// Public lists the paths of the discovery documents under the endpoint base. Clients without a
	// key may fetch only these documents.
	Public []string
	// Entries lists the entry points of the protocol for the origin's API catalog (RFC 9727).
	Entries []Entry
}

// Entry is an entry point of a protocol.
type Entry struct {
	URL  string // absolute URL, or a path on the origin
	Type string // media type of the document
	Spec string // URL of the protocol's specification, or "" if not published
}

// Link is one web link (RFC 8288).
type Link struct {
	URL  string // absolute URL, or a path on the origin
	Rel  string
	Type string // media type of the target
	HTML bool   // also write a link element in the head of an HTML page
	// NoField omits an HTML link from the Link header field.
	NoField bool
	// Vary is the request field that selects between the page and the target, if both have the
	// page's URL. It is added to the Vary field of the page's response. If empty, the URL always
	// returns the page.
	Vary string
}

// String returns the link as the value of a Link header field.
func (l Link) String() string {
	s := "<" + l.URL + `>; rel="` + l.Rel + `"`
	if l.Type != "" {
		s += `; type="` + l.Type + `"`
	}
	return s
}
