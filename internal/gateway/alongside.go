package gateway

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/internal/reply"
)

// PagePath is a path below the endpoint base. For each request, a web server alongside requests this
// path to find out whether millrace or the site handles it. It sends the header of the original
// request, and
//
//	X-Forwarded-Method, X-Forwarded-Uri   the method and the target of the original request
//
// The response is one of
//
//	403 with Millrace-Answer   millrace handles the request, with a document, Markdown by
//	                           negotiation, or a refusal; pass the request on to millrace
//	204                        the site handles the request; add the fields of this response to
//	                           the page, and Millrace-Elements before the end of its head
//
// With the query "caddy", 404 replaces 204, because Caddy's forward_auth hides the header of a 204.
const PagePath = "/.millrace/page"

// page serves PagePath. It responds only to the web server alongside; for other clients, the path
// does not exist.
func (g *Gateway) page(w *response, r *http.Request) (bool, error) {
	if w.inner == nil || w.inner.URL.Path != PagePath {
		return false, nil
	}
	if from := access.ParseAddress(r.RemoteAddr); !from.IsLoopback() && !g.guard.Trusted(from) {
		return false, nil
	}
	w.Unrecorded, w.silent = true, true // the request is recorded when the web server passes it on
	u, err := url.ParseRequestURI(r.Header.Get("X-Forwarded-Uri"))
	if err != nil || !strings.HasPrefix(u.Path, "/") || proxy.IsRead(r) {
		reply.Text(w, r, http.StatusNoContent, "")
		return true, nil //nolint:nilerr // the site handles the request
	}
	of := r.Clone(r.Context())
	of.URL, of.RequestURI, of.Method = u, r.Header.Get("X-Forwarded-Uri"), r.Header.Get("X-Forwarded-Method")
	of.Body, of.ContentLength = http.NoBody, 0
	asked := &response{ResponseWriter: discard{}, g: g, r: of, Request: g.guard.Request(of), silent: true}
	defer asked.Leave()
	asked.inner = basepath.Under(of, g.endpointBase)
	if g.answers(asked, of) {
		w.Header().Set("Millrace-Answer", "1")
		reply.Text(w, r, http.StatusForbidden, "")
		return true, nil
	}
	h := w.Header()
	g.header.Write(h)
	if inner := basepath.Under(of, g.base); inner != nil {
		elements := g.pages.Additions(h, inner)
		if len(elements) > 0 {
			h.Set("Millrace-Elements", strings.ReplaceAll(string(elements), "\n", ""))
		}
	}
	for _, name := range []string{"Link", "Vary"} { // older versions of nginx read only one field
		if values := h[name]; len(values) > 1 {
			h.Set(name, strings.Join(values, ", "))
		}
	}
	status := http.StatusNoContent
	if r.URL.RawQuery == "caddy" {
		h.Set("Millrace-Page", "1")
		status = http.StatusNotFound
	}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	return true, nil
}

// answers reports whether this server, rather than the site, handles a request. It renders nothing.
func (g *Gateway) answers(w *response, r *http.Request) bool {
	path := r.URL.Path
	if g.mount != "" && (path == g.mount || strings.HasPrefix(path, g.mount+"/")) || g.o.Directory != nil && path == keysPath {
		return true
	}
	if inner := basepath.Under(r, g.base); inner != nil && g.o.Texts[inner.URL.Path] != "" {
		return true
	}
	if g.site.Serves(r, w.inner) {
		return true
	}
	if inner := w.inner; inner != nil {
		if s, _, _ := g.handlerOf(inner); s != nil {
			return true
		}
		if !g.site.Own(inner) {
			if g.server.Has(inner, &w.Request) {
				return true
			}
			if _, _, proto := g.server.RenderError(inner, http.StatusNotFound, nil); proto != nil {
				return true
			}
		}
	} else if strings.HasPrefix(path, "/.well-known/") && g.server.Has(r, &w.Request) {
		return true
	}
	_, err := g.admit(w, r)
	return err != nil
}

// discard is the writer of a request that gets no response.
type discard struct{}

func (discard) Header() http.Header         { return make(http.Header) }
func (discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (discard) WriteHeader(int)             {}
