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
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// ReaderOptions are the options of the SCP reader. The zero value is ready to use.
type ReaderOptions struct {
	protocol.ReaderOptions
	// Sections lists the sections to read. If nil, it is "all", or every section of a site without
	// "all".
	Sections []string
	// Hosts lists hosts, with their ports, from which collections may be fetched in addition to the
	// site's own. If nil, any public host is allowed, over https if the site uses https.
	Hosts []string
	// Deltas is the number of deltas to apply before reading a new snapshot to find deletions. If
	// zero, 7.
	Deltas int
}

const (
	defaultQuota  = 50e9
	defaultDeltas = 7
	// skew is the tolerated error of a publisher's clock (Replay Attacks).
	skew = 10 * time.Minute
)

// reader is the source that reads a site over SCP.
type reader struct {
	kit.Reader
	o ReaderOptions
}

// NewReader returns a source that reads a site. endpoint may be any URL of the site. A nil client
// means the guarded default client. Nil options mean the zero value.
//
// Changes finds the site's sitemap, and reads the snapshot and the newer deltas that the sitemap
// lists, for "all" or for each section. It stores each collection in a temporary file, and verifies
// the file before it yields the first page. Every Put has a Page. Page returns
// [errors.ErrUnsupported], because SCP has no documents of single pages.
func NewReader(client *http.Client, endpoint string, o *ReaderOptions) millrace.Source {
	return newReader(client, endpoint, o)
}

func newReader(client *http.Client, endpoint string, o *ReaderOptions) *reader {
	r := &reader{o: kit.Value(o)}
	r.Reader = kit.NewReader(Name, client, endpoint, &r.o.ReaderOptions)
	r.o.Quota, r.o.Deltas = cmp.Or(r.o.Quota, defaultQuota), cmp.Or(r.o.Deltas, defaultDeltas)
	return r
}

// Page returns an error, because SCP has no documents of single pages.
func (r *reader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: page %s: SCP has only collections: %w", Name, have.URL, errors.ErrUnsupported)
}

// cursor is a position in the stream of a site.
type cursor struct {
	Root    string `json:"root"`
	Sitemap string `json:"sitemap"`
	// Validators of the sitemap, verbatim; zero until everything in the sitemap was applied.
	fetch.Validators
	Expires  time.Time `json:"expires,omitzero"` // earliest expiry of the newest snapshots
	Wanted   []string  `json:"wanted,omitempty"` // value of ReaderOptions.Sections
	Sections []applied `json:"sections"`
}

// applied is the applied state of a section. Times are in whole seconds.
type applied struct {
	Name      string         `json:"name"`
	Snapshot  time.Time      `json:"snapshot,omitzero"`  // generation time of the last snapshot
	Generated time.Time      `json:"generated,omitzero"` // generation time of the newest collection
	Deltas    int            `json:"deltas,omitempty"`   // number of deltas since that snapshot
	Pages     int            `json:"pages"`              // number of pages of that snapshot according to the sitemap
	Files     []kit.Resource `json:"files,omitempty"`    // URLs and validators of the snapshot and the last deltas
}

const maxKnownFiles = 8 // maximum number of files in applied.Files

// section returns the applied state of a section, or the zero state for a new section.
func (c cursor) section(name string) applied {
	for _, s := range c.Sections {
		if s.Name == name {
			return s
		}
	}
	return applied{Name: name}
}

// with returns a copy of the cursor with the state s of one section.
func (c cursor) with(s applied) cursor {
	c.Sections = slices.Clone(c.Sections)
	if i := slices.IndexFunc(c.Sections, func(have applied) bool { return have.Name == s.Name }); i >= 0 {
		c.Sections[i] = s
	} else {
		c.Sections = append(c.Sections, s)
	}
	return c
}

// run is one call of Changes, or a probe.
type run struct {
	*reader
	kit.Yield
	now       time.Time
	was       cursor
	left      int64           // number of bytes that the quota still permits
	sites     []string        // origins that pages may have
	hosts     map[string]bool // hosts of collections for which a note was reported
	again     bool            // whether something was skipped, so the next run reads the sitemap again
	unknown   bool            // whether the server does not have the client's dictionary
	generated time.Time       // generation time of the oldest collection that was read
	probeCost *protocol.Cost  // cost of discovery so far, if the run is a probe; else nil
}

// Changes yields the pages of the collections that are newer than a cursor, with a checkpoint after
// each section.
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

// locate fetches the site's sitemap, conditionally if its URL is known. If the collections have
// expired, locate fetches the sitemap again, bypassing all caches. If they are still expired, it
// reports a note and uses them.
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
		r.Note("sitemap/not-expired", f.URL, "collections expired at "+at.Format(time.RFC3339)+" and have not been replaced")
	}
	return f, nil
}

func expired(at, now time.Time) bool { return !at.IsZero() && now.After(at) }

// fatal reports whether an error ends the run because the site did not cause it: for example, the
// caller's context has ended, or the disk is full.
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

// remote adds ErrUnavailable to a network error that wraps no sentinel. Only transports other than
// millrace's own return such errors.
func remote(ctx context.Context, err error) error {
	if fatal(ctx, err) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", millrace.ErrUnavailable, err)
	}
	return err
}

func (r *run) mark(c cursor, complete bool, section string) error {
	m := kit.Checkpoint(c, complete, section)
	m.Time = r.generated
	return r.Send(m, nil)
}

// get requests a canonical URL. The URL after redirects is that of the response's Request.
func (r *reader) get(ctx context.Context, target string, header http.Header) (*http.Response, error) {
	resp, err := kit.Get(ctx, r.Client, http.MethodGet, target, header)
	if err != nil {
		return nil, remote(ctx, err)
	}
	return resp, nil
}
