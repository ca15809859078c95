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

// View is a [Source] that is fixed at one sequence number, without an open transaction: two
// reads of one View, minutes apart, agree. Its pages and refs have absolute C-URLs. A method
// that has a parameter for a URL also accepts an identity. A View contains only the pages that
// the site's visibility rule allows.
//
// As a Source, a View yields the store's log. Its cursor is a sequence number with the store's
// epoch ([Site.At]), and a cursor of another epoch is ErrConflict. Version is the page's
// revision. From the start, it yields the pages in the order of their identities.
type View interface {
	Source
	// Site describes the view. It reads nothing from the store.
	Site() Site
	// Scan yields the pages that s selects, in its order.
	Scan(ctx context.Context, s Scan) iter.Seq2[*Page, error]
	// Tag returns the value that a protocol's [Tagger] computed for one page. ErrNotFound: the
	// view has no such page, or the protocol does not publish it. ErrGone, which is an
	// ErrNotFound: an earlier edition had a tag of the page. A page that was created and
	// deleted between two editions was never public.
	Tag(ctx context.Context, protocol, url string) (Tag, error)
	// Tags yields every tag of a protocol with a URL after the given one, in the
	// order of the identities.
	Tags(ctx context.Context, protocol, after string) iter.Seq2[Tag, error]
	// SeqAt returns the last sequence number committed at or before a time.
	SeqAt(ctx context.Context, t time.Time) (uint64, error)
}

// Site describes the state of a site in a [View].
type Site struct {
	Base         string         // base of the C-URLs: absolute, ends with "/"
	EndpointBase string         // base of the protocol documents: absolute, ends with "/"
	Home         string         // identity of the home page: "/", or the page that "/" redirects to; "" = not visible
	Title        string         // title that the source gives the site, else of the home page, else the host
	Language     string         // language of the home page, else ""
	Epoch        string         // random name of the view's log
	Volatile     bool           // the log ends with the process; documents offer no tokens or dates of it
	Earlier      []Epoch        // earlier logs that this one continues, oldest first
	Seq          uint64         // the sequence number
	Time         time.Time      // commit time of the newest log entry, strictly increasing with Seq
	Pages        int            // number of visible pages
	Sections     []Section      // sections by name
	Tagged       map[string]int // number of pages with a tag, by protocol
}

// Epoch is an earlier log, which another log continues after the sequence number Last.
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

// FirstEpoch returns the name of the oldest log that the site's log continues. If there are no
// earlier logs, it returns Epoch. The name does not change when another log continues this
// one.
func (s Site) FirstEpoch() string {
	if len(s.Earlier) > 0 {
		return s.Earlier[0].Name
	}
	return s.Epoch
}

// At returns the cursor after the log entry with a sequence number.
func (s Site) At(seq uint64) Cursor {
	return Cursor(s.Epoch + ":" + strconv.FormatUint(seq, 10))
}

// Place returns the sequence number of a cursor. It is the inverse of [Site.At], and also
// accepts cursors of earlier epochs. ErrConflict: the cursor belongs to another log.
func (s Site) Place(c Cursor) (uint64, error) {
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
	Section string // only this section; "" = all pages
	Order   Order
	After   string // resume after the page with this URL; "" = from the start
	Limit   int    // maximum number of pages; 0 = all
	Bodies  bool   // include Blocks, which cost more to read
}

// Order is an order of pages.
type Order uint8

// The orders of a scan.
const (
	ByURL       Order = iota // by identity, bytewise
	ByPublished              // newest first, ties by identity, undated last
	BySeq                    // most recently changed first
)

// Tag is the value that a protocol computed for a page when the page was stored.
type Tag struct {
	URL      string    // the page's C-URL, absolute
	Value    string    // hash that the protocol prescribes, without quotes
	N        int       // 1, or more if pages of an earlier rank claim the same name (see [Tagger])
	Modified time.Time // of the page
}

// Tagger computes a protocol's tags. The store calls it once for each version of a page.
type Tagger struct {
	Protocol string // name, such as "tct-01"
	Format   int    // changes when Tag returns other values for the same pages
	// Tag returns the value for a page of a View. It must not change the page's Blocks. ""
	// means that the protocol has no document of the page.
	Tag func(site Site, p *Page) (string, error)
	// Rivals returns the identities that affect the name of the given page's document, and
	// those whose name the page affects. A page's N is one more than the number of existing
	// pages in before. If nil, names never clash.
	Rivals func(pagePath string) (before, after []string)
}

// Publisher renders the documents of one protocol. It has no side effects: the edition is
// responsible for serving, building, caching and conditional requests.
type Publisher interface {
	// Find returns the document that a request names, without rendering it. The path of r is
	// relative to the endpoint base. ErrNotFound: the protocol has no such document. The
	// edition matches the paths of large documents before it calls Find.
	Find(ctx context.Context, v View, r *http.Request) (*Document, error)
	// All yields every document, large ones first.
	All(ctx context.Context, v View) iter.Seq2[*Document, error]
	// Advertise returns the links by which clients find the protocol's documents.
	Advertise(v View) Advertisement
}

// Document is something that can be served or written to a file: bytes without content coding,
// and their metadata. The edition adds codings, digests, ranges, HEAD and 304.
type Document struct {
	Path string // path under the endpoint base, starting with "/", with the query if there is one
	// ETag is the strong validator of the bytes without content coding, without quotes. If it
	// is empty on a large document, the edition derives it from the parts.
	ETag string
	// Header has Content-Type, Cache-Control, Link, Last-Modified and the like. If it has
	// Content-Encoding, even an empty one, the edition adds no coding.
	Header http.Header
	// OneTag reports that every content coding has the same ETag, and that ranges are not
	// served. All clients share one document: the bytes depend on no field in Vary except
	// Accept-Encoding. TCT requires this.
	OneTag bool
	// Exact reports that the ETag is "sha256-" and the SHA-256 of the bytes. The bytes are
	// sent without a content coding and without ranges; a request that does not accept them
	// gets 406. The response to HEAD has all fields of the response to GET. The edition sets
	// the ETag of a large document. TCT draft-03 requires this.
	Exact bool
	Large bool // its size grows with the site; it is rendered with the edition, never in a request
	// Subject describes the content of the document. PageCount is approximate for a large
	// document. A Public document needs no key, and its request has no query.
	Subject
	// CacheField names a header field of the response. Its value is HIT, with an Age, if the
	// body was rendered for an earlier request, and MISS if it was rendered for this one.
	// Large documents have none.
	CacheField string
	// Variant distinguishes several documents of one URL, such as by the media type that the
	// request accepts; "" = the URL has one document. A request that asks for no variant gets
	// another protocol's document or the page. Path is the URL that always returns the same
	// bytes.
	Variant string
	// Write writes the identity bytes. It may be called more than once.
	Write func(ctx context.Context, w io.Writer) error
	// Parts holds the bytes of a large document in pieces. A piece is written again only if it
	// has changed. Every large document has Parts. Documents of a publisher with the same
	// Parts are one document under several paths.
	Parts *Parts
	// PartsKeyed holds the bytes for requests with a key of ScopeRead; nil = the same for all
	// requests. If set, both forms vary by Authorization, and shared caches do not store this
	// one. A request with an invalid key gets neither.
	PartsKeyed *Parts
}

// Advertisement holds the links by which clients find the documents of one protocol. The
// gateway combines the advertisements of all protocols.
type Advertisement struct {
	Root []Link // links in the response to the origin's root, after redirects
	// RootData are JSON-LD objects for the head of the root's HTML page, one
	// script element each.
	RootData []json.RawMessage
	// Page returns the links in the response to the page at pagePath, none if the protocol
	// does not publish that page; nil = the protocol has none.
	Page func(ctx context.Context, pagePath string) ([]Link, error)
	// Without returns the reason why a request for the protocol's form of a page gets the page
	// itself, as a header field and its value; "" = no field. nil = never.
	Without func(ctx context.Context, r *http.Request) (field, why string, err error)
	// Robots are lines of the origin's robots.txt outside of its groups, such as
	// "Sitemap: https://example.com/sitemap.xml".
	Robots []string
	// Allow lists patterns of robots.txt (RFC 9309, section 2.2.2) under the endpoint base.
	// They match everything that clients of the protocol fetch.
	Allow []string
	// Public lists the paths of the discovery documents, under the endpoint base. Clients
	// without a key may fetch only these.
	Public []string
	// Topics lists the paths of the documents that report changes, such as feeds, under the
	// endpoint base. WebSub hubs are notified of them.
	Topics []string
	// Entries lists the entry points of the protocol for the origin's API catalog (RFC 9727).
	Entries []Entry
}

// Entry is an entry point of a protocol.
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
	HTML bool   // also a link element in the head of an HTML page
	// NoField, with HTML, omits the link from the header.
	NoField bool
	// Vary is the request field that selects between the page and the target, if both have the
	// page's URL. It is added to Vary of the page's response; "" = the URL always returns the
	// page.
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
