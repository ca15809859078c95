// Package store defines the interface of the engines that store sites. The packages
// below it are engines. storetest is the test suite of every engine.
//
// A [Site] is the log of the pages that sources gave. It has no configuration. A
// [Publication] is what one configuration shows of a site: a log of its own, with
// tags and editions. Any number of publications, of any number of processes, follow
// one site.
package store

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/millrace/millrace"
)

// Store keeps sites. All methods are safe for concurrent use, also by several
// processes. An engine that can store the requests of machines is also a [Usage].
type Store interface {
	// Sites yields the names of all sites that ever had a page, in order.
	Sites(ctx context.Context) iter.Seq2[string, error]
	// Site opens the site of a name, or creates it. base is the absolute URL,
	// ending with "/", below which the caller gives and gets the site's pages.
	// If empty, it is the name if that is a URL, else the base of the newest
	// edition of the site. ErrInvalid: base is not such a URL. ErrNotFound: base is
	// empty, and the store has no such site, or the name is not a URL and the
	// site has no edition.
	//
	// A site whose name is not a URL, such as a folder, has no URL of its own:
	// the URLs of its pages and the links in them are stored without base, so that
	// callers with different bases read and write the same pages. Its sources name
	// pages by their identities: names are stored as they are.
	Site(ctx context.Context, name, base string) (Site, error)
	// Manifests yields the manifest of the newest edition of each generation of
	// each publication of every site.
	Manifests(ctx context.Context) iter.Seq2[[]byte, error]
	// State returns the small values of the store.
	State() State
	// Leases returns the leases of the store.
	Leases() Leases
	// Keys returns the access keys.
	Keys() Keys
	// Costs returns the costs of the mirrors.
	Costs() Costs
	// Close closes the store. Everything opened from it then returns errors.
	Close() error
}

// Options configure a store. The zero value works.
type Options struct {
	Logger *slog.Logger     // nil = discard
	Now    func() time.Time // the clock; nil = time.Now
	// ReadOnly opens an existing store that only other processes write. Writes
	// return ErrForbidden.
	ReadOnly bool
}

// Site is the log of one site. It takes changes from sources and remembers the
// sources. All methods are safe for concurrent use.
//
// Beyond what [millrace.Sink] says, Apply treats a change as follows:
//
//   - A page is stored under the identity of Page.URL, or of Ref.URL if that is
//     empty. The memory keeps the source's name for it, Ref.URL, as it is.
//   - A page with an empty Known is an alias: it maps its name to another page.
//     It creates no page and keeps none alive. A page that speaks neither for a
//     title nor for content creates no page either.
//   - A page is deleted when the last name that its source has for it is deleted
//     or maps to another page. Then every other source forgets it too. This is
//     settled at the end of the batch. If another name is left, the memory
//     forgets the Version of that name, unless the batch brought its page: the
//     stored content may be what the removed name said.
//   - The date of a page is the source's, never later than the store's clock,
//     else the time of the change. It strictly rises with every change, also
//     over a deletion. A page that says nothing new writes nothing.
//   - All entries of one batch have one time, later than any before. Tally
//     counts each Put and Delete once, plus the pages that were deleted because
//     their name maps to another page.
//   - Page.Original is stored for each name of each source, durable with the
//     page, also for an alias and for a page that says nothing new. It is
//     deleted with the name, with the Version of the name, and when a page comes
//     by that name without an original, or with one that is too large.
//   - The page keeps the weight (Page.Weight) that the last source knew, as
//     [millrace.HTMLSize.Or] says. It is deleted with the page.
type Site interface {
	millrace.Sink
	millrace.SyncState
	millrace.OriginalStore

	// Fenced returns the site with an Apply and a Compact that return ErrConflict
	// when the lease has expired or another holder has it. Apply then changes
	// nothing, and Compact nothing from then on. The zero Lease is not checked.
	Fenced(l Lease) Site

	// Head returns the newest view of the site: all pages, as the sources gave
	// them. It has no tags, and its cursors mean nothing to a publication.
	Head(ctx context.Context) (millrace.View, error)

	// Publication opens what a configuration shows of the site, or creates it.
	// ErrInvalid: a base of c is not an absolute URL that ends with "/", or two
	// taggers are of one protocol.
	Publication(ctx context.Context, c Config) (Publication, error)

	// HTMLSizes returns the HTML sizes of pages by path or C-URL, in the order of
	// urls. The size is zero if it is unknown or the page is absent.
	HTMLSizes(ctx context.Context, urls []string) ([]millrace.HTMLSize, error)
	// MeanHTMLSize returns the mean over the pages whose Bytes are known, and the
	// number of these pages. Received is the mean over those where it is known,
	// 0 if it is known of none. It reads every page.
	MeanHTMLSize(ctx context.Context) (mean millrace.HTMLSize, pages int64, err error)

	// Compact drops superseded rows that no view needs, and log entries and
	// tombstones that are older than horizon, from the site and from all its
	// publications. It keeps what views need that were the head or the published
	// view at any time in the last keep. An older view returns ErrConflict where
	// it misses something, and so does a cursor from before the horizon; the
	// cursor of the published view stays valid. Tombstones of a site stay for 400
	// days at least.
	//
	// Compact drops publications that were not used for 400 days, and generations
	// that were not used for a day and that another generation was forked from,
	// but not the one that published last. Whatever still has one open gets
	// ErrConflict. Compact never waits for a publication.
	Compact(ctx context.Context, keep, horizon time.Duration) error
}

// Config is the configuration of a publication.
type Config struct {
	Base         string              // of the C-URLs: absolute, ends with "/"
	EndpointBase string              // of the machine documents. If empty, Base
	Visibility   millrace.Visibility // the same for every protocol
	Taggers      []millrace.Tagger   // one per protocol with tags; they use only Base and Docs of the Site
}

// Publication is what one configuration shows of a site. All methods are safe
// for concurrent use.
//
// The site, Base and Docs name a publication. It has a generation for each
// Visibility and set of taggers. A new generation is forked from the generation
// that published last: it continues its log, so that what it hides is deleted
// and cursors stay valid. Of the generations of a configuration, the newest is
// opened again, but not if the one that published last continues all that it
// published: two processes with two configurations each keep theirs.
//
// Its log has its own sequence numbers. The time of an entry is when the
// Refresh that it belongs to was completed, and rises strictly. Modified of a
// page is that of the last change that the publication shows; where it changes
// and the site's page does not, it is a second later than before.
type Publication interface {
	// Name returns the name of this generation, unique in the store, such as for a
	// lease.
	Name() string

	// Refresh brings the publication up to the site. It is resumable, works in
	// small transactions, and moves Head once, at its end. With a limit above 0, it
	// stops after the first batch of the site that ends at least limit entries after
	// its beginning, and reports whether the site has more. The limit does not apply
	// to a Refresh that compares all pages: the first of a generation, and one whose
	// place in the site's log was compacted away. progress may be nil; it counts
	// pages. A Tagger that fails is logged, and the page has no tag of that protocol.
	// ErrConflict: the lease has expired or another holder has it, or another process
	// refreshes too. The zero Lease is not checked.
	Refresh(ctx context.Context, l Lease, limit int, progress func(done, total int)) (more bool, err error)

	// Head returns the view of the last completed Refresh. ErrNotFound: none was
	// completed.
	Head(ctx context.Context) (millrace.View, error)

	// Published returns the newest edition and its view. ErrNotFound: this
	// generation has no edition of its own; then the Edition is the one that the
	// generation was forked from, the zero Edition if none.
	Published(ctx context.Context) (millrace.View, Edition, error)

	// Publish makes the view of sequence number seq the published one, with a
	// manifest, if the newest edition still has the number old. seq need not be
	// the head any more, and it may be published again. ErrConflict: there is a
	// newer edition, or the lease has expired or another holder has it; nothing
	// has happened. ErrInvalid: seq is above the head. The zero Lease is not
	// checked.
	Publish(ctx context.Context, l Lease, old, seq uint64, manifest []byte) (Edition, error)
}

// Edition is what was published. The zero Edition is absent.
type Edition struct {
	Number   uint64 // counts the editions of a publication, from 1; a fork continues the count
	Manifest []byte // of the caller
}
