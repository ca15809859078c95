package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// publicOnly is a source that omits the pages that a site does not serve to the public.
type publicOnly struct {
	visitor visitor
	origin  *ingest.Origin
	site    store.Site

	mu      sync.Mutex
	source  millrace.Source
	direct  bool              // the source reads each page at its public URL, so its pages are public
	seen    map[string]string // versions of the public pages, by name in the source
	private map[string]bool   // names of the other pages in the source; they may become public
	unsaved bool
}

// maxPrivate is the maximum number of stored names of pages that are not public.
const maxPrivate = 10_000

// memory returns the stored names of pages that are not public.
func (p *publicOnly) memory() state.JSON[[]string] {
	return state.JSON[[]string]{State: p.origin.Store.State(), Namespace: p.origin.Name, Key: "not public"}
}

// load loads the names of pages that are not public.
func (p *publicOnly) load(ctx context.Context) error {
	names, err := p.memory().Load(ctx)
	for _, name := range names {
		p.private[name] = true
	}
	return err
}

// save stores the names of pages that are not public.
func (p *publicOnly) save(ctx context.Context) error {
	p.mu.Lock()
	names, unsaved := slices.Sorted(maps.Keys(p.private)), p.unsaved
	p.unsaved = false
	p.mu.Unlock()
	if !unsaved {
		return nil
	}
	return p.memory().Save(ctx, names)
}

// markPrivate records that a page is not public.
func (p *publicOnly) markPrivate(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.seen, name); !p.private[name] && len(p.private) < maxPrivate {
		p.private[name], p.unsaved = true, true
	}
}

var (
	errPrivate = fmt.Errorf("%w: the site does not serve the page to the public", millrace.ErrForbidden)
	errOther   = fmt.Errorf("%w: its response differs from the file", errPrivate)
)

// public returns nil if the site serves a page to the public, as HTML. A page of a folder must
// equal its file, because the site may serve something else at its URL. Otherwise, the error wraps
// errPrivate or ErrUnavailable, or is that of ctx.
func (p *publicOnly) public(ctx context.Context, name string) error {
	at := canon.Absolute(p.origin.Base, name)
	file := p.file(ctx, name)
	method := http.MethodHead
	if file != nil {
		method = http.MethodGet
	}
	resp := p.visitor.get(ctx, method, at, len(file))
	if resp.Status == http.StatusMethodNotAllowed || resp.Status == http.StatusNotImplemented {
		resp = p.visitor.get(ctx, http.MethodGet, at, len(file))
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case resp.Status >= 500 || resp.Status == http.StatusTooManyRequests:
		return fmt.Errorf("site responds with status %d: %w", resp.Status, millrace.ErrUnavailable)
	case resp.Status != http.StatusOK, resp.Header.Get("Content-Type") != "" && !weblink.IsHTML(resp.Header):
		return errPrivate
	case file == nil, !resp.Cut && bytes.Equal(resp.Body.Bytes(), file):
		return nil
	case !bytes.Equal(p.file(ctx, name), file):
		return fmt.Errorf("file changed during the comparison: %w", millrace.ErrUnavailable)
	}
	return errOther
}

// file returns the file of a page. It is nil if the source has no files, or reads pages at their
// URLs.
func (p *publicOnly) file(ctx context.Context, name string) []byte {
	source, direct := p.now()
	files, ok := source.(ingest.Originals)
	if !ok || direct {
		return nil
	}
	data, _, err := files.Original(ctx, millrace.Ref{URL: name})
	if err != nil {
		return nil
	}
	return data
}

// Changes yields the changes of public pages. It deletes stored pages that are no longer public.
func (p *publicOnly) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		source, direct := p.now()
		for c, err := range source.Changes(ctx, since) {
			if skip, ok := errors.AsType[*millrace.SkipError](err); ok && errors.Is(skip.Err, millrace.ErrForbidden) {
				p.markPrivate(skip.URL)
			}
			if c.Kind == millrace.KindCheckpoint && err == nil {
				err = p.save(ctx)
			}
			if err != nil || c.Kind != millrace.Put || direct || p.checked(c.Ref) {
				if !yield(c, err) {
					return
				}
				continue
			}
			why := p.public(ctx, c.URL)
			if why == nil {
				p.remember(c.Ref)
				if !yield(c, nil) {
					return
				}
				continue
			}
			skip := &millrace.SkipError{URL: c.URL, Err: why}
			if skip.Absent = errors.Is(why, errPrivate); skip.Absent {
				p.markPrivate(c.URL)
				known, err := p.known(ctx, c.URL)
				if err != nil {
					yield(millrace.Change{}, err)
					return
				}
				if known && !yield(millrace.Change{Kind: millrace.Delete, Ref: c.Ref}, nil) {
					return
				}
			}
			if !yield(millrace.Change{}, skip) {
				return
			}
		}
	}
}

// Page returns a page if it is public.
func (p *publicOnly) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	source, direct := p.now()
	page, err := source.Page(ctx, have)
	if (err == nil || errors.Is(err, millrace.ErrUnmodified)) && !direct {
		if why := p.public(ctx, have.URL); errors.Is(why, errPrivate) {
			return nil, fmt.Errorf("%w: %w", millrace.ErrNotFound, why)
		} else if why != nil {
			return nil, why
		}
	}
	return page, err
}

// checked reports whether a version of a page is known to be public.
func (p *publicOnly) checked(ref millrace.Ref) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ref.Version != "" && p.seen[ref.URL] == ref.Version
}

func (p *publicOnly) remember(ref millrace.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[ref.URL] = ref.Version
	if p.private[ref.URL] {
		delete(p.private, ref.URL)
		p.unsaved = true
	}
}

// known reports whether the store has a page of the source.
func (p *publicOnly) known(ctx context.Context, name string) (bool, error) {
	for _, err := range p.site.KnownRefs(ctx, p.origin.From, name) {
		return err == nil, err
	}
	return false, nil
}

// checkers is the maximum number of pages that are checked at the same time.
const checkers = 4

// check deletes the stored pages that the site no longer serves to the public, and reads the pages
// that have become public. It reports whether it changed any pages.
func (p *publicOnly) check(ctx context.Context) (changed bool, err error) {
	var refs []millrace.Ref
	for ref, err := range p.site.KnownRefs(ctx, p.origin.From) {
		if err != nil {
			return false, err
		}
		refs = append(refs, ref)
	}
	known := len(refs)
	source, _ := p.now()
	p.mu.Lock()
	clear(p.seen)
	for name := range p.private {
		refs = append(refs, millrace.Ref{URL: name})
	}
	p.mu.Unlock()
	results := make([]error, len(refs))
	var turns sync.WaitGroup
	var at atomic.Int64
	for range checkers {
		turns.Go(func() {
			for i := int(at.Add(1)) - 1; i < len(refs) && ctx.Err() == nil; i = int(at.Add(1)) - 1 {
				results[i] = p.public(ctx, refs[i].URL)
			}
		})
	}
	turns.Wait()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	var gone, found []string
	for i, ref := range refs {
		switch is := results[i] == nil; {
		case is && i < known:
			p.remember(ref)
		case is:
			found = append(found, ref.URL)
		case i < known && errors.Is(results[i], errPrivate):
			p.markPrivate(ref.URL)
			gone = append(gone, ref.URL)
		}
	}
	for urls := range slices.Chunk(gone, 1000) {
		if _, err := mirror.Update(ctx, p.origin.From, source, p.site, urls, true, nil); err != nil {
			return false, err
		}
	}
	if len(found) > 0 {
		report, err := mirror.Update(ctx, p.origin.From, source, p.site, found, false, nil)
		if err != nil {
			return false, err
		}
		for _, name := range found {
			if !slices.ContainsFunc(report.Skipped, func(s mirror.Skip) bool { return s.URL == name }) {
				p.remember(millrace.Ref{URL: name})
			}
		}
	}
	return len(gone)+len(found) > 0, p.save(ctx)
}

// newPublicOnly restricts an origin to the pages that h serves to the public.
func newPublicOnly(o *ingest.Origin, site store.Site, h http.Handler) *publicOnly {
	at, err := url.Parse(o.Base)
	if err != nil {
		panic("publish: base is not canonical: " + err.Error())
	}
	p := &publicOnly{visitor: visitor{h, at}, origin: o, site: site, seen: make(map[string]string), private: make(map[string]bool)}
	p.limit()
	return p
}

// limit restricts the current source of the origin.
func (p *publicOnly) limit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source, p.direct = p.origin.Source, p.origin.Kind == "crawl"
	p.origin.Source = p
}

// now returns the restricted source.
func (p *publicOnly) now() (source millrace.Source, direct bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.source, p.direct
}

// republish publishes the pages stored by an earlier run again, because the last edition may
// contain pages that are no longer public. It does nothing if another process publishes the site.
func (s *Server) republish(ctx context.Context, site store.Site, v *serving.Service) error {
	head, err := site.Head(ctx)
	if errors.Is(err, millrace.ErrNotFound) || err == nil && head.Site().Seq == 0 {
		return nil
	}
	if err == nil {
		_, err = v.Server.Publish(ctx)
	}
	if errors.Is(err, millrace.ErrConflict) {
		return nil
	}
	return err
}
