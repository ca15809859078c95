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

// View is a [Source] that stands still at one sequence number, with no open
// transaction: two reads of one View, minutes apart, agree. Its pages and refs
// carry absolute C-URLs; where it takes a URL, an identity will do as well.
// Only what the site's visibility rule lets through is in a View.
//
// As a Source, a View yields the log: its cursor is a sequence number with the
// store's epoch ([Site.At]), Version is the page's revision, and a cursor of another epoch
// is ErrConflict. From the start, it yields the pages in the order of their identities.
type View interface {
	Source
	// Site describes the view; it costs nothing.
	Site() Site
	// Scan yields pages in the order that s asks for.
	Scan(ctx context.Context, s Scan) iter.Seq2[*Page, error]
	// Tag gives what a room has computed of one page, once, on write.
	// ErrNotFound: the view has no such page, or the protocol does not publish it.
	// ErrGone, which is an ErrNotFound: an edition before this view had a tag of
	// the page. A page that came and went between two editions was never public.
	Tag(ctx context.Context, room, url string) (Tag, error)
	// Tags yields every tag of a room with a URL after the given one, in the
	// order of the identities.
	Tags(ctx context.Context, room, after string) iter.Seq2[Tag, error]
	// SeqAt gives the last sequence number committed at or before a time.
	SeqAt(ctx context.Context, t time.Time) (uint64, error)
}

// Site describes the state of a site that a [View] stands at.
type Site struct {
	Base     string         // of the C-URLs: absolute, ends with "/"
	Docs     string         // of the machine documents: absolute, ends with "/"
	Home     string         // identity of the home page: "/", or the page that "/" redirects to; "" = none is visible
	Title    string         // of the home page, else the host
	Language string         // of the home page, else ""
	Epoch    string         // random, of the log that the view is of
	Earlier  []Epoch        // of logs that this one continues, the oldest first
	Seq      uint64         // the sequence number
	Time     time.Time      // when the newest log entry was committed, strictly rising with Seq
	Pages    int            // how many pages are visible
	Sections []Section      // by name
	Tagged   map[string]int // how many pages have a tag, by protocol
}

// Epoch is a log that another one continues after a sequence number.
type Epoch struct {
	Name string
	Last uint64
}

// Has reports whether a sequence number of an epoch is one of the site's log.
// Others mean nothing here.
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

// Scan says which pages a view yields, and how.
type Scan struct {
	Section string // only this section; "" = every page
	Order   Order
	After   string // resume after the page with this URL; "" = from the start
	Limit   int    // at most so many; 0 = all
	Bodies  bool   // with Blocks; without, pages come without them and cost less
}

// Order is an order of pages.
type Order uint8

// The orders of a scan.
const (
	ByURL       Order = iota // by identity, bytewise
	ByPublished              // newest first, ties by identity, undated last
	BySeq                    // last changed first
)

// Tag is what a room has computed of a page when the page was written.
type Tag struct {
	URL      string    // the page's C-URL, absolute
	Value    string    // the room's prescribed hash, without quotes
	N        int       // 1, or more when pages of an earlier rank claim the same name (see [Tagger])
	Modified time.Time // of the page
}

// Tagger computes a room's tags. The store calls it once for each state of a
// page.
type Tagger struct {
	Room   string // protocol name, such as "tct-01"
	Format int    // moves when Tag gives other values for the same page
	// Tag gives the value for a page as a View shows it (without its Blocks
	// being changed); "" means that the room gives the page no document.
	Tag func(site Site, p *Page) (string, error)
	// Rivals names the identities whose presence decides about the name of
	// the given page's document, and those whose name the page decides
	// about. A page's N is one more than the number of pages present in
	// before. nil: names of this room never clash.
	Rivals func(identity string) (before, after []string)
}

// Publisher makes the documents of one protocol. It is pure: serving,
// building, caching and a 304 are one thing, and belong to the edition.
type Publisher interface {
	// Find looks up the document that a request names; it renders nothing.
	// The path of r is relative to the documents' base. ErrNotFound: the
	// protocol has no such document. Large documents are found by their path
	// in the edition, before Find is asked.
	Find(ctx context.Context, v View, r *http.Request) (*Document, error)
	// All yields every document, large ones first.
	All(ctx context.Context, v View) iter.Seq2[*Document, error]
	// Announce says what the protocol wants said of it elsewhere.
	Announce(v View) Notice
}

// Document is something that can be served or written to a file: its identity
// bytes and what is known of them. Codings, digests, ranges, HEAD and 304 are
// the edition's business, not the room's.
type Document struct {
	Path string // under the documents' base, starting with "/", with the query if it has one
	// ETag is the strong validator of the identity bytes, without quotes.
	// "" on a large document: the edition derives it from the parts.
	ETag   string
	Header http.Header // Content-Type, Cache-Control, Link, Last-Modified and the like
	// OneTag: every content coding has the same ETag, and there are no
	// ranges, because the protocol says so (TCT).
	OneTag bool
	// Fixed: the bytes are sent as they are, whatever codings a client accepts.
	Fixed bool
	Large bool // grows with the site: prebuilt, never rendered in a request
	// Public: discovery, which needs no key where content does. What it is found
	// by has no query.
	Public bool
	// Alike: the bytes do not depend on the fields that Vary names beside
	// Accept-Encoding, which is there because the protocol says so (TCT
	// draft-00); so one client's document is that of all.
	Alike bool
	// Page is the identity of the page that this is of: one page, in a form that a
	// client can take for it; "" = of none, or of many. Rest: it is but the rest of
	// a form that comes in parts.
	Page string
	Rest bool
	// Query is the question of a search that this answers; "" = it answers none.
	Query string
	// Names is how many pages it names, or changes of pages, or passages that were
	// found: about so many of a large document, whose room does not count before
	// it is written. 0 = none, or nobody knows.
	Names int64
	// CacheField names a header field that says HIT when the body was made for
	// an earlier request, with an Age, and MISS when it was made for this one.
	// Large documents, which no request makes, have none.
	CacheField string
	// Variant names which of several documents of one URL this is, such as the
	// media type that the request asks for; "" = there is but one. Where nothing is
	// asked for, the URL is somebody else's. Path is then where the same bytes are
	// by themselves.
	Variant string
	// Write writes the identity bytes. It may be called more than once.
	Write func(ctx context.Context, w io.Writer) error
	// Parts are the bytes of a large document in pieces that are written again
	// only when they have changed. Every large document has them.
	Parts *Parts
	// PartsKeyed are the bytes for requests with a key that may read; nil = they are
	// those for everybody. Both forms then vary by Authorization, and shared caches
	// do not store this one. A request with an invalid key gets neither.
	PartsKeyed *Parts
	// Same is the path of another large document that this one is in all but
	// its path, so that it need not be built; "" = none.
	Same string
}

// Notice is what a protocol wants announced: the gateway composes the origin's
// own responses from the notices of all rooms.
type Notice struct {
	Root []Link // on the final response of the origin's root
	// RootData are JSON-LD objects for the head of the root's HTML page, each
	// as a script element of its own.
	RootData []json.RawMessage
	// Page gives the links of the response of one C-URL (an identity), none
	// if the room does not publish that page; nil = the room has none.
	Page func(ctx context.Context, identity string) ([]Link, error)
	// Without says why a request for a page that asks for the protocol's form of
	// it is answered with the page as it is: a header field and what it says; "" when
	// there is nothing to say. nil = never.
	Without func(ctx context.Context, r *http.Request) (field, why string, err error)
	// Robots are lines of the origin's robots.txt that stand for themselves,
	// such as "Sitemap: https://example.com/sitemap.xml".
	Robots []string
	// Allow are patterns of robots.txt (RFC 9309, section 2.2.2), under the
	// documents' base, of all that clients of the protocol fetch.
	Allow []string
	// Public names the documents that are, by their paths under the documents'
	// base: whoever has no key may ask for those, and learns of no others.
	Public []string
	// Topics are the paths under the documents' base of those that tell what has
	// changed, such as feeds: hubs are told when they may have (WebSub).
	Topics []string
	// Entries are where clients of the protocol begin, for the catalogue of what
	// the origin has for machines (RFC 9727).
	Entries []Entry
}

// Entry is a document with which clients of a protocol begin.
type Entry struct {
	URL  string // absolute, or a path of the origin
	Type string // media type
	Spec string // URL of the protocol's specification; "" = it does not say
}

// Link is one web link (RFC 8288).
type Link struct {
	URL  string // absolute, or a path of the origin
	Rel  string
	Type string // media type of the target
	HTML bool   // also as an element in the head of an HTML page
	// NoField: with HTML, only as that element and not in the header.
	NoField bool
	// Vary is the field of requests by which the page's own URL gives either the
	// page or the target: the page's response says so in its Vary. "" = it is the
	// page always.
	Vary string
}

// String gives the link as the value of a Link header field.
func (l Link) String() string {
	s := "<" + l.URL + `>; rel="` + l.Rel + `"`
	if l.Type != "" {
		s += `; type="` + l.Type + `"`
	}
	return s
}
