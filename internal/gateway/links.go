package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
)

// page answers for the site's own resources; the path of r is relative to the
// base. Pages get the links by which their documents are discovered.
func (g *Gateway) page(w *response, r *http.Request) {
	ed := g.press.Current()
	if ed != nil && g.base == "" && r.URL.Path == "/robots.txt" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && g.robots(w, r, ed) {
		return
	}
	origin := g.origin
	if origin == nil {
		origin = welcome{g}
	}
	if ed == nil || r.Method != http.MethodGet && r.Method != http.MethodHead || !mayBePage(r.URL.Path) {
		origin.ServeHTTP(w, r)
		return
	}
	at := g.homeOf(ed, r)
	if r.URL.Path == "/" && at.none {
		origin = welcome{g}
	}
	lw := &linked{to: w, head: r.Method == http.MethodHead, find: func() ([]millrace.Link, []json.RawMessage) { return g.links(ed, at, r) }}
	if lw.prepare(r) {
		// A range of a page that is served with links would be cut from other
		// bytes than the whole.
		r.Header.Del("Range")
		r.Header.Del("If-Range")
	}
	origin.ServeHTTP(lw, r)
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

// links gives the links of one page, those of the site first, and the JSON-LD
// that goes into its head.
func (g *Gateway) links(ed *edition.Edition, at *home, r *http.Request) ([]millrace.Link, []json.RawMessage) {
	identity := r.URL.EscapedPath()
	var out []millrace.Link
	var data []json.RawMessage
	if identity == at.path {
		for _, n := range ed.Notices {
			out = append(out, n.Root...)
			data = append(data, n.RootData...)
		}
	}
	for _, n := range ed.Notices {
		if n.Page == nil {
			continue
		}
		links, err := pageLinks(r.Context(), n, identity, r.URL.RawQuery)
		if err != nil && r.Context().Err() == nil {
			// The page itself is worth more than its links.
			g.log.Error("links of a page", "page", identity, "err", err)
		}
		out = append(out, links...)
	}
	return out, data
}

// pageLinks asks for the page with the query, then without: a file is the same
// page under any query.
func pageLinks(ctx context.Context, n millrace.Notice, identity, query string) ([]millrace.Link, error) {
	if query != "" {
		links, err := n.Page(ctx, identity+"?"+query)
		if len(links) > 0 || err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return links, err
		}
	}
	links, err := n.Page(ctx, identity)
	if errors.Is(err, millrace.ErrNotFound) {
		return nil, nil
	}
	return links, err
}

// home says where a client of "/" ends up.
type home struct {
	ed   *edition.Edition
	path string // percent-encoded, after redirects
	none bool   // there is nothing
}

// homeOf follows "/" through the origin's own redirects, once per edition: the
// site's links belong on the final response (TCT draft-01, section 1.4.1).
func (g *Gateway) homeOf(ed *edition.Edition, r *http.Request) *home {
	if at := g.home.Load(); at != nil && at.ed == ed {
		return at
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
		inner := under(&http.Request{URL: next}, g.base)
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
	g.origin.ServeHTTP(answer, r)
	return answer
}

// discard takes an answer of which only status and header count.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { d.WriteHeader(http.StatusOK); return len(b), nil }
func (d *discard) WriteHeader(status int) {
	if d.status == 0 && status >= 200 {
		d.status = status
	}
}
