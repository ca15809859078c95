// Package store defines the interface of the engines that store sites. The engines are in its
// subpackages. Package storetest is the test suite of every engine.
//
// A [Site] is the log of the pages from its sources. It has no configuration. A [Publication] is
// the view of a site for one configuration. It has its own log, with tags and editions. Any number
// of publications, in any number of processes, follow one site.
package store

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/millrace/millrace"
)

// Store stores sites. All methods are safe for concurrent use, including by several processes.
type Store interface {
	// Sites yields the names of all sites that have ever had a page, in order.
	Sites(ctx context.Context) iter.Seq2[string, error]
	// Site opens the site with a name, or creates it. base is the absolute URL, ending with "/",
	// below which the caller reads and writes the pages of the site. If base is empty, it defaults
	// to the name if that is a URL, else to the base of the newest edition of the site. If base is
	// invalid, Site returns ErrInvalid. With an empty base, it returns ErrNotFound if the site does
	// not exist, or if the name is not a URL and the site has no edition.
	//
	// A site whose name is not a URL, such as a folder, has no URL of its own. The URLs of
	// its pages and their links are stored without base, so callers with different bases
	// share the pages. Its sources name pages by their paths: names are stored unchanged.
	Site(ctx context.Context, name, base string) (Site, error)
	// Manifests yields the newest manifest of each generation, for all publications in the store.
	Manifests(ctx context.Context) iter.Seq2[[]byte, error]
	// Now returns the time of the store's clock, which all processes share. For an engine with a
	// server, this is the server's clock.
	Now(ctx context.Context) (time.Time, error)
	// State returns the small values of the store. The value of the key [TitleKey], in the
	// namespace of a site's name, sets the Title of the site in all later views.
	State() State
	// Leases returns the leases of the store.
	Leases() Leases
	// Keys returns the access keys.
	Keys() Keys
	// Costs returns the costs of the mirrors.
	Costs() Costs
	// Usage returns the recorded requests by machines.
	Usage() Usage
	// Fleet returns the schedule of sites.
	Fleet() Fleet
	// Close closes the store. All values obtained from the store then return errors.
	Close() error
}

// Verifier is an optional interface of a [Store].
type Verifier interface {
	// Verify reads the content of all pages, and the data that the store keeps for their sources.
	// It returns the number of values that it has read. It calls damaged for each damaged value,
	// with the site and the path of the page. With repair, it removes damaged values; the next
	// complete read of the site fetches their pages again.
	Verify(ctx context.Context, repair bool, damaged func(name string, err error, repaired bool)) (read int, err error)
}

// TitleKey is the key of a site's title in the State of a store. The namespace is the site's name.
const TitleKey = "title"

// Options configures a store. The zero value is valid.
type Options struct {
	Logger *slog.Logger     // If nil, nothing is logged.
	Now    func() time.Time // clock of the store, for tests. If nil, see Store.Now.
	// ReadOnly opens an existing store for reading only. Only other processes write to it.
	// Writes return ErrForbidden.
	ReadOnly bool
}

// Site is the log of one site. It applies changes from sources, and stores the state from which the
// sources continue. All methods are safe for concurrent use.
//
// In addition to the rules of [millrace.Sink], Apply treats a change as follows:
//
//   - A page is stored under the path of Page.URL, or of Ref.URL if that is empty. The
//     source's name for the page, Ref.URL, is stored unchanged.
//   - A page with an empty Known is an alias: it maps its name to another page. It does not
//     create a page or keep one. A page whose Known includes neither title nor content does
//     not create a page either.
//   - A page is deleted when the last name that its source has for it is deleted or maps to
//     another page. It is then removed from all other sources, too. Apply checks this at the
//     end of the batch. If another name is left, its Version is deleted unless the batch has
//     its page, because the stored content may be from the removed name.
//   - The date of a page is the source's, but not later than the store's clock; else it is
//     the time of the change. It strictly rises with every change, even across a deletion.
//     Nothing is written for an unchanged page.
//   - All entries of a batch have the same time, later than any before. Counts includes each
//     Put and Delete once, and also the pages that were deleted because their name maps to
//     another page.
//   - Page.Original is stored for each name of each source, also for aliases and for
//     unchanged pages. It is as durable as the page. It is deleted with the name or its
//     Version, and when a page arrives under the name without an original, or with one
//     that is too large.
//   - Page.HTMLSize is merged with the stored one by [millrace.HTMLSize.Or]. It is deleted
//     with the page.
type Site interface {
	millrace.Sink
	millrace.SyncState
	millrace.OriginalStore

	// Fenced returns the site with an Apply and a Compact that return ErrConflict if the
	// lease has expired or has another holder. Then Apply changes nothing, and Compact stops.
	// The zero Lease is not checked.
	Fenced(l Lease) Site
	// Ending returns the site as Fenced does, for a turn of a [Fleet]. A batch of Apply with a
	// checkpoint also records the result of the turn in its transaction, as [Fleet.Done] does,
	// and keeps the lease. So the pages and the end of the turn are stored together, even if
	// Done is never called. turn is the URL of the site in the fleet.
	Ending(l Lease, turn string, r TurnResult) Site

	// Head returns the newest view of the site: all pages, as received from the sources. It
	// has no tags, and publications do not accept its cursors.
	Head(ctx context.Context) (millrace.View, error)
	// HeadCursor returns the cursor of Head. It costs much less than Head.
	HeadCursor(ctx context.Context) (millrace.Cursor, error)

	// Publication opens the publication of a configuration, or creates it. If a base of c is
	// not an absolute URL that ends with "/", or two taggers have the same protocol, Publication
	// returns ErrInvalid.
	Publication(ctx context.Context, c Config) (Publication, error)

	// HTMLSizes returns the HTML sizes of pages by path or C-URL, in the order of
	// urls. The size is zero if it is unknown or the page is absent.
	HTMLSizes(ctx context.Context, urls []string) ([]millrace.HTMLSize, error)
	// MeanHTMLSize returns the mean HTML size of the pages whose Bytes are known, and the
	// number of those pages. Received is the mean of the known values, or 0 if no value is
	// known. MeanHTMLSize reads every page.
	MeanHTMLSize(ctx context.Context) (mean millrace.HTMLSize, pages int64, err error)

	// Compact deletes superseded rows that no view needs. It also deletes log entries and
	// tombstones older than horizon, from the site and all its publications. It keeps the rows of
	// each view that was the head or the published view within the last keep. Older views return
	// ErrConflict for missing rows, and cursors from before horizon return ErrConflict. The cursor
	// of the published view stays valid. Tombstones of a site are kept for at least 400 days.
	//
	// Compact also drops publications that were not used for 400 days. It drops generations
	// that were forked and not used for a day, except the one that published last. Users of a
	// dropped generation get ErrConflict. Compact never waits for a publication.
	Compact(ctx context.Context, keep, horizon time.Duration) error
}

// Config is the configuration of a publication.
type Config struct {
	Base         string              // base of the C-URLs; absolute, ends with "/"
	EndpointBase string              // base of the machine documents; if empty, Base
	Visibility   millrace.Visibility // visibility rule for all protocols
	Taggers      []millrace.Tagger   // one per protocol with tags; a Tagger uses only Base and EndpointBase of the Site
}

// Publication is the view of a site for one configuration. All methods are safe for concurrent
// use.
//
// The site, Base and EndpointBase identify a publication. It has a generation for each Visibility
// and set of taggers. A new generation is forked from the one that published last, and continues
// its log. So pages that become hidden appear as deleted, and cursors stay valid. Opening a
// configuration returns its newest generation, unless the generation that published last was forked
// from that generation, at its newest edition or later. Then the generation that published last is
// forked. So two processes with two configurations each keep their generation.
//
// The log of a publication has its own sequence numbers. The time of an entry is the time at which
// its Refresh was completed; it strictly rises. Modified of a page is the time of the last change
// that the publication shows. If the published page changes and the site's page does not, Modified
// rises by one second.
type Publication interface {
	// Name returns the name of this generation, for example for a lease. It is unique in the
	// store.
	Name() string

	// Refresh updates the publication from the site. It is resumable, works in small transactions,
	// and moves Head once, at its end. With a positive limit, it stops after the first batch of the
	// site that ends at least limit entries after its start; more reports whether the site has
	// further batches. Refresh ignores the limit when it compares all pages: in the first Refresh
	// of a generation, and if the generation's position in the site's log was compacted away.
	// progress receives the numbers of finished pages and of all pages; it may be nil. If a Tagger
	// fails, Refresh logs the error, and the page has no tag of that protocol. If the lease has
	// expired or has another holder, or another process is in Refresh, it returns ErrConflict. The
	// zero Lease is not checked.
	Refresh(ctx context.Context, l Lease, limit int, progress func(done, total int)) (more bool, err error)

	// Head returns the view of the last completed Refresh, or ErrNotFound.
	Head(ctx context.Context) (millrace.View, error)

	// Published returns the newest edition and its view. If this generation has no edition, it
	// returns ErrNotFound, with the Edition from which the generation was forked, or the zero
	// Edition.
	Published(ctx context.Context) (millrace.View, Edition, error)

	// Publish publishes the view of sequence number seq with a manifest, if the newest edition
	// has the number old. seq need not be the head, and may be published again. If there is a
	// newer edition, or the lease has expired or has another holder, it returns ErrConflict
	// and changes nothing. If seq is above the head, it returns ErrInvalid. The zero Lease is
	// not checked.
	Publish(ctx context.Context, l Lease, old, seq uint64, manifest []byte) (Edition, error)
}

// Edition is a published edition. The zero Edition means that no edition exists.
type Edition struct {
	Number   uint64 // starts at 1; a fork continues the count
	Manifest []byte // manifest that the caller passed to Publish
}
