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

// View is a [Source] that is fixed at one sequence number, without an open
// transaction: two reads of one View, minutes apart, agree. Its pages and refs
// have absolute C-URLs; where a method takes a URL, an identity works too. A View
// contains only what the site's visibility rule allows.
//
// As a Source, a View yields the log. Its cursor is a sequence number with the
// store's epoch ([Site.At]), Version is the page's revision, and a cursor of
// another epoch is ErrConflict. From the start, it yields the pages in the order
// of their identities.
type View interface {
	Source
	// Site describes the view, without reading anything.
	Site() Site
	// Scan yields pages in the order that s asks for.
	Scan(ctx context.Context, s Scan) iter.Seq2[*Page, error]
	// Tag returns what a protocol's [Tagger] computed for one page.
	// ErrNotFound: the view has no such page, or the protocol does not publish it.
	// ErrGone, which is an ErrNotFound: an earlier edition had a tag of the page.
	// A page that came and went between two editions was never public.
	Tag(ctx context.Context, protocol, url string) (Tag, error)
	// Tags yields every tag of a protocol with a URL after the given one, in the
	// order of the identities.
	Tags(ctx context.Context, protocol, after string) iter.Seq2[Tag, error]
	// SeqAt returns the last sequence number committed at or before a time.
	SeqAt(ctx context.Context, t time.Time) (uint64, error)
}

// Site describes the state of a site in a [View].
type Site struct {
	Base         string         // of the C-URLs: absolute, ends with "/"
	EndpointBase string         // of the machine documents: absolute, ends with "/"
	Home         string         // identity of the home page: "/", or the page that "/" redirects to; "" if it is not visible
	Title        string         // of the home page, else the host
	Language     string         // of the home page, else ""
	Epoch        string         // random, of the log that the view is of
	Volatile     bool           // the log ends with the process, so that no token of it is offered, and no date of its own
	Earlier      []Epoch        // of logs that this one continues, the oldest first
	Seq          uint64         // the sequence number
	Time         time.Time      // when the newest log entry was committed, strictly rising with Seq
	Pages        int            // number of visible pages
	Sections     []Section      // by name
	Tagged       map[string]int // number of pages with a tag, by protocol
}

// Epoch is a log that another one continues after a sequence number.
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

// FirstEpoch returns the name of the oldest log that the site's log continues,
// or of its own: it stays the same when another log continues this one.
func (s Site) FirstEpoch() string {
	if len(s.Earlier) > 0 {
		return s.Earlier[0].Name
	}
	return s.Epoch
}

// At returns the cursor of the site's log after the entry with a sequence number.
func (s Site) At(seq uint64) Cursor {
	return Cursor(s.Epoch + ":" + strconv.FormatUint(seq, 10))
}

// Place returns the sequence number of a cursor. It is the inverse of [Site.At],
// also for cursors of earlier epochs. ErrConflict: the cursor is of another log.
func (s Site) Place(c Cursor) (uint64, error) {
	epoch, number, _ := strings.Cut(string(c), ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !s.Has(epoch, seq) {
		return 0, fmt.Errorf("cursor %q: %w: it is of another log; start over", c, ErrConflict)
	}
	return seq, nil
}

// Section is a part of a site with the number of its visible pages.
type Section struct {
	Name  string
	Pages int
}

// Scan selects the pages that a view yields, and their order.
type Scan struct {
	Section string // only this section; "" = every page
	Order   Order
	After   string // resume after the page with this URL; "" = from the start
	Limit   int    // most pages; 0 = all
	Bodies  bool   // with Blocks; pages without them cost less
}

// Order is an order of pages.
type Order uint8

// The orders of a scan.
const (
	ByURL       Order = iota // by identity, bytewise
	ByPublished              // newest first, ties by identity, undated last
	BySeq                    // last changed first
)

// Tag is what a protocol computed for a page when the page was written.
type Tag struct {
	URL      string    // the page's C-URL, absolute
	Value    string    // the hash that the protocol prescribes, without quotes
	N        int       // 1, or more when pages of an earlier rank claim the same name (see [Tagger])
	Modified time.Time // of the page
}

// Tagger computes a protocol's tags. The store calls it once for each state of a
// page.
type Tagger struct {
	Protocol string // name, such as "tct-01"
	Format   int    // changes when Tag returns other values for the same page
	// Tag returns the value for a page as a View shows it, without changing its
	// Blocks; "" means that the protocol has no document of the page.
	Tag func(site Site, p *Page) (string, error)
	// Rivals returns the identities that affect the name of the given page's
	// document, and those whose name the page affects. A page's N is one more
	// than the number of pages present in before. nil: names never clash.
	Rivals func(identity string) (before, after []string)
}

// Publisher makes the documents of one protocol. It is pure: serving, building,
// caching and conditional requests belong to the edition.
type Publisher interface {
	// Find looks up the document that a request names, and renders nothing. The
	// path of r is relative to the endpoint base. ErrNotFound: the protocol has no
	// such document. The edition finds large documents by their path before it
	// asks Find.
	Find(ctx context.Context, v View, r *http.Request) (*Document, error)
	// All yields every document, large ones first.
	All(ctx context.Context, v View) iter.Seq2[*Document, error]
	// Advertise returns how the site leads to the protocol's documents.
	Advertise(v View) Advertisement
}

// Document is something that can be served or written to a file: its identity
// bytes and their metadata. The edition adds codings, digests, ranges, HEAD and
// 304.
type Document struct {
	Path string // under the endpoint base, starting with "/", with the query if it has one
	// ETag is the strong validator of the identity bytes, without quotes. If it is
	// empty on a large document, the edition derives it from the parts.
	ETag string
	// Header has Content-Type, Cache-Control, Link, Last-Modified and the like. The
	// edition adds no coding if it has Content-Encoding, also without a value.
	Header http.Header
	// OneTag: every content coding has the same ETag, ranges are not served, and the
	// bytes do not depend on the fields in Vary, but for Accept-Encoding, so that all
	// clients share one document. TCT requires all of it.
	OneTag bool
	// Exact: the ETag is "sha256-" and the SHA-256 of the bytes, which are sent as they
	// are: without a content coding, and without ranges. A request that does not accept
	// that gets 406. A HEAD says all that a GET says. The edition fills the ETag of a
	// large document. Draft-03 of TCT wants all of it.
	Exact bool
	Large bool // grows with the site: built with the edition, never in a request
	// Subject is what the document contains. PageCount is rough for a large document.
	// A Public document needs no key, and its request has no query.
	Subject
	// CacheField names a header field that is HIT, with an Age, when the body was
	// made for an earlier request, and MISS when it was made for this one. Large
	// documents have none.
	CacheField string
	// Variant names one of several documents of one URL, such as the media type
	// that the request accepts; "" = the URL has one document. Requests that ask
	// for no variant get another protocol's document or the page. Path is where
	// the same bytes have a URL of their own.
	Variant string
	// Write writes the identity bytes. It may be called more than once.
	Write func(ctx context.Context, w io.Writer) error
	// Parts are the bytes of a large document in pieces that are written again
	// only when they have changed. Every large document has them. Documents of a
	// publisher with the same Parts are one document under several paths.
	Parts *Parts
	// PartsKeyed are the bytes for requests with a key of ScopeRead; nil = the same
	// for everyone. If set, both forms vary by Authorization, and shared caches do
	// not store this one. A request with an invalid key gets neither.
	PartsKeyed *Parts
}

// Advertisement is how a site leads to the documents of one protocol. The gateway
// combines the advertisements of all protocols.
type Advertisement struct {
	Root []Link // of the final response of the origin's root
	// RootData are JSON-LD objects for the head of the root's HTML page, one
	// script element each.
	RootData []json.RawMessage
	// Page returns the links of the response of one C-URL (an identity), none if
	// the protocol does not publish that page; nil = the protocol has none.
	Page func(ctx context.Context, identity string) ([]Link, error)
	// Without returns why a request for the protocol's form of a page gets the page
	// itself: a header field and its value; "" = no field. nil = never.
	Without func(ctx context.Context, r *http.Request) (field, why string, err error)
	// Robots are lines of the origin's robots.txt outside of its groups, such as
	// "Sitemap: https://example.com/sitemap.xml".
	Robots []string
	// Allow are patterns of robots.txt (RFC 9309, section 2.2.2), under the
	// endpoint base, of all that clients of the protocol fetch.
	Allow []string
	// Public lists the discovery documents by their paths under the endpoint base.
	// Clients without a key may fetch these, and no others.
	Public []string
	// Topics are the paths under the endpoint base of the documents that report
	// changes, such as feeds. Hubs are notified of them (WebSub).
	Topics []string
	// Entries are where clients of the protocol begin, for the origin's API
	// catalog (RFC 9727).
	Entries []Entry
}

// Entry is a document with which clients of a protocol begin.
type Entry struct {
	URL  string // absolute, or a path of the origin
	Type string // media type
	Spec string // URL of the protocol's specification; "" = not published
}

// Link is one web link (RFC 8288).
type Link struct {
	URL  string // absolute, or a path of the origin
	Rel  string
	Type string // media type of the target
	HTML bool   // also as an element in the head of an HTML page
	// NoField: with HTML, only as that element and not in the header.
	NoField bool
	// Vary is the request field that selects between the page and the target at
	// the page's own URL, for the Vary of the page's response; "" = the URL always
	// gives the page.
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
