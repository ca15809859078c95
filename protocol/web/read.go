package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/recent"
	"github.com/millrace/millrace/protocol"
)

// reader is the Source of a site whose pages also exist as Markdown. In this package, the Markdown
// of a page is called its alternate, as in links with that relation.
type reader struct {
	kit.Reader
	o      protocol.ReaderOptions
	listed recent.Values // states of the pages in lists
	hinted recent.Values // alternates of the pages in a feed

	mu       sync.Mutex
	way      naming            // known ways to find the alternates of this site
	mismatch uint64            // hash of the pages for which recordOutdated was called
	failed   map[string]int    // number of pages without Markdown under the guessed names, by form of the path
	also     map[string]string // other origins of the site's pages, each with the origin from which they are fetched
}

// NewReader returns a reader of the site at endpoint, which may be any URL of the site. If client
// is nil, the reader uses the guarded default client. Nil options mean the zero value.
//
// Changes reads the site's sitemaps, which list all pages. If the site has a feed of all its
// changes, Changes reads the feed, which costs less. The content comes from the Markdown of the
// pages. The URL of a page's Markdown comes from a link on the page or from the site's naming
// rules, or it is the page's own URL, requested with Accept. For a site without Markdown or without
// sitemaps, the error is ErrNotFound. Page needs no sitemaps.
func NewReader(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
	return newReader(client, endpoint, o)
}

func newReader(client *http.Client, endpoint string, o *protocol.ReaderOptions) *reader {
	r := &reader{o: kit.Value(o)}
	r.Reader = kit.NewReader(Name, client, endpoint, &r.o)
	r.o.MaxList = cmp.Or(r.o.MaxList, maxList)
	return r
}

// cursor is a position in the stream of a site: the result of discovery, and the applied states of
// the lists.
type cursor struct {
	Root     string            `json:"root"`
	Found    time.Time         `json:"found"`          // time of the last discovery
	Also     map[string]string `json:"also,omitempty"` // see reader.also
	Way      naming            `json:"way,omitzero"`
	Feed     *feedState        `json:"feed,omitempty"`     // nil = the site has no feed that could list all changes
	Lists    []list            `json:"lists"`              // sitemaps of pages, and their indexes
	Missing  []string          `json:"missing,omitempty"`  // named sitemaps that could not be read
	Mismatch uint64            `json:"mismatch,omitempty"` // hash of the pages that were older than their entries in the lists
}

// feedState is the state of a feed that was applied.
type feedState struct {
	URL string `json:"url"`
	fetch.Validators
	// Trusted reports whether the feed lists deletions, and all changes since its oldest entry,
	// according to the sitemaps.
	Trusted bool      `json:"trusted,omitempty"`
	Since   time.Time `json:"since,omitzero"` // time of the newest entry
	Top     string    `json:"top,omitempty"`  // marks of the entries with that time
}

var (
	errFullRead = errors.New("feed is not sufficient; read the sitemaps") // the feed does not contain all changes
	errMoved    = errors.New("sitemaps have moved")                       // robots.txt names sitemaps that were not read
)

// Changes yields the changes in the feed since the cursor, or the entries of the sitemaps that have
// changed, and checkpoints. If the sitemaps are those of the cursor, there is one checkpoint per
// changed sitemap; otherwise, there is one for all. Pages of other sites are skipped, and reported
// as a Note.
func (r *reader) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return kit.Stream(func(y kit.Yield) error {
		r.mu.Lock()
		r.failed = nil // the counts are for one run
		r.mu.Unlock()
		return (&run{reader: r, Yield: y}).changes(ctx, since)
	})
}

// run is one call of Changes.
type run struct {
	*reader
	kit.Yield
	was, is cursor
	saved   cursor // cursor of the last checkpoint

	named        []string  // sitemaps in robots.txt, or in the cursor
	usual        bool      // whether no document names sitemaps, so the first one at a usual path is used
	fresh        bool      // whether discovery ran again
	recent       bool      // whether robots.txt was fetched again
	feed         *feedRead // feed of changes. If nil, it is not read.
	foreign      int       // number of pages of other sites in the lists
	firstForeign string    // URL of the first of these pages
}

func (r *run) changes(ctx context.Context, since millrace.Cursor) error {
	if err := r.Resume(since, &r.was, func() bool { return r.was.Root == r.Root && len(r.was.Lists) > 0 }); err != nil {
		return err
	}
	now := r.Now()
	r.is, r.saved = r.was, r.was
	r.is.Root = r.Root
	remembered := r.IsFresh(r.was.Found)
	r.restore(r.was.Way, r.was.Also)
	if remembered {
		r.named = r.was.roots()
	} else if err := r.rediscover(ctx, now); err != nil {
		return err
	}
	if f := r.is.Feed; f != nil && f.Trusted {
		err := r.catchUp(ctx)
		if err == nil && remembered {
			return r.mark(r.is, false, "")
		}
		if err != nil && !errors.Is(err, errFullRead) {
			return err
		}
	}
	err := r.readSitemaps(ctx, r.named)
	if (errors.Is(err, errMoved) || remembered && errors.Is(err, millrace.ErrNotFound)) && ctx.Err() == nil {
		if err = r.rediscover(ctx, now); err == nil { // the sitemaps may have moved
			err = r.readSitemaps(ctx, r.named)
		}
	}
	if err != nil {
		return err
	}
	if r.foreign > 0 {
		r.Note("sitemaps-location/host", r.Root, fmt.Sprintf("skipped %d pages of other sites; the first is %s", r.foreign, r.firstForeign))
	}
	return nil
}

// mark yields a checkpoint.
func (r *run) mark(c cursor, complete bool, section string) error {
	r.saved = c
	return r.Checkpoint(c, complete, section)
}

// awaitPages waits, before a checkpoint, until the listed pages have been fetched. It returns a
// hash of the pages that were older than their entries in the lists, or 0 if there are no such
// pages. These pages came from a cache or an outdated replica, and would stay old as long as the
// lists do not change. If a second run finds exactly the same pages, they are accepted, because the
// difference is permanent.
func (r *run) awaitPages() (mismatch uint64, err error) {
	if err := r.mark(r.saved, false, ""); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mismatch, r.mismatch = r.mismatch, 0
	return mismatch, nil
}

// recordOutdated records that a page is older than its entry in a list.
func (r *reader) recordOutdated(page, state string, got *alternate) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, page+"\x00"+state+"\x00"+got.ETag+"\x00"+got.modified.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mismatch += h.Sum64() // independent of the order
}

// put yields an existing page, and records its state in the list.
func (r *run) put(u, section, state string, at time.Time) error {
	if state != "" {
		r.listed.Add(u, state)
	}
	return r.Send(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: u, Section: section}, Time: at}, nil)
}

// own returns the URL of a listed page. If the page belongs to another site, it returns false.
func (r *run) own(at *url.URL, ref string) (string, bool) {
	u, err := canon.Resolve(at, ref)
	if err != nil {
		return "", false
	}
	if r.here(u) == "" {
		if r.foreign++; r.foreign == 1 {
			r.firstForeign = u
		}
		return "", false
	}
	return u, true
}

// here returns the URL from which a page is fetched, or "" if the page belongs to another site.
func (r *reader) here(u string) string {
	at := canon.Origin(u)
	if at == canon.Origin(r.Root) {
		return u
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if to := r.also[at]; to != "" {
		return to + strings.TrimPrefix(u, at)
	}
	return ""
}

// restore restores the results of an earlier discovery.
func (r *reader) restore(m naming, also map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.way, r.also = m, also
}

func (r *reader) manner() naming {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.way
}

// absent reports whether an error means that a document is missing, is not available to this
// client, or is not of the expected kind.
func absent(err error) bool {
	return errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden) || errors.Is(err, millrace.ErrInvalid)
}
