package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/subrequest"
)

// PagesOptions configure [Pages].
type PagesOptions struct {
	Base string // URL of the site's pages. If empty, the root, without a host.
	// Origin serves the site's own pages and files, with paths relative to Base. A [Proxy]
	// gets the original paths. nil = none.
	Origin http.Handler
	// Welcome returns the handler for paths that the site does not have, such as a home page. ed is
	// nil before the first edition.
	Welcome func(ed *edition.Edition) http.Handler
	// Home returns additional links of the home page.
	Home func(ed *edition.Edition) []millrace.Link
	// Signed reports whether a request has a signature, which changed header fields
	// would break.
	Signed func(r *http.Request) bool
	// Elements also adds each link of a page to its head, as a link element, for servers that do not
	// send Link fields.
	Elements bool
	Logger   *slog.Logger
}

// Pages serves the site's own pages and files, with links to the machine documents.
type Pages struct {
	server    *edition.Server
	o         PagesOptions
	base      string // path of the base URL
	front     *Proxy // Origin if it is a [Proxy], else nil
	ending    context.Context
	home      atomic.Pointer[home]
	homing    sync.Mutex // held while a search for the home page is started
	without   otherFormsLog
	added     additionsCache
	recodings recodings
}

// NewPages returns the pages of a site. ctx ends background work. An error wraps
// [millrace.ErrInvalid].
func NewPages(ctx context.Context, server *edition.Server, o *PagesOptions) (*Pages, error) {
	p := &Pages{server: server, o: *o, ending: ctx}
	p.front, _ = o.Origin.(*Proxy)
	var err error
	p.base, err = basepath.Of(o.Base)
	return p, err
}

// Serve serves a request for which ed has no document; ed is nil before the first edition. The
// path of inner is relative to the base. After an error, no response has begun, unless the error
// wraps [edition.ErrBroken].
func (p *Pages) Serve(w http.ResponseWriter, r, inner *http.Request, ed *edition.Edition, q *access.Request) error {
	origin, full := p.o.Origin, inner
	welcome := false
	switch {
	case p.front != nil:
		origin, full = http.HandlerFunc(p.front.Pass), r // the server gets the original request
	case origin == nil:
		welcome = true
	case ed == nil: // the path may be a document of the first edition
		welcome = subrequest.File(origin, inner, http.MethodGet, inner.URL.Path, 0).Missing()
	}
	if welcome {
		origin = p.o.Welcome(ed)
	}
	if ed == nil || inner.Method != http.MethodGet && inner.Method != http.MethodHead || inner.Header["Upgrade"] != nil || !MayBePage(inner.URL.Path) {
		origin.ServeHTTP(w, full)
		return nil
	}
	at := p.homeOf(ed)
	if inner.URL.Path == "/" && at.none {
		origin, welcome = p.o.Welcome(ed), true
	}
	if files, ok := origin.(*static); ok && !p.lacks(ed, inner) {
		adds := p.additions(ed, at, inner)
		if done, err := files.page(w, inner, q, p.server, adds); done || err != nil {
			if done && adds != nothing {
				q.Subject.Page = p.pagePath(inner, false)
			}
			return err
		}
	}
	if p.o.Signed(inner) {
		// Copy the requests, because signatures need the original header fields.
		changed, outer := *inner, *full
		changed.Header = inner.Header.Clone()
		outer.Header = changed.Header
		inner, full = &changed, &outer
	}
	lw := &linked{to: w, head: inner.Method == http.MethodHead, find: func() *additions { return p.additions(ed, at, inner) }}
	if inner.Header["Accept"] != nil {
		lw.without = func(h http.Header) { p.otherForms(h, ed, inner) }
	}
	// Insert nothing for HTTP/1.0 clients, which cannot detect a truncated page without a length.
	lw.plain = p.front != nil && !inner.ProtoAtLeast(1, 1)
	if lw.prepare(inner) {
		// Drop the range, which the origin would apply to the page without links.
		inner.Header.Del("Range")
		inner.Header.Del("If-Range")
	}
	if p.front != nil {
		var done func()
		full, done = p.recode(lw, inner, full)
		defer done()
	}
	origin.ServeHTTP(lw, full)
	if welcome && inner.URL.Path == "/" {
		if q.Subject.Protocol == "" {
			q.Subject.Protocol = access.SiteProtocol
		}
		q.SitePage = false
	} else if lw.adds != nil && lw.adds != nothing {
		q.Subject.Page = p.pagePath(inner, p.front != nil)
	}
	if err := lw.close(); err != nil {
		return fmt.Errorf("%w: %w", edition.ErrBroken, err)
	}
	return nil
}

// Additions adds the header fields of a page to h, and returns the elements for its head. It
// is for a page that another server sends. The path of r is relative to the base.
func (p *Pages) Additions(h http.Header, r *http.Request) (elements []byte) {
	ed := p.server.Current()
	if ed == nil || r.Method != http.MethodGet && r.Method != http.MethodHead || !MayBePage(r.URL.Path) {
		return nil
	}
	adds := p.additions(ed, p.homeOf(ed), r)
	adds.header(h)
	if r.Header["Accept"] != nil {
		p.otherForms(h, ed, r)
	}
	return adds.elements
}

// MayBePage reports whether a path may lead to an HTML page. Other files have no links, so they
// need no lookup.
func MayBePage(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".css", ".js", ".mjs", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".woff", ".woff2", ".ttf",
		".json", ".xml", ".txt", ".pdf", ".zip", ".gz", ".mp4", ".webm", ".mp3", ".map", ".wasm":
		return false
	}
	return true
}

// pagePath returns the path of a page in the store for a request, relative to the
// base.
func (p *Pages) pagePath(r *http.Request, query bool) string {
	name := r.URL.EscapedPath()
	if query && r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	base := strings.TrimSuffix(p.o.Base, "/")
	u, err := canon.URL(canon.Absolute(base, name))
	if err != nil {
		return name
	}
	return canon.Relative(base, u)
}

// home is the final target of "/".
type home struct {
	ed   *edition.Edition
	path string // percent-encoded path after redirects; for a server, with the query
	none bool   // the site has no home page
}

// homeTime is the time limit for finding the home page of a server.
const homeTime = 30 * time.Second

// homeOf follows the redirects of "/" once per edition, because the site's links belong on the
// final response (TCT draft-01, section 1.4.1). For a server, it works in the background. Until the
// search ends, homeOf returns the previous result, initially "/".
func (p *Pages) homeOf(ed *edition.Edition) *home {
	if at := p.home.Load(); at != nil && at.ed == ed {
		return at
	}
	if p.front == nil {
		at := p.follow(p.ending, ed)
		p.home.Store(at)
		return at
	}
	p.homing.Lock()
	defer p.homing.Unlock()
	at := p.home.Load()
	if at != nil && at.ed == ed {
		return at
	}
	first := &home{ed: ed, path: "/"}
	if at != nil {
		first.path = at.path
	}
	p.home.Store(first)
	go func() {
		ctx, done := context.WithTimeout(p.ending, homeTime)
		defer done()
		if found := p.follow(ctx, ed); found.path != first.path {
			p.home.CompareAndSwap(first, found)
		}
	}()
	return first
}

// follow requests "/" and follows redirects.
func (p *Pages) follow(ctx context.Context, ed *edition.Edition) *home {
	at, target := &home{ed: ed, path: "/"}, &url.URL{Path: "/"}
	for range 5 {
		r, err := http.NewRequestWithContext(ctx, http.MethodHead, target.String(), http.NoBody)
		if err != nil || p.o.Origin == nil {
			return at
		}
		if r.RemoteAddr = "127.0.0.1:0"; p.front != nil && len(p.front.hosts) > 0 {
			r.Host = p.front.hosts[0]
		}
		resp := subrequest.Do(p.o.Origin, r, 0)
		// A handler in this process may respond differently to this request than to visitors, so it
		// always counts as having a home page.
		at.none = at.path == "/" && (p.front == nil || p.front.handler == nil) && (resp.Status == http.StatusNotFound || resp.Status == http.StatusForbidden)
		if resp.Status < 300 || resp.Status > 399 {
			return at
		}
		here := &url.URL{Path: unescaped(p.base) + target.Path, RawPath: p.base + target.EscapedPath()}
		next, err := here.Parse(resp.Header.Get("Location"))
		if err != nil || next.Host != "" && (p.front == nil || p.front.hosts != nil && !p.front.names(next.Host)) {
			return at
		}
		inner := basepath.Under(&http.Request{URL: &url.URL{Path: next.Path, RawPath: next.RawPath, RawQuery: next.RawQuery}}, p.base)
		if inner == nil {
			return at
		}
		target = inner.URL
		if at.path = target.EscapedPath(); p.front != nil && target.RawQuery != "" {
			at.path += "?" + target.RawQuery
		}
	}
	return at
}
