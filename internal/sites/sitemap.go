package sites

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/subrequest"
)

const (
	maxOwnMap  = 4 << 20 // maximum size of a site's own sitemap to merge
	maxMapHead = 1 << 20 // maximum number of bytes of the protocols' sitemap to search for elements
)

// sitemap serves the site's own sitemap, with the elements of the protocols and without hidden
// pages. If the site has no sitemap, or one that is not a list of pages, it returns false, and the
// protocols' sitemap is served unchanged; see mapOf.
func (d *Documents) sitemap(w *response, r *http.Request, ed *edition.Edition) (bool, error) {
	ours, there, err := d.ours(r, w.q)
	if !there && err == nil {
		return false, nil // the protocols have no sitemap
	}
	own := d.own(r, sitemapPath, maxOwnMap)
	if own.Status != http.StatusOK {
		return false, nil
	}
	if err != nil { // the protocols' sitemap needs a key, the site's own does not
		w.q.Subject = access.Subject{Protocol: access.SiteProtocol}
		d.o.Origin.ServeHTTP(w.ResponseWriter, r)
		return true, nil //nolint:nilerr // the site has responded
	}
	body, ok := d.merged(ed, own, ours)
	if !ok {
		return false, nil
	}
	return w.small(r, "application/xml; charset=utf-8", "max-age=0, must-revalidate", body)
}

// ours returns the start of the protocols' sitemap. The path of r is relative to the endpoint base.
func (d *Documents) ours(r *http.Request, q *access.Request) (beginning []byte, there bool, err error) {
	ask := r.Clone(r.Context())
	ask.Method, ask.Header = http.MethodGet, http.Header{"Range": {"bytes=0-1048575"}}
	ask.URL.Path, ask.URL.RawPath, ask.URL.RawQuery = sitemapPath, "", ""
	resp := subrequest.Do(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { there, err = d.server.Answer(w, r, q) }), ask, maxMapHead)
	return resp.Body.Bytes(), there, err
}

// mergedMap is the last merged sitemap.
type mergedMap struct {
	ed   *edition.Edition
	sum  [sha256.Size]byte // hash of the site's own sitemap
	body []byte
}

// merged returns a merged sitemap. It returns the cached one if nothing has changed.
func (d *Documents) merged(ed *edition.Edition, own *subrequest.Response, ours []byte) ([]byte, bool) {
	if own.Cut {
		return nil, false
	}
	sum := sha256.Sum256(own.Body.Bytes())
	if last := d.maps.last.Load(); last != nil && last.ed == ed && last.sum == sum {
		return last.body, true
	}
	namespaces, elements := mapHead(ours)
	body, ok := mergeMap(own.Body.Bytes(), namespaces, elements, d.hides)
	if ok {
		d.maps.last.Store(&mergedMap{ed, sum, body})
	}
	return body, ok
}

// hides reports whether the visibility rule hides a URL by its path.
func (d *Documents) hides(loc string) bool {
	u, err := url.Parse(strings.TrimSpace(loc))
	if err != nil {
		return true // treat invalid URLs as hidden
	}
	pagePath, ok := strings.CutPrefix(u.EscapedPath(), d.o.Base)
	if !ok {
		return false
	}
	if !strings.HasPrefix(pagePath, "/") {
		pagePath = "/" + pagePath
	}
	return d.o.Visibility.Excluded(pagePath)
}

// mapHead returns the extra namespaces of the protocols' sitemap, and the elements before its
// pages.
func mapHead(ours []byte) (namespaces []xml.Attr, elements string) {
	d := xml.NewDecoder(bytes.NewReader(ours))
	for {
		t, err := d.Token()
		if err != nil {
			return nil, ""
		}
		root, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range root.Attr {
			if a.Name.Space == "xmlns" {
				namespaces = append(namespaces, a)
			}
		}
		rest := ours[d.InputOffset():]
		end := bytes.Index(rest, []byte("<url>"))
		if len(namespaces) == 0 || end < 0 {
			return nil, ""
		}
		return namespaces, strings.TrimSpace(string(rest[:end]))
	}
}

// mergeMap inserts elements before the pages of a sitemap and removes hidden pages. All other
// bytes are unchanged. It returns false if own is not a list of pages (sitemaps.org) in UTF-8,
// or if its root element already declares one of the prefixes of namespaces.
func mergeMap(own []byte, namespaces []xml.Attr, elements string, hidden func(string) bool) ([]byte, bool) {
	d := xml.NewDecoder(bytes.NewReader(own))
	var out bytes.Buffer
	var from int64  // offset before which all bytes are written or dropped
	var start int64 // offset of the start of the current entry
	var loc strings.Builder
	depth, inLoc := 0, false
	for {
		before := d.InputOffset()
		t, err := d.Token()
		if err == io.EOF && depth == 0 && out.Len() > 0 { //nolint:errorlint // the decoder returns it unchanged
			out.Write(own[from:])
			return out.Bytes(), true
		}
		if err != nil {
			return nil, false
		}
		switch t := t.(type) {
		case xml.StartElement:
			depth++
			switch depth {
			case 1:
				end := d.InputOffset()
				if t.Name.Local != "urlset" || own[end-2] == '/' || binds(t, namespaces) {
					return nil, false
				}
				out.Write(own[:end-1])
				for _, n := range namespaces {
					out.WriteString(" xmlns:" + n.Name.Local + `="`)
					_ = xml.EscapeText(&out, []byte(n.Value)) // a write to a buffer never fails
					out.WriteString(`"`)
				}
				out.WriteString(">")
				if elements != "" {
					out.WriteString("\n" + elements)
				}
				from = end
			case 2:
				start = before
				loc.Reset()
			case 3:
				inLoc = t.Name.Local == "loc" && !strings.Contains(t.Name.Space, "/sitemap-") // not the loc of an image or a video
			}
		case xml.EndElement:
			if depth == 2 && t.Name.Local == "url" && hidden(loc.String()) {
				out.Write(own[from:start])
				from = d.InputOffset()
			}
			if depth == 3 {
				inLoc = false
			}
			depth--
		case xml.CharData:
			if inLoc && depth == 3 {
				loc.Write(t)
			}
		}
	}
}

// isMap reports whether a response is a sitemap, and not the page that some sites send for every
// path.
func isMap(own *subrequest.Response) bool {
	if own.Header.Get("Content-Encoding") != "" {
		return strings.Contains(own.Header.Get("Content-Type"), "xml")
	}
	d := xml.NewDecoder(&own.Body)
	for {
		t, err := d.Token()
		if err != nil {
			return false
		}
		if root, ok := t.(xml.StartElement); ok {
			return root.Name.Local == "urlset" || root.Name.Local == "sitemapindex"
		}
	}
}

// binds reports whether an element declares one of the prefixes of namespaces.
func binds(root xml.StartElement, namespaces []xml.Attr) bool {
	for _, a := range root.Attr {
		for _, n := range namespaces {
			if a.Name.Space == "xmlns" && a.Name.Local == n.Name.Local {
				return true
			}
		}
	}
	return false
}

// mapOf finds the site's own sitemap once per edition. A redirect or an index cannot be merged;
// robots.txt then names the target of the redirect, or a separate path for the index.
func (d *Documents) mapOf(ed *edition.Edition, r *http.Request) *ownMap {
	if at := d.maps.own.Load(); at != nil && at.ed == ed {
		return at
	}
	at := &ownMap{ed: ed}
	own := d.own(r, sitemapPath, maxOwnMap)
	switch {
	case own.Status == http.StatusOK:
		if ours, there, err := d.ours(r, nil); there && err == nil {
			_, one := d.merged(ed, own, ours)
			at.separate = !one && isMap(own)
		}
	case own.Status >= 300 && own.Status <= 399:
		at.moved = own.Header.Get("Location")
	case !own.Missing():
		return at // not cached, because the next attempt may succeed
	}
	d.maps.own.Store(at)
	return at
}

// lines returns the lines of robots.txt for the site's own sitemap.
func (m *ownMap) lines(d *Documents, r *http.Request) []string {
	base := strings.TrimSuffix(d.o.EndpointBase, "/")
	if base == "" {
		return nil
	}
	if m.separate {
		return []string{"Sitemap: " + base + ownSitemapPath}
	}
	at, err := url.Parse(base + sitemapPath)
	if m.moved == "" || err != nil {
		return nil
	}
	to, err := at.Parse(m.moved)
	if err != nil || to.Host != at.Host && to.Host != r.Host || to.Scheme != "http" && to.Scheme != "https" {
		return nil
	}
	to.Scheme, to.Host = at.Scheme, at.Host
	return []string{"Sitemap: " + to.String()}
}
