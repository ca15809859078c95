package scp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/kit"
)

// ReaderOptions configure a reader. The zero value works.
type ReaderOptions struct {
	protocol.ReaderOptions
	// Sections are read in place of "all"; nil = "all", or every section of a
	// site that has no "all".
	Sections []string
	// Hosts are those, with their ports, that collections may be fetched from
	// beside the site's own; nil = any public host, over https if the site is.
	Hosts []string
	// Quota is the most bytes of collections that one run fetches; 0 = 50 GB.
	Quota int64
	// Deltas is how many deltas are applied before a new snapshot is read for
	// what has gone, unless somebody else tells of that; 0 = 7.
	Deltas int
}

const (
	defaultQuota  = 50e9
	defaultDeltas = 7
	// skew is how far the clock of a publisher may be ahead (Replay Attacks).
	skew = 10 * time.Minute
)

// reader is the source that a site in SCP is.
type reader struct {
	kit.Reader
	o ReaderOptions
}

// NewReader reads the site at an endpoint, any URL of it; a nil client is the
// guarded default, nil options are the zero value.
//
// Changes looks for the site's sitemap, and reads the snapshot and the newer
// deltas that it names, of "all" or of each section. Each is kept in a
// temporary file and verified before its first page is given. Pages come with
// their content: Page is [errors.ErrUnsupported], since SCP has no single ones.
func NewReader(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source {
	return newReader(client, endpoint, o)
}

func newReader(client *http.Client, endpoint string, o *ReaderOptions) *reader {
	r := &reader{o: kit.Value(o)}
	r.Reader = kit.NewReader(Name, client, endpoint, &r.o.ReaderOptions)
	r.o.Quota, r.o.Deltas = cmp.Or(r.o.Quota, defaultQuota), cmp.Or(r.o.Deltas, defaultDeltas)
	return r
}

// Page fails: SCP has no single pages.
func (r *reader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: page %s: the protocol has collections only: %w", Name, have.URL, errors.ErrUnsupported)
}

// cursor is where the stream of a site stands.
type cursor struct {
	Root    string `json:"root"`
	Sitemap string `json:"sitemap"`
	// Of the sitemap, verbatim; none while there is something of it that has
	// not been applied.
	fetch.Validators
	Expires  time.Time `json:"expires,omitzero"` // the first of the collections that count
	Wanted   []string  `json:"wanted,omitempty"` // by the options
	Sections []applied `json:"sections"`
}

// applied is what has been applied of a section. Times have whole seconds.
type applied struct {
	Name      string         `json:"name"`
	Snapshot  time.Time      `json:"snapshot,omitzero"`  // when the last snapshot was generated
	Generated time.Time      `json:"generated,omitzero"` // and the newest collection
	Deltas    int            `json:"deltas,omitempty"`   // since that snapshot
	Pages     int            `json:"pages"`              // of that snapshot, as the sitemap counts them
	Files     []kit.Resource `json:"files,omitempty"`    // the snapshot, and the last deltas
}

const maxHeld = 8 // files of a section

// section gives what was applied of a section, nothing for one that is new.
func (c cursor) section(name string) applied {
	for _, s := range c.Sections {
		if s.Name == name {
			return s
		}
	}
	return applied{Name: name}
}

// with gives the cursor with another state of a section.
func (c cursor) with(s applied) cursor {
	c.Sections = slices.Clone(c.Sections)
	if i := slices.IndexFunc(c.Sections, func(have applied) bool { return have.Name == s.Name }); i >= 0 {
		c.Sections[i] = s
	} else {
		c.Sections = append(c.Sections, s)
	}
	return c
}

// run is one reading of the stream.
type run struct {
	*reader
	kit.Yield
	now       time.Time
	was       cursor
	left      int64           // bytes that may still be fetched
	sites     []string        // origins that the pages may have
	hosts     map[string]bool // of collections that were noted
	again     bool            // something was passed over: the next run has another look
	generated time.Time       // when the oldest collection that was taken was generated
	probeCost *protocol.Cost  // of discovery, which is all that is done; nil: it is not
}

// Changes yields the pages of the collections that are new since a cursor, and
// a milestone after each section.
func (r *reader) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return kit.Stream(func(y kit.Yield) error { return r.changes(ctx, since, y) })
}

func (r *reader) changes(ctx context.Context, since millrace.Cursor, yield kit.Yield) error {
	run := &run{reader: r, now: r.o.Now().UTC(), Yield: yield, left: r.o.Quota, sites: []string{r.Root}, hosts: map[string]bool{}}
	if err := r.Resume(since, &run.was, func() bool { return run.was.Root == r.Root && run.was.Sitemap != "" }); err != nil {
		return err
	}
	f, err := run.locate(ctx)
	switch {
	case err != nil:
		return err
	case f.offer == nil:
		return run.mark(run.was, false, "")
	}
	if kit.SameOrigin(r.Root, f.URL) {
		run.sites = append(run.sites, f.at)
	}
	return run.read(ctx, f)
}

// locate gets the site's sitemap, conditionally where it is known. One whose
// collections have expired is asked for past all caches; that it stays the same
// is odd, but no reason to stop.
func (r *run) locate(ctx context.Context) (f *found, err error) {
	fresh := false
	if r.was.Sitemap != "" {
		fresh = expired(r.was.Expires, r.now)
		have := r.was.Validators
		if !slices.Equal(r.was.Wanted, r.o.Sections) {
			have = fetch.Validators{}
		}
		f, _, err = r.sitemap(ctx, r.was.Sitemap, have, fresh)
		if err != nil && (fatal(ctx, err) || !absent(err)) {
			return nil, err
		}
	}
	if f == nil {
		fresh = false
		if f, err = r.discover(ctx); err != nil {
			return nil, err
		}
	}
	at := r.was.Expires
	if f.offer != nil {
		at = f.offer.expires(r.names(f.offer))
	}
	if !expired(at, r.now) {
		return f, nil
	}
	if !fresh {
		again, _, err := r.sitemap(ctx, f.URL, f.Validators, true)
		switch {
		case fatal(ctx, err):
			return nil, err
		case err == nil && again.offer != nil:
			f = again
			at = f.offer.expires(r.names(f.offer))
		}
	}
	if expired(at, r.now) {
		r.Note("sitemap/not-expired", f.URL, "what it names has expired at "+at.Format(time.RFC3339)+" and is not replaced")
	}
	return f, nil
}

func expired(at, now time.Time) bool { return !at.IsZero() && now.After(at) }

// fatal reports whether an error ends the run, since it is no fault of what was
// asked for: the caller's context, or a machine without room.
func fatal(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	if ctx.Err() != nil {
		return true
	}
	for _, refused := range []error{
		millrace.ErrInvalid, millrace.ErrTooLarge, millrace.ErrNotFound, millrace.ErrForbidden, millrace.ErrUnavailable,
		millrace.ErrUnmodified, millrace.ErrConflict,
	} {
		if errors.Is(err, refused) {
			return false
		}
	}
	return true
}

// remote gives the error of a network its kind, which other transports than ours
// do not do.
func remote(ctx context.Context, err error) error {
	if fatal(ctx, err) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", millrace.ErrUnavailable, err)
	}
	return err
}

func (r *run) mark(c cursor, whole bool, section string) error {
	m := kit.Checkpoint(c, whole, section)
	m.Time = r.generated
	return r.Give(m, nil)
}

// get asks for a canonical URL and gives the response, whose URL is that after
// redirects.
func (r *reader) get(ctx context.Context, target string, header http.Header) (*http.Response, error) {
	resp, err := kit.Get(ctx, r.Client, http.MethodGet, target, header)
	if err != nil {
		return nil, remote(ctx, err)
	}
	return resp, nil
}
