package sites

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/subrequest"
	"github.com/millrace/millrace/policy"
)

// Paths of site-wide documents. A site may have its own documents at these paths. All except the
// sitemaps are at the root of the host.
const (
	RobotsPath  = "/robots.txt"
	catalogPath = "/.well-known/api-catalog"
	sitemapPath = "/sitemap.xml"
	// ownSitemapPath serves the site's own sitemap if it cannot be merged.
	ownSitemapPath = "/sitemap-own.xml"
)

// Options configure [Documents].
type Options struct {
	Base         string // path of the site's pages, without a trailing "/"
	EndpointBase string // endpoint base URL
	// Origin serves the site's own files, with paths relative to Base. It may be nil. Host serves
	// all paths of the host. If Host is nil, the site has only the paths below Base.
	Origin, Host http.Handler
	Policy       *millrace.Policy
	Robots       *policy.Robots // adds the policy to robots.txt; may be nil
	Lines        policy.RobotsLines
	MCP          MCP
	Visibility   millrace.Visibility
	Signer       edition.Signer // If nil, responses are unsigned.
	Logger       *slog.Logger
}

// Documents serves the site-wide documents. Its methods are safe for concurrent
// use.
type Documents struct {
	server     *edition.Server
	o          Options
	endpoints  string // path of the endpoint base URL, without a trailing "/"
	maps       siteMaps
	names      ownNames
	signatures signatureCache
}

// New returns the site-wide documents for the editions that server serves. An error wraps
// [millrace.ErrInvalid].
func New(server *edition.Server, o *Options) (*Documents, error) {
	u, err := url.Parse(o.EndpointBase)
	if err != nil {
		return nil, fmt.Errorf("documents: %w: %w", millrace.ErrInvalid, err)
	}
	d := &Documents{server: server, o: *o, endpoints: strings.TrimRight(u.EscapedPath(), "/")}
	if d.o.Host == nil && d.o.Base == "" {
		d.o.Host = d.o.Origin
	}
	return d, nil
}

// Serve serves a site-wide document. It returns false, without a response, if the path does not
// name such a document, or if the site's own document needs no additions. The path of inner is
// relative to the endpoint base; inner is nil for other paths. After an error, no response has
// begun.
func (d *Documents) Serve(w http.ResponseWriter, r, inner *http.Request, q *access.Request) (bool, error) {
	ed := d.server.Current()
	if ed == nil {
		return false, nil
	}
	root := d.o.Base == "" || d.o.Host != nil // the site includes the root of the host
	switch {
	case root && r.URL.Path == RobotsPath:
		return d.robots(d.response(w, r, q), r, ed)
	case root && r.URL.Path == catalogPath:
		return d.catalog(d.response(w, r, q), r, ed)
	case d.isAbout(r, inner):
		return d.about(d.response(w, r, q), r, ed)
	case inner == nil || d.o.Origin == nil || d.endpoints != d.o.Base:
	case inner.URL.Path == sitemapPath:
		return d.sitemap(d.response(w, r, q), inner, ed)
	case inner.URL.Path == ownSitemapPath && d.mapOf(ed, inner).separate:
		at := *inner.URL
		at.Path, at.RawPath, at.RawQuery = sitemapPath, "", ""
		own := inner.Clone(inner.Context())
		own.URL = &at
		d.o.Origin.ServeHTTP(w, own)
		return true, nil
	}
	return false, nil
}

// Serves reports whether a path names a site-wide document. The parameters are those of Serve.
func (d *Documents) Serves(r, inner *http.Request) bool {
	ed := d.server.Current()
	if ed == nil {
		return false
	}
	switch at := r.URL.Path; {
	case at == RobotsPath || at == catalogPath:
		return d.o.Base == "" || d.o.Host != nil
	case d.isAbout(r, inner):
		return d.ownAt(r, at, maxCatalog).Missing()
	case inner != nil && inner.URL.Path == ownSitemapPath:
		return d.mapOf(ed, inner).separate
	}
	return false
}

// response returns the writer of a site-wide document.
func (d *Documents) response(w http.ResponseWriter, r *http.Request, q *access.Request) *response {
	q.Subject = access.Subject{Protocol: access.SiteProtocol}
	return &response{ResponseWriter: w, d: d, r: r, q: q}
}

// SiteWidePaths lists the site-wide documents that Serve adds or extends, except the merged sitemap
// and the documents about the MCP server. The paths are relative to the common base of pages and
// documents. If pages and documents have different bases, SiteWidePaths returns nil.
func (d *Documents) SiteWidePaths(ctx context.Context) []string {
	ed := d.server.Current()
	if ed == nil || d.endpoints != d.o.Base {
		return nil
	}
	var out []string
	if d.o.Base == "" && (len(d.robotsLines(ed, "")) > 0 || d.o.Robots != nil) {
		out = append(out, RobotsPath)
	}
	if d.o.Base == "" && len(Entries(ed)) > 0 {
		out = append(out, catalogPath)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, sitemapPath, http.NoBody)
	if err == nil && d.o.Origin != nil && d.mapOf(ed, r).separate {
		out = append(out, ownSitemapPath)
	}
	return out
}

// ownAt requests a file of the site by its path on the host.
func (d *Documents) ownAt(r *http.Request, path string, most int) *subrequest.Response {
	return subrequest.File(cmp.Or(d.o.Host, d.o.Origin), r, http.MethodGet, path, most)
}

// own requests a file of the site by its path under the base.
func (d *Documents) own(r *http.Request, path string, most int) *subrequest.Response {
	return subrequest.File(d.o.Origin, r, http.MethodGet, path, most)
}

// small sends a document that was composed for the request. It also responds to OPTIONS, and returns
// an error for other methods than GET and HEAD.
func (w *response) small(r *http.Request, contentType, maxAge string, body []byte) (bool, error) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		clear(h)
		_, err := edition.Method(w, r, "GET, HEAD, OPTIONS", true)
		return true, err
	}
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", maxAge)
	if r.URL.RawQuery != "" {
		h.Add("Link", millrace.Link{URL: originOf(w.d.o.EndpointBase) + w.r.URL.EscapedPath(), Rel: "canonical"}.String())
	}
	h.Set("Etag", `"`+canon.SHA256Hex(body)[:32]+`"`)
	w.q.SetSiteWide(len(body))
	w.body = body
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	return true, nil
}

// ownMap describes the site's own sitemap.
type ownMap struct {
	ed       *edition.Edition
	separate bool   // the sitemap could not be merged
	moved    string // target of its redirect, or ""
}

// siteMaps caches the site's own sitemap and the merged one.
type siteMaps struct {
	own  atomic.Pointer[ownMap]
	last atomic.Pointer[mergedMap]
}

// originOf returns the scheme and host of a base URL, or "" if base is only a path.
func originOf(base string) string {
	i := strings.Index(base, "://")
	if i < 0 {
		return ""
	}
	if j := strings.IndexByte(base[i+3:], '/'); j >= 0 {
		return base[:i+3+j]
	}
	return base
}

// Entries returns the entry points of an edition.
func Entries(ed *edition.Edition) []millrace.Entry {
	var out []millrace.Entry
	for _, n := range ed.Advertisements {
		out = append(out, n.Entries...)
	}
	return out
}
