package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
)

// Some documents have names that are the same for all who make them, so that a
// site may have its own: they are composed of that and of what the rooms
// announce. All of them but the sitemap are at the root of the host.
const (
	robotsPath  = "/robots.txt"
	catalogPath = "/.well-known/api-catalog"
	sitemapPath = "/sitemap.xml"
	// ownSitemapPath is where the site's own sitemap is, when it could not become
	// a part of the one at its place.
	ownSitemapPath = "/sitemap-own.xml"
)

// composed answers for the documents that are composed, false if the path names
// none or there is nothing to add to the site's own. inner is r with its path
// relative to the documents' base, nil if it is elsewhere.
func (g *Gateway) composed(w *response, r, inner *http.Request) bool {
	ed := g.press.Current()
	if ed == nil {
		return false
	}
	root := g.base == "" || g.front != nil // the host is the site's
	switch {
	case root && r.URL.Path == robotsPath:
		return g.robots(w, r, ed)
	case root && r.URL.Path == catalogPath:
		return g.catalog(w, r, ed)
	case inner == nil || g.origin == nil || g.docs != g.base:
	case inner.URL.Path == sitemapPath:
		return g.sitemap(w, inner, ed)
	case inner.URL.Path == ownSitemapPath && g.mapOf(ed, inner).aside:
		at := *inner.URL
		at.Path, at.RawPath, at.RawQuery = sitemapPath, "", ""
		own := inner.Clone(inner.Context())
		own.URL = &at
		g.origin.ServeHTTP(w, own)
		return true
	}
	return false
}

// Composed lists the documents that are composed and that the site need not have
// itself, by their paths under the base of pages and documents, which is one.
func (g *Gateway) Composed(ctx context.Context) []string {
	ed := g.press.Current()
	if ed == nil || g.docs != g.base {
		return nil
	}
	var out []string
	if g.base == "" && (len(g.robotsLines(ed, "")) > 0 || g.usage != nil) {
		out = append(out, robotsPath)
	}
	if g.base == "" && len(entriesOf(ed)) > 0 {
		out = append(out, catalogPath)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, sitemapPath, http.NoBody)
	if err == nil && g.origin != nil && g.mapOf(ed, r).aside {
		out = append(out, ownSitemapPath)
	}
	return out
}

// captured takes an answer with the start of its body.
type captured struct {
	discard
	most int
	body bytes.Buffer
	cut  bool // there was more
}

func (c *captured) Write(b []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	room := c.most - c.body.Len()
	c.cut = c.cut || len(b) > room
	if room > 0 {
		c.body.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// ownAt asks the host for a file of the site's own, by its path from the root.
func (g *Gateway) ownAt(r *http.Request, path string, most int) *captured {
	if g.front != nil {
		return fileOf(http.HandlerFunc(g.front.pass), r, path, most)
	}
	return fileOf(g.origin, r, path, most)
}

// own asks the site for a file of its own, by its path under the base.
func (g *Gateway) own(r *http.Request, path string, most int) *captured {
	return fileOf(g.origin, r, path, most)
}

// fileOf asks for all of a file, whatever the request was. One that is longer, or
// that nobody here can decode, is cut.
func fileOf(origin http.Handler, r *http.Request, path string, most int) *captured {
	own := &captured{discard: discard{header: make(http.Header)}, most: most}
	if origin == nil {
		own.status = http.StatusNotFound
		return own
	}
	probe := r.Clone(r.Context())
	probe.Method, probe.Header, probe.Body, probe.ContentLength = http.MethodGet, make(http.Header), http.NoBody, 0
	probe.URL.Path, probe.URL.RawPath, probe.URL.RawQuery = path, "", ""
	func() {
		defer func() {
			if recover() != nil { // half an answer is none
				own.status = http.StatusBadGateway
			}
		}()
		origin.ServeHTTP(own, probe)
	}()
	if own.status == http.StatusOK && !own.cut && own.header.Get("Content-Encoding") != "" {
		own.decode()
	}
	return own
}

// decode undoes the codings of a body, which a server may have used unasked.
func (c *captured) decode() {
	resp := &http.Response{Header: c.header, Body: io.NopCloser(bytes.NewReader(c.body.Bytes())), ContentLength: -1}
	plain, err := fetch.ReadBody(resp, int64(c.most))
	if err != nil {
		c.cut = true
		return
	}
	c.header.Del("Content-Encoding")
	c.body = *bytes.NewBuffer(plain)
}

// missing reports whether the site has no such file.
func (c *captured) missing() bool {
	return c.status == http.StatusNotFound || c.status == http.StatusGone
}

// small answers with a document that was made for the request, whatever its query.
func small(w *response, r *http.Request, contentType, maxAge string, body []byte) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		clear(h)
		if done, err := edition.Method(w, r, "GET, HEAD, OPTIONS", true); !done {
			w.g.fail(w, r, err)
		}
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", maxAge)
	if r.URL.RawQuery != "" {
		h.Add("Link", millrace.Link{URL: originOf(w.g.o.Docs) + w.r.URL.EscapedPath(), Rel: "canonical"}.String())
	}
	h.Set("Etag", `"`+canon.SHA256Hex(body)[:32]+`"`)
	w.composed(len(body))
	http.ServeContent(sealed{w, body}, r, "", time.Time{}, bytes.NewReader(body))
}

// ownMap says what a site has at the place of its sitemap, beside ours.
type ownMap struct {
	ed    *edition.Edition
	aside bool   // a sitemap that could not become a part of ours
	moved string // where it is, "" = there
}

// siteMaps remembers what was found, and what was made of it last.
type siteMaps struct {
	own  atomic.Pointer[ownMap]
	last atomic.Pointer[mergedMap]
}

// origin gives scheme and host of the documents, "" if they are not known.
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

// entriesOf gives the documents with which clients begin.
func entriesOf(ed *edition.Edition) []millrace.Entry {
	var out []millrace.Entry
	for _, n := range ed.Advertisements {
		out = append(out, n.Entries...)
	}
	return out
}
