package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/reply"
)

// keysPath is where a host publishes the keys that sign for it.
const keysPath = "/.well-known/http-message-signatures-directory"

// route is the whole surface:
//
//	/healthz     200 while the process lives, with a JSON object
//	/readyz      200 once a complete edition is published, 503 before; names damaged documents
//	/metrics     what Prometheus asks for, for those who may
//	DASHBOARD/…  the owner's, who logs in there, if there is one
//	             in front of a site, 421 for a host that it does not go by
//	/.well-known/http-message-signatures-directory  the keys that sign for the host, if it has some here
//	BASE/…       texts that are the same for everybody
//	BASE/…       the site's own llms.txt, feeds and files of Markdown, where it has some
//	DOCS/…       what the service and rooms answer themselves, the large documents of the edition,
//	             then what the rooms find, then what a protocol says is missing
//	BASE/…       the site's own pages and files, with discovery links; in front of a site, everything else, too
//	/.well-known/…  what of DOCS/.well-known/… is discovery
//	/robots.txt  the site's own, with what the policy says and the lines that the rooms announce
//	/.well-known/api-catalog  the site's own, and where clients of the rooms begin
//	DOCS/sitemap.xml  the site's own, with the elements of the rooms; what cannot be both is at /sitemap-own.xml
//	BASE/        without an own home page: one that names the site and its documents
//	/, BASE      with a path in BASE: a redirect to BASE/, because clients start at the root
//
// DOCS and BASE are the paths of the two base URLs, DASHBOARD is a path of the host.
func (g *Gateway) route(w *response, r *http.Request) {
	if held := r.Header["If-None-Match"]; len(held) > 1 {
		r.Header["If-None-Match"] = []string{strings.Join(held, ", ")} // one list (RFC 9110, section 5.3), of which net/http reads the first line
	}
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		if w.Quiet = true; reply.OnlyReads(w, r) {
			return
		}
	}
	switch r.URL.Path {
	case "/healthz":
		ready := g.press == nil || g.press.Current() != nil
		reply.Bytes(w, r, http.StatusOK, "application/json; charset=utf-8", fmt.Appendf(nil, `{"status":"ok","ready":%t}`+"\n", ready))
		return
	case "/readyz":
		if g.press != nil && g.press.Current() == nil {
			w.Header().Set("Retry-After", "1")
			reply.Text(w, r, http.StatusServiceUnavailable, "no edition is published yet\n")
			return
		}
		said := "ready\n"
		if g.press != nil && g.press.Lag() > 0 {
			said += fmt.Sprintf("the last change was visible after %.1f s\n", g.press.Lag().Seconds())
		}
		if g.press != nil {
			for _, path := range g.press.Damaged() {
				said += "damaged, and made again: " + path + "\n"
			}
		}
		reply.Text(w, r, http.StatusOK, said)
		return
	}
	if g.metrics(w, r) || g.dashboard(w, r) {
		return
	}
	if g.front != nil {
		if said := g.front.Misdirected(r); said != nil {
			reply.Error(w, r, said.Status, said)
			return
		}
	}
	if g.o.Directory != nil && r.URL.Path == keysPath {
		w.Of.Protocol = access.SiteProtocol
		g.o.Directory.ServeHTTP(w, r)
		return
	}
	if g.fixed(w, r) {
		return
	}
	if access.HoldsKey(r.URL.RawQuery) || access.HoldsKey(r.URL.Path) || r.URL.Host != "" && access.HoldsKey(r.RequestURI) {
		g.fail(w, r, access.ErrInURL)
		return
	}
	if !g.let(w, r) {
		return
	}
	inner := basepath.Under(r, g.docs)
	if g.serves && inner != nil {
		if server, scope, room := g.server(inner); server != nil {
			g.serve(w, r, inner, server, scope, room)
			return
		}
	}
	if !g.admit(w, r) {
		return
	}
	defer w.Leave()
	if g.press == nil {
		reply.NotFound(w, r)
		return
	}
	w.Of.Protocol = access.SiteProtocol
	if done, err := g.site.Serve(w, r, inner, &w.Request); err != nil {
		g.fail(w, r, err)
		return
	} else if done {
		return
	}
	if inner != nil && !g.site.Own(inner) && g.document(w, r, inner) {
		return
	}
	if inner == nil && strings.HasPrefix(r.URL.Path, "/.well-known/") { // which is at the root of a host (RFC 8615)
		if done, err := g.press.Discovery(w, r, &w.Request); err != nil {
			g.fail(w, r, err)
			return
		} else if done {
			return
		}
	}
	if g.front != nil {
		w.Leave() // what passes may take any time, and is counted there
	}
	w.Record = access.Record{SitePage: true}
	if inner := basepath.Under(r, g.base); inner != nil {
		if err := g.pages.Serve(w, r, inner, &w.Request); err != nil {
			g.fail(w, r, err)
		}
		return
	}
	if g.front != nil {
		g.front.Pass(w, r)
		return
	}
	if at := r.URL.EscapedPath(); at == "/" || at == g.base {
		w.Of.Protocol, w.SitePage = access.SiteProtocol, false
		reply.Redirect(w, r, g.base+"/")
		return
	}
	w.SitePage = true
	reply.NotFound(w, r)
}

// document answers for a machine document, or for a path that is a protocol's
// and names none; false = the path is the site's. inner is r with its path
// relative to the documents' base.
func (g *Gateway) document(w *response, r, inner *http.Request) bool {
	// Where there are no pages of the site, what needs no key has a name.
	hidden := g.guarded && g.origin == nil && inner.URL.Path != "/" && inner.URL.Path != "/robots.txt"
	if hidden && g.press.Sealed(inner.URL.EscapedPath()) {
		if err := w.Key(); err != nil {
			g.fail(w, r, err)
			return true
		}
	}
	done, err := g.press.Answer(w, inner, &w.Request)
	switch {
	case err != nil:
		g.fail(w, r, err)
		return true
	case done:
		return true
	}
	_, _, room := g.press.Refuse(inner, http.StatusNotFound, nil)
	its := room != nil
	if its && room.Guarded || hidden && !its {
		// Whoever has no key does not learn what there is.
		if err := w.Key(); err != nil {
			g.fail(w, r, err)
			return true
		}
	}
	switch {
	case its && g.press.Current() == nil:
		g.fail(w, r, errEarly)
	case its:
		g.refuse(w, r, http.StatusNotFound, nil)
	}
	return its
}

// Errors of requests that there is no room for. Without a code, they are told
// by each protocol in its own words.
var (
	errEarly = &access.Refusal{Err: millrace.RequestError{
		Status: http.StatusServiceUnavailable, Text: "no edition is published yet",
	}, Retry: 5}
	errBody = &access.Refusal{Err: millrace.RequestError{
		Status: http.StatusRequestEntityTooLarge, Text: "the request has a body, which nothing here takes",
	}}
	errLarge = &access.Refusal{Err: millrace.RequestError{
		Status: http.StatusRequestEntityTooLarge, Text: "the request's body is too large",
	}}
)

// admit lets a request in, or answers that there are too many or that it
// brings too much.
func (g *Gateway) admit(w *response, r *http.Request) bool {
	if err := w.Enter(); err != nil {
		g.fail(w, r, err)
		return false
	}
	if r.ContentLength != 0 && g.front == nil {
		if r.ContentLength > maxBody {
			w.Leave()
			g.fail(w, r, errBody)
			return false
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	return true
}

// fail answers an error. What it says of the inside stays in the log.
func (g *Gateway) fail(w *response, r *http.Request, err error) {
	if errors.Is(err, edition.ErrBroken) || r.Context().Err() != nil {
		w.Broken = true
		return // nobody is there to read an answer
	}
	status := millrace.Status(err)
	said := requestError(err)
	if status >= 500 && said == nil {
		g.log.Error("request failed", "path", access.Redact(r.URL.Path), "err", err)
	}
	h := w.Header()
	methods, size := h["Allow"], h["Content-Range"]
	clear(h) // of the response that was begun
	if methods != nil {
		h["Allow"] = methods
	}
	if size != nil {
		h["Content-Range"] = size
	}
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "5")
	}
	if status == http.StatusRequestEntityTooLarge {
		h.Set("Connection", "close") // the rest of the body is not read
	}
	if why, ok := errors.AsType[*access.Refusal](err); ok {
		if why.Challenge != "" {
			h.Set("Www-Authenticate", why.Challenge)
		}
		if why.Retry > 0 {
			h.Set("Retry-After", strconv.Itoa(why.Retry))
		}
	}
	g.refuse(w, r, status, err)
}

// refuse answers an error status in the form of the protocol that the path
// belongs to, else in a form of its own. Errors are never cached, since they
// may be those of one client.
func (g *Gateway) refuse(w *response, r *http.Request, status int, err error) {
	h := w.Header()
	said := requestError(err)
	if said != nil && said.Code == "" {
		err = nil // each protocol has words of its own for it
	}
	if header, body, room, ok := g.form(r, status, err); ok {
		guarded := room.Guarded
		w.setErrorProtocol(room.Name)
		for name, values := range header {
			switch name = http.CanonicalHeaderKey(name); {
			case name == "Content-Length", name == "Transfer-Encoding", name == "Connection", h[name] != nil:
			default:
				h[name] = values
			}
		}
		if !guarded {
			h.Set("Access-Control-Allow-Origin", "*")
		}
		if guarded || h["Www-Authenticate"] != nil {
			private(h)
		}
		h.Set("Cache-Control", "no-store")
		reply.Bytes(w, r, status, h.Get("Content-Type"), body)
		return
	}
	if h["Www-Authenticate"] != nil {
		h.Set("Vary", "Authorization")
	}
	reply.Error(w, r, status, said)
}

// form gives an error in its protocol's own form. A room that fails even at
// that has none.
func (g *Gateway) form(r *http.Request, status int, err error) (header http.Header, body []byte, room *edition.Room, ok bool) {
	inner := basepath.Under(r, g.docs)
	if inner == nil || g.press == nil {
		return nil, nil, nil, false
	}
	defer func() {
		if cause := recover(); cause != nil {
			g.log.Error("panic", "path", access.Redact(r.URL.Path), "cause", cause)
			ok = false
		}
	}()
	header, body, room = g.press.Refuse(inner, status, err)
	return header, body, room, room != nil
}

// requestError gives what an error says to whoever sent the request, nil if
// it says nothing.
func requestError(err error) *millrace.RequestError {
	said, _ := errors.AsType[*millrace.RequestError](err)
	return said
}
