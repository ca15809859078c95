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

// Some documents have names that are the same for all who make them, so that a
// site may have its own: they are composed of that and of what the protocols
// announce. All of them but the sitemap are at the root of the host.
const (
	RobotsPath  = "/robots.txt"
	catalogPath = "/.well-known/api-catalog"
	sitemapPath = "/sitemap.xml"
	// ownSitemapPath is where the site's own sitemap is, when it could not become
	// a part of the one at its place.
	ownSitemapPath = "/sitemap-own.xml"
)

// Options configure [Documents].
type Options struct {
	Base string // path of the site's pages, without "/" at its end
	Docs string // URL of the machine documents
	// Origin answers for the site's own files, by paths relative to Base; nil = it has
	// none here. Host does so by paths of the host, if the site has all of it; nil = it
	// does not, and only what is below Base is the site's.
	Origin, Host http.Handler
	Policy       *millrace.Policy
	Robots       *policy.Robots // what robots.txt says of the policy; nil = nothing
	Visibility   millrace.Visibility
	Signer       edition.Signer // nil = documents are not signed
	Log          *slog.Logger
}

// Documents answers for the documents of a site. Its methods are safe for concurrent
// use.
type Documents struct {
	press *edition.Press
	o     Options
	docs  string // path of the machine documents, without "/" at its end
	maps  siteMaps
	names ownNames
	seals seals
}

// New returns the documents of a site whose editions the press publishes. An error
// wraps [millrace.ErrInvalid].
func New(press *edition.Press, o *Options) (*Documents, error) {
	u, err := url.Parse(o.Docs)
	if err != nil {
		return nil, fmt.Errorf("documents: %w: %w", millrace.ErrInvalid, err)
	}
	d := &Documents{press: press, o: *o, docs: strings.TrimRight(u.EscapedPath(), "/")}
	if d.o.Host == nil && d.o.Base == "" {
		d.o.Host = d.o.Origin
	}
	return d, nil
}

// Serve answers for a composed document. It reports false, with nothing answered, if
// the path is none, or there is nothing to add to the site's own. inner is r with its
// path relative to the documents' base, nil if it is elsewhere. An error means that
// nothing has been answered.
func (d *Documents) Serve(w http.ResponseWriter, r, inner *http.Request, q *access.Request) (bool, error) {
	ed := d.press.Current()
	if ed == nil {
		return false, nil
	}
	root := d.o.Base == "" || d.o.Host != nil // the host is the site's
	switch {
	case root && r.URL.Path == RobotsPath:
		return d.robots(d.response(w, r, q), r, ed)
	case root && r.URL.Path == catalogPath:
		return d.catalog(d.response(w, r, q), r, ed)
	case inner == nil || d.o.Origin == nil || d.docs != d.o.Base:
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

// response returns what a composed document is written to.
func (d *Documents) response(w http.ResponseWriter, r *http.Request, q *access.Request) *response {
	q.Of = access.Subject{Protocol: access.SiteProtocol}
	return &response{ResponseWriter: w, d: d, r: r, q: q}
}

// SiteWidePaths lists the documents that are composed and that the site need not have
// itself, by their paths under the base of pages and documents, which is one.
func (d *Documents) SiteWidePaths(ctx context.Context) []string {
	ed := d.press.Current()
	if ed == nil || d.docs != d.o.Base {
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

// ownAt asks the host for a file of the site's own, by its path from the root.
func (d *Documents) ownAt(r *http.Request, path string, most int) *subrequest.Response {
	return subrequest.File(cmp.Or(d.o.Host, d.o.Origin), r, http.MethodGet, path, most)
}

// own asks the site for a file of its own, by its path under the base.
func (d *Documents) own(r *http.Request, path string, most int) *subrequest.Response {
	return subrequest.File(d.o.Origin, r, http.MethodGet, path, most)
}

// small answers with a document that was made for the request, whatever its query.
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
		h.Add("Link", millrace.Link{URL: originOf(w.d.o.Docs) + w.r.URL.EscapedPath(), Rel: "canonical"}.String())
	}
	h.Set("Etag", `"`+canon.SHA256Hex(body)[:32]+`"`)
	w.q.SiteWide(len(body))
	w.body = body
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	return true, nil
}

// ownMap says what a site has at the place of its sitemap, beside ours.
type ownMap struct {
	ed       *edition.Edition
	separate bool   // a sitemap that could not become a part of ours
	moved    string // where it is, "" = there
}

// siteMaps remembers what was found, and what was made of it last.
type siteMaps struct {
	own  atomic.Pointer[ownMap]
	last atomic.Pointer[mergedMap]
}

// origin returns scheme and host of the documents, "" if they are not known.
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

// Entries returns the documents of an edition with which clients begin.
func Entries(ed *edition.Edition) []millrace.Entry {
	var out []millrace.Entry
	for _, n := range ed.Advertisements {
		out = append(out, n.Entries...)
	}
	return out
}
