package gateway

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
)

// route is the whole surface:
//
//	/healthz     200 while the process lives
//	/readyz      200 once a complete edition is published, 503 before
//	DOCS/…       the large documents of the edition, then what the rooms find
//	BASE/…       the site's own pages and files, with discovery links
//	/robots.txt  the site's own, with the lines that the rooms announce
//	BASE/        without an own home page: one that names the site and its documents
//	/, BASE      with a path in BASE: a redirect to BASE/, because clients start at the root
//
// DOCS and BASE are the paths of the two base URLs.
func (g *Gateway) route(w *response, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		plain(w, r, http.StatusOK, "ok\n")
		return
	case "/readyz":
		if g.press.Current() == nil {
			w.Header().Set("Retry-After", "1")
			plain(w, r, http.StatusServiceUnavailable, "no edition is published yet\n")
			return
		}
		plain(w, r, http.StatusOK, "ready\n")
		return
	}
	if !g.admit(w, r) {
		return
	}
	defer g.active.Add(-1)
	if g.document(w, r) {
		return
	}
	if inner := under(r, g.base); inner != nil {
		g.page(w, inner)
		return
	}
	if at := r.URL.EscapedPath(); at == "/" || at == g.base {
		w.Header().Set("Location", g.base+"/")
		plain(w, r, http.StatusFound, "")
		return
	}
	notFound(w, r)
}

// document answers for a machine document; false = there is none.
func (g *Gateway) document(w *response, r *http.Request) bool {
	inner := under(r, g.docs)
	if inner == nil {
		return false
	}
	done, err := g.press.Serve(w, inner)
	if err != nil {
		g.fail(w, r, err)
		return true
	}
	return done
}

// under gives the request with its path relative to a prefix, nil if it is
// elsewhere. The prefix is percent-encoded and does not end in "/".
func under(r *http.Request, prefix string) *http.Request {
	if prefix == "" {
		return r
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !ok || !strings.HasPrefix(rest, "/") {
		return nil
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return nil
	}
	inner, target := *r, *r.URL
	target.Path, target.RawPath = path, ""
	if target.EscapedPath() != rest {
		target.RawPath = rest
	}
	inner.URL = &target
	return &inner
}

// admit lets a request in, or answers that there are too many or that it
// brings too much.
func (g *Gateway) admit(w *response, r *http.Request) bool {
	if g.active.Add(1) > g.maxActive {
		g.active.Add(-1)
		w.Header().Set("Retry-After", "1")
		failure(w, r, http.StatusServiceUnavailable, "too many requests at once")
		return false
	}
	if r.ContentLength != 0 {
		if r.ContentLength > maxBody {
			g.active.Add(-1)
			w.Header().Set("Connection", "close")
			failure(w, r, http.StatusRequestEntityTooLarge, "the request has a body, which nothing here takes")
			return false
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	return true
}

// fail answers an error. What it says of the inside stays in the log.
func (g *Gateway) fail(w *response, r *http.Request, err error) {
	if errors.Is(err, edition.ErrBroken) || r.Context().Err() != nil {
		return // nobody is there to read an answer
	}
	status := millrace.Status(err)
	if status >= 500 {
		g.log.Error("request failed", "path", r.URL.Path, "err", err)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	failure(w, r, status, "")
}
