package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/subrequest"
)

// page answers for the site's own resources; the path of r is relative to the
// base. Pages get the links by which their documents are discovered.
func (g *Gateway) page(w *response, r *http.Request) {
	ed := g.press.Current()
	origin, whole := g.origin, r
	switch {
	case g.front != nil:
		// Its server gets the request as it has come.
		origin, whole = http.HandlerFunc(g.front.pass), w.r
	case origin == nil:
		origin = welcome{g}
	case ed == nil && subrequest.File(origin, r, http.MethodGet, r.URL.Path, 0).Missing():
		origin = welcome{g} // it may be a document of the first edition
	}
	if ed == nil || r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header["Upgrade"] != nil || !mayBePage(r.URL.Path) {
		origin.ServeHTTP(w, whole)
		return
	}
	at := g.homeOf(ed, r)
	if r.URL.Path == "/" && at.none {
		origin = welcome{g}
	}
	if files, ok := origin.(*static); ok && !g.lacks(ed, r) {
		adds := g.additions(ed, at, r)
		done, err := files.page(w, r, adds)
		if done && adds != nothing {
			w.Of.Page = g.identityAt(r, false)
		}
		if err != nil {
			g.fail(w, r, err)
		}
		if done {
			return
		}
	}
	if g.guard.Signed(r) {
		// Fields are changed here, and what they were is looked at afterwards.
		inner, outer := *r, *whole
		inner.Header = r.Header.Clone()
		outer.Header = inner.Header
		r, whole = &inner, &outer
	}
	lw := &linked{to: w, head: r.Method == http.MethodHead, find: func() *additions { return g.additions(ed, at, r) }}
	if r.Header["Accept"] != nil {
		lw.without = func(h http.Header) { g.without(h, ed, r) }
	}
	// To a client that takes the end of the connection for the end of the page,
	// one of unknown length that is cut off would look whole.
	lw.plain = g.front != nil && !r.ProtoAtLeast(1, 1)
	if lw.prepare(r) {
		// A range of a page that is served with links would be cut from other
		// bytes than the whole.
		r.Header.Del("Range")
		r.Header.Del("If-Range")
	}
	if g.front != nil {
		var done func()
		whole, done = g.recode(lw, r, whole)
		defer done()
	}
	origin.ServeHTTP(lw, whole)
	if _, ours := origin.(welcome); ours && r.URL.Path == "/" {
		w.setErrorProtocol(access.SiteProtocol)
		w.SitePage = false
	} else if lw.adds != nil && lw.adds != nothing {
		w.Of.Page = g.identityAt(r, g.front != nil)
	}
	if err := lw.close(); err != nil {
		g.fail(w, r, fmt.Errorf("%w: %w", edition.ErrBroken, err))
	}
}

// mayBePage reports whether a path may name an HTML page: other files cost no
// lookup.
func mayBePage(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".css", ".js", ".mjs", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".woff", ".woff2", ".ttf",
		".json", ".xml", ".txt", ".pdf", ".zip", ".gz", ".mp4", ".webm", ".mp3", ".map", ".wasm":
		return false
	}
	return true
}

// home says where a client of "/" ends up.
type home struct {
	ed   *edition.Edition
	path string // percent-encoded, after redirects; in front of a server, with the query
	none bool   // there is nothing
}

// homeOf follows "/" through the origin's own redirects, once per edition: the
// site's links belong on the final response (TCT draft-01, section 1.4.1).
func (g *Gateway) homeOf(ed *edition.Edition, r *http.Request) *home {
	if at := g.home.Load(); at != nil && at.ed == ed {
		return at
	}
	if g.front != nil {
		return g.homeBehind(ed)
	}
	at := &home{ed: ed, path: "/"}
	base := &url.URL{Path: "/"}
	const most = 5
	for range most {
		if g.origin == nil {
			break
		}
		probe, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), http.MethodHead, base.String(), nil)
		if err != nil {
			break
		}
		probe.RemoteAddr = r.RemoteAddr
		answer := g.try(probe)
		at.none = at.path == "/" && (answer.status == http.StatusNotFound || answer.status == http.StatusForbidden)
		if answer.status < 300 || answer.status > 399 {
			break
		}
		next, err := base.Parse(answer.header.Get("Location"))
		if err != nil || next.Host != "" {
			break
		}
		inner := basepath.Under(&http.Request{URL: next}, g.base)
		if inner == nil {
			break
		}
		base = inner.URL
		at.path = base.EscapedPath()
	}
	g.home.Store(at)
	return at
}

// try gives the origin's answer to a request of our own.
func (g *Gateway) try(r *http.Request) (answer *discard) {
	answer = &discard{header: make(http.Header)}
	defer func() {
		// Whoever asks for that page gets to see it, and the log too.
		_ = recover()
	}()
	if g.front != nil {
		g.front.pass(answer, r)
	} else {
		g.origin.ServeHTTP(answer, r)
	}
	return answer
}

// discard takes an answer of which only status and header count.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header { return d.header }

// Write sets the type of a body as net/http does for handlers that do not.
func (d *discard) Write(b []byte) (int, error) {
	if _, is := d.header["Content-Type"]; d.status == 0 && !is && d.header.Get("Content-Encoding") == "" {
		d.header.Set("Content-Type", http.DetectContentType(b))
	}
	d.WriteHeader(http.StatusOK)
	return len(b), nil
}

func (d *discard) WriteHeader(status int) {
	if d.status == 0 && status >= 200 {
		d.status = status
	}
}
