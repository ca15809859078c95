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
	"github.com/millrace/millrace/internal/recent"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/kit"
)

// reader is the source that a site with Markdown twins is.
type reader struct {
	kit.Reader
	o      protocol.ReaderOptions
	listed recent.Values // states of pages, as lists say
	hinted recent.Values // twins of pages, as a feed says

	mu       sync.Mutex
	way      manner            // how twins are named here, as far as it is known
	mismatch uint64            // see behind
	failed   map[string]int    // pages without Markdown under the guessed names, by form
	also     map[string]string // other origins by which the site's pages go, each to the one they are asked at
}

// NewReader reads the site at an endpoint, any URL of it; a nil client is the
// guarded default, nil options are the zero value.
//
// Changes goes by the site's sitemaps, which say what there is, and where the
// site has a feed of all its changes by that, which says what is new for less.
// The content is that of the pages' Markdown twins: where the pages say that
// they are, where their names lead to, or at the pages' own URLs for those who
// ask for Markdown. A site without twins, or without sitemaps, is ErrNotFound.
// Page needs neither.
func NewReader(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
	return newReader(client, endpoint, o)
}

func newReader(client *http.Client, endpoint string, o *protocol.ReaderOptions) *reader {
	r := &reader{o: kit.Value(o)}
	r.Reader = kit.NewReader(Name, client, endpoint, &r.o)
	r.o.MaxList = cmp.Or(r.o.MaxList, maxList)
	return r
}

// cursor is the position in the stream of a site: the result of discovery, and the
// applied states of the lists.
type cursor struct {
	Root     string            `json:"root"`
	Found    time.Time         `json:"found"`          // when discovery last ran
	Also     map[string]string `json:"also,omitempty"` // see reader
	Way      manner            `json:"way,omitzero"`
	Feed     *feedState        `json:"feed,omitempty"` // nil: the site has none that could be of all changes
	Lists    []list            `json:"lists"`          // sitemaps that name pages, and their indexes
	Missing  []string          `json:"missing,omitempty"`
	Mismatch uint64            `json:"mismatch,omitempty"` // stands for the pages that were older than the lists said
}

// feedState is a feed, and what of it has been applied.
type feedState struct {
	URL string `json:"url"`
	fetch.Validators
	// Trusted: it has named everything that the sitemaps say has changed since
	// its oldest entry, and it tells of deletions.
	Trusted bool      `json:"trusted,omitempty"`
	Since   time.Time `json:"since,omitzero"` // of its newest entry
	Top     string    `json:"top,omitempty"`  // marks of the entries that have its time
}

var (
	errFullRead = errors.New("the sitemaps must be asked") // what the feed says is not enough
	errMoved    = errors.New("there are other sitemaps")   // than those that were read
)

// Changes yields what the feed of changes says since the cursor, or what the
// sitemaps that have changed name, and milestones as [protocol.Protocol] wants
// them: where the sitemaps are the cursor's, one for each that has changed,
// otherwise one for all. Pages of other sites are left out, with a note.
func (r *reader) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return kit.Stream(func(y kit.Yield) error {
		r.mu.Lock()
		r.failed = nil // of one run: pages that were gone then tell nothing of now
		r.mu.Unlock()
		return (&run{reader: r, Yield: y}).changes(ctx, since)
	})
}

// run is one reading of the stream.
type run struct {
	*reader
	kit.Yield
	was, is cursor
	so      cursor // of the last milestone

	named     []string  // sitemaps that robots.txt names, or that the cursor has
	usual     bool      // no document names sitemaps: the first that exists counts
	fresh     bool      // discovery has run again
	recent    bool      // robots.txt was read again
	feed      *feedRead // the feed of changes as it is now; nil: it was not read
	foreign   int       // pages of other sites that lists name
	elsewhere string    // the first of them
}

func (r *run) changes(ctx context.Context, since millrace.Cursor) error {
	if err := r.Resume(since, &r.was, func() bool { return r.was.Root == r.Root && len(r.was.Lists) > 0 }); err != nil {
		return err
	}
	now := r.Now()
	r.is, r.so = r.was, r.was
	r.is.Root = r.Root
	remembered := r.Remembers(r.was.Found)
	r.know(r.was.Way, r.was.Also)
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
		r.Note("sitemaps-location/host", r.Root, fmt.Sprintf("%d pages of other sites are named, %s first", r.foreign, r.elsewhere))
	}
	return nil
}

// mark yields a checkpoint.
func (r *run) mark(c cursor, complete bool, section string) error {
	r.so = c
	return r.Mark(c, complete, section)
}

// settle waits until the pages that were named have been asked for, as everybody
// does before a milestone, and gives what stands for those that were older than
// the lists said: they came from a replica that lags behind, or from a cache, and
// would stay as they are for as long as the lists do. 0 = there are none. A site
// whose pages are always older than its lists say is believed when a second
// reading finds exactly the same.
func (r *run) settle() (mismatch uint64, err error) {
	if err := r.mark(r.so, false, ""); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mismatch, r.mismatch = r.mismatch, 0
	return mismatch, nil
}

// behind notes a page that is older than a list says.
func (r *reader) behind(page, state string, got *twin) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, page+"\x00"+state+"\x00"+got.ETag+"\x00"+got.modified.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mismatch += h.Sum64() // in any order
}

// put yields a page that is there, with what a list says of its state.
func (r *run) put(u, section, state string, at time.Time) error {
	if state != "" {
		r.listed.Add(u, state)
	}
	return r.Give(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: u, Section: section}, Time: at}, nil)
}

// own gives a page that a list at a URL names, false for one of another site.
func (r *run) own(at *url.URL, ref string) (string, bool) {
	u, err := canon.Resolve(at, ref)
	if err != nil {
		return "", false
	}
	if r.here(u) == "" {
		if r.foreign++; r.foreign == 1 {
			r.elsewhere = u
		}
		return "", false
	}
	return u, true
}

// here gives the URL that a page of the site is asked for at, "" if it is of
// another site.
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

// know takes up what is known of the site.
func (r *reader) know(m manner, also map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.way, r.also = m, also
}

func (r *reader) manner() manner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.way
}

// absent reports whether an error says that something is not there, or not for
// this client, or is something else than was looked for.
func absent(err error) bool {
	return errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden) || errors.Is(err, millrace.ErrInvalid)
}
