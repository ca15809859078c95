package publish

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// publicOnly is a source without the pages that a site does not serve to the public.
type publicOnly struct {
	millrace.Source
	visitor visitor
	origin  *ingest.Origin
	site    store.Site
	direct  bool        // the source reads each page at its own address, so its pages are public
	again   atomic.Bool // the next listing is complete

	mu   sync.Mutex
	seen map[string]string // versions of public pages by the source's names
}

var errPrivate = fmt.Errorf("%w: the site does not serve the page to the public", millrace.ErrForbidden)

// public returns an error unless the site serves a page to the public. The error is errPrivate or
// ErrUnavailable.
func (p *publicOnly) public(ctx context.Context, name string) error {
	at := canon.Absolute(p.origin.Base, name)
	resp := p.visitor.get(ctx, http.MethodHead, at)
	if resp.Status == http.StatusMethodNotAllowed || resp.Status == http.StatusNotImplemented {
		resp = p.visitor.get(ctx, http.MethodGet, at)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case resp.Status == http.StatusOK:
		return nil
	case resp.Status >= 500 || resp.Status == http.StatusTooManyRequests:
		return fmt.Errorf("site responds with status %d: %w", resp.Status, millrace.ErrUnavailable)
	}
	return errPrivate
}

// Changes yields the changes of public pages. Of other pages, it deletes the known ones.
func (p *publicOnly) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	if p.again.Swap(false) {
		since = ""
	}
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range p.Source.Changes(ctx, since) {
			if err != nil && ctx.Err() == nil && !isSkip(err) {
				p.again.Store(true)
			}
			if err != nil || c.Kind != millrace.Put || p.direct || p.checked(c.Ref) {
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

// Page returns a page that is public.
func (p *publicOnly) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	page, err := p.Source.Page(ctx, have)
	if (err == nil || errors.Is(err, millrace.ErrUnmodified)) && !p.direct {
		if why := p.public(ctx, have.URL); errors.Is(why, errPrivate) {
			return nil, fmt.Errorf("%w: %w", millrace.ErrNotFound, why)
		} else if why != nil {
			return nil, why
		}
	}
	return page, err
}

func isSkip(err error) bool {
	_, ok := errors.AsType[*millrace.SkipError](err)
	return ok
}

// checked reports whether this version of a page is public.
func (p *publicOnly) checked(ref millrace.Ref) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ref.Version != "" && p.seen[ref.URL] == ref.Version
}

func (p *publicOnly) remember(ref millrace.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = make(map[string]string)
	}
	p.seen[ref.URL] = ref.Version
}

// known reports whether the store has a page of the source.
func (p *publicOnly) known(ctx context.Context, name string) (bool, error) {
	for _, err := range p.site.KnownRefs(ctx, p.origin.From, name) {
		return err == nil, err
	}
	return false, nil
}

// checkers is the number of pages that are checked at a time.
const checkers = 4

// check deletes the stored pages that the site does not serve to the public now. The next listing
// is complete, because other pages may have become public.
func (p *publicOnly) check(ctx context.Context) error {
	var refs []millrace.Ref
	for ref, err := range p.site.KnownRefs(ctx, p.origin.From) {
		if err != nil {
			return err
		}
		refs = append(refs, ref)
	}
	p.mu.Lock()
	p.seen = nil
	p.mu.Unlock()
	private := make([]bool, len(refs))
	var turns sync.WaitGroup
	var at atomic.Int64
	for range checkers {
		turns.Go(func() {
			for i := int(at.Add(1)) - 1; i < len(refs) && ctx.Err() == nil; i = int(at.Add(1)) - 1 {
				switch err := p.public(ctx, refs[i].URL); {
				case err == nil:
					p.remember(refs[i])
				case errors.Is(err, errPrivate):
					private[i] = true
				}
			}
		})
	}
	turns.Wait()
	p.again.Store(true)
	var gone []string
	for i, ref := range refs {
		if private[i] {
			gone = append(gone, ref.URL)
		}
	}
	for urls := range slices.Chunk(gone, 1000) {
		if _, err := mirror.Update(ctx, p.origin.From, p.Source, p.site, urls, true, nil); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// newPublicOnly limits an origin to the pages that h serves to the public.
func newPublicOnly(o *ingest.Origin, site store.Site, h http.Handler) *publicOnly {
	at, err := url.Parse(o.Base)
	if err != nil {
		panic("publish: base is not canonical: " + err.Error())
	}
	p := &publicOnly{Source: o.Source, visitor: visitor{h, at}, origin: o, site: site, direct: o.Kind == "crawl"}
	o.Source = p
	return p
}

// republish publishes the site of an earlier run, because its last edition may have pages that are
// not public now. If another process publishes the site, it does that.
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
