// Package store is the contract of the engines that keep sites: the packages
// below it are engines, and storetest is the suite that each of them passes.
package store

import (
	"context"
	"time"

	"github.com/millrace/millrace"
)

// Site is one site in a store: it takes changes in, remembers its sources and
// gives views of what is known (Head) and of what is public now (Published).
// All methods are safe for concurrent use.
//
// What Apply makes of a change, beyond what [millrace.Sink] says:
//
//   - A page lies under the identity of Page.URL, or of Ref.URL if that is
//     empty. The memory keeps the source's name for it, Ref.URL, verbatim.
//   - A page that speaks for nothing (Known is zero) only says which page the
//     name belongs to: a duplicate. It makes no page and keeps none alive. One
//     that speaks neither for a title nor for content makes none either.
//   - A page goes when the last name that its source has for it is deleted or
//     means another page now; then every other source forgets it too. This is
//     settled at the end of the batch.
//     When another name is left, the memory forgets the Version of that name,
//     unless the batch has brought its page: what the store holds of the page
//     may be what the name that went has said.
//   - The date of a visible page is the source's, never in the future of the
//     store's clock, else the time of the change; it strictly rises with every
//     change, also over a deletion. A page that says nothing new writes
//     nothing.
//   - All entries of one batch share one time, later than any before. Tally
//     counts each Put and Delete once by what became visible, plus the pages
//     that went because their name means another.
//   - What a page was made of (Page.Original) is kept for each name of each
//     source, durable with the page, also of a page that speaks for nothing or
//     says nothing new. It goes with the name, with the Version of the name,
//     and when a page comes by that name without one, or with one that is too
//     large. No view shows it.
//   - The page keeps the weight (Page.Weight) that the last source has told who
//     knew one, as [millrace.Weight.Or] says, durable with the page, also of one
//     that says nothing new. It goes with the page. No view shows it.
//   - A Tagger that fails is logged, and the page has no tag in its room.
//
// A batch that a configuration other than the stored one applies is right, and
// makes Derive necessary for every configuration.
type Site interface {
	millrace.Sink
	millrace.Memory
	millrace.Originals

	// Derive brings every page in line with the site's [Config] when its
	// fingerprint differs from the one that the store was written with; it
	// does nothing otherwise: call it whenever a site has been opened. Pages
	// that the new configuration hides become deletions in the log, and so
	// on; one entry of no page stands for the configuration itself, so that
	// the site's Seq and Time move even if no page changes. It is resumable:
	// after a crash it goes on where it was. progress may be nil.
	Derive(ctx context.Context, progress func(done, total int)) error

	// Weights gives the weights of pages by their identities or C-URLs, in the
	// order of urls: the zero one where it is not known, or there is no such page.
	Weights(ctx context.Context, urls []string) ([]millrace.Weight, error)
	// MeanWeight gives the mean over the visible pages whose Bytes are known,
	// and how many these are; Received is the mean over those where it is
	// known, too, 0 if there are none. It looks at every page: remember it.
	MeanWeight(ctx context.Context) (mean millrace.Weight, pages int64, err error)

	// Head gives a view of the newest sequence number. ErrConflict: the pages
	// have to be derived first.
	Head(ctx context.Context) (millrace.View, error)
	// Published gives the view that was published last, with its manifest.
	// ErrNotFound: none was, or its configuration was another one.
	Published(ctx context.Context) (millrace.View, []byte, error)
	// Publish makes the view of sequence number to the published one, with
	// its manifest, if the published one is still from (0 = none; what
	// another configuration published counts as none). to need not be the
	// head any more. ErrConflict: somebody else was faster, or the pages have
	// to be derived first; nothing has happened. ErrInvalid: to is no
	// sequence number yet.
	//
	// With [Config].Index, the published view can be searched with the commit
	// that publishes it: Publish indexes what is left first.
	Publish(ctx context.Context, from, to uint64, manifest []byte) error

	// Index brings the search index of the site as far as the head, or makes
	// one: then the views that it has come as far as are a
	// [millrace.Searcher]. It works in small transactions, so that others can
	// write in between and nobody who reads waits, and is resumable: after a
	// crash it goes on where it was. A view shows exactly its own passages,
	// whatever has come since. An index of an older form of millrace answers
	// until the new one, which is made beside it, takes its place. progress
	// may be nil; what it counts are pages.
	Index(ctx context.Context, progress func(done, total int)) error
	// Fit learns from the indexed passages which words mean alike, or has them
	// embedded by the [Config]'s Embedder, so that a search finds by meaning
	// beside words. It does nothing while the site is as it was, but for less
	// than a fifth of its passages; passages that come in between are placed
	// by what was learned. The same published passages give the same result.
	// It works in small transactions and is resumable, as Index is; searches
	// use what was before until it is done. progress may be nil; what it
	// counts are passages. ErrUnavailable: there is no index, or the embedder
	// does not answer.
	Fit(ctx context.Context, progress func(done, total int)) error

	// Compact drops superseded rows that no view needs, and log entries and
	// tombstones older than horizon. Views that somebody may hold keep all:
	// the published one, and those that were the head or the published one
	// at any time in the last keep. An older one gives ErrConflict where it
	// misses something. A cursor from before the horizon is ErrConflict too;
	// the published view's own never is.
	Compact(ctx context.Context, keep, horizon time.Duration) error
}

// Config is what decides, beside the sources, what a site's views show.
type Config struct {
	Base       string              // of the C-URLs: absolute, ends with "/"
	Docs       string              // of the machine documents; "" = Base
	Visibility millrace.Visibility // below every protocol
	Taggers    []millrace.Tagger   // of every room that publishes; they are given Base, Docs and Epoch of the Site alone

	// Index keeps the site searchable. It decides nothing of what views show.
	Index bool
	// Embedder is asked for the meaning of passages and questions; nil = the
	// store learns from the site's own words.
	Embedder Embedder
}
