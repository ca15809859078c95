package gateway

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/reply"
	"github.com/millrace/millrace/internal/sites"
)

// keysPath is the well-known path of a host's signing keys.
const keysPath = "/.well-known/http-message-signatures-directory"

// A step responds to a request, or leaves it to the next step. If it returns an error, it has not
// begun a response, unless the error wraps [edition.ErrBroken].
type step func(w *response, r *http.Request) (done bool, err error)

// newSteps returns the steps that the options require for each request, in order. In the comments,
// BASE is the path of Options.Base, ENDPOINT that of Options.EndpointBase, and DASHBOARD is a path
// of the host.
func (g *Gateway) newSteps() (steps []step) {
	site := g.server != nil
	for _, s := range []struct {
		step   step
		needed bool
	}{
		{g.health, true}, // /healthz, /readyz
		{g.metrics, g.o.Metrics != nil && (g.front == nil || !g.front.InProcess())}, // /metrics
		{g.dashboard, g.mount != ""},                   // DASHBOARD/…
		{g.page, g.o.Place == sites.Alongside && site}, // ENDPOINT/.millrace/page: requests of a web server alongside
		{g.host, g.front != nil},                       // 421 for unknown hosts, in front of a site
		{g.directory, g.o.Directory != nil},            // the host's signing keys
		{g.textFile, len(g.o.Texts) > 0},               // BASE/…: Options.Texts
		{g.admit, true},                                // refuses requests with a key in the URL, and bots that a rule refuses
		{g.handlers, g.serves},                         // ENDPOINT/…: handlers of the service and of protocols
		{g.enter, true},                                // limits concurrent requests
		{g.documents, site},                            // site-wide documents; ENDPOINT/…: documents and errors of protocols
		{g.discovery, site},                            // /.well-known/…: discovery documents of ENDPOINT/.well-known/…
		{g.own, site},                                  // BASE/…: the site's own pages and files; in front of a site, also everything else
		{g.root, site},                                 // /, BASE: redirect to BASE/
	} {
		if s.needed {
			steps = append(steps, s.step)
		}
	}
	return steps
}

// route runs the steps until one responds.
func (g *Gateway) route(w *response, r *http.Request) {
	if tags := r.Header["If-None-Match"]; len(tags) > 1 {
		r.Header["If-None-Match"] = []string{strings.Join(tags, ", ")} // one list (RFC 9110, section 5.3), because net/http reads only the first line
	}
	w.inner = basepath.Under(r, g.endpointBase)
	for _, step := range g.steps {
		done, err := step(w, r)
		if err != nil {
			g.fail(w, r, err)
		}
		if done || err != nil {
			return
		}
	}
	reply.NotFound(w, r)
}

// health serves /healthz and /readyz. The latter reports whether an edition is published and the
// store exists, and describes the state of this process. If the origin is a handler in this
// process, the paths belong to the site.
func (g *Gateway) health(w *response, r *http.Request) (bool, error) {
	alive := r.URL.Path == "/healthz"
	if !alive && r.URL.Path != "/readyz" || g.front != nil && g.front.InProcess() {
		return false, nil
	}
	if w.Unrecorded = true; reply.OnlyReads(w, r) {
		return true, nil
	}
	published := g.server == nil || g.server.Current() != nil
	if alive {
		reply.Bytes(w, r, http.StatusOK, "application/json; charset=utf-8", fmt.Appendf(nil, `{"status":"ok","ready":%t}`+"\n", published))
		return true, nil
	}
	status := http.StatusServiceUnavailable
	var text string
	switch err := g.healthy(); {
	case !published:
		w.Header().Set("Retry-After", "1")
		text = "no edition is published yet\n"
	case err != nil:
		text = err.Error() + "\n"
	default:
		status, text = http.StatusOK, "ready\n"+g.pace()
		if g.o.Status != nil {
			text += strings.Join(g.o.Status(r.Context()), "\n") + "\n"
		}
	}
	reply.Text(w, r, status, text)
	return true, nil
}

func (g *Gateway) healthy() error {
	if g.o.Healthy == nil {
		return nil
	}
	return g.o.Healthy()
}

// pace returns lines of text about the current edition: its delay, and its damaged documents.
func (g *Gateway) pace() string {
	if g.server == nil {
		return ""
	}
	text := ""
	last, waiting := g.server.Lag()
	if last > 0 {
		text += fmt.Sprintf("the last change became visible after %.1f s\n", last.Seconds())
	}
	if waiting > 0 {
		text += fmt.Sprintf("a change has waited for %.1f s\n", waiting.Seconds())
	}
	for _, path := range g.server.Damaged() {
		text += "damaged; rebuilding: " + path + "\n"
	}
	return text
}

func (g *Gateway) host(w *response, r *http.Request) (bool, error) {
	wrong := g.front.Misdirected(r)
	if wrong != nil {
		reply.Error(w, r, wrong.Status, wrong)
	}
	return wrong != nil, nil
}

func (g *Gateway) directory(w *response, r *http.Request) (bool, error) {
	if r.URL.Path != keysPath {
		return false, nil
	}
	w.Subject.Protocol = access.SiteProtocol
	g.o.Directory.ServeHTTP(w, r)
	return true, nil
}

// textFile serves Options.Texts.
func (g *Gateway) textFile(w *response, r *http.Request) (bool, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false, nil
	}
	inner := basepath.Under(r, g.base)
	if inner == nil {
		return false, nil
	}
	text, ok := g.o.Texts[inner.URL.Path]
	if ok {
		w.Subject.Protocol = access.SiteProtocol
		reply.Text(w, r, http.StatusOK, text)
	}
	return ok, nil
}

// admit refuses requests with a key in the URL, and bots that a rule refuses. Documents with the
// terms are public.
func (g *Gateway) admit(w *response, r *http.Request) (bool, error) {
	if access.HoldsKey(r.URL.RawQuery) || access.HoldsKey(r.URL.Path) || r.URL.Host != "" && access.HoldsKey(r.RequestURI) {
		return false, access.ErrKeyInURL
	}
	if g.isTerms(r) {
		return false, nil
	}
	err := w.CheckBot()
	if err != nil {
		g.guess(w, r)
	}
	return false, err
}

// isTerms reports whether a request is for the terms of use or for the signing keys.
func (g *Gateway) isTerms(r *http.Request) bool {
	path := r.URL.Path
	if g.endpointBase != "" {
		if rest, ok := strings.CutPrefix(path, g.endpointBase); ok && strings.HasPrefix(rest, "/") {
			path = rest
		}
	}
	switch path {
	case "/robots.txt", "/license.xml", "/llm-policy.json", "/.well-known/arc-policy.json", keysPath:
		return true
	}
	return false
}

// enter takes a slot for the request. The end of the request releases it.
func (g *Gateway) enter(w *response, r *http.Request) (bool, error) {
	if err := w.Enter(); err != nil {
		return false, err
	}
	if r.ContentLength != 0 && g.front == nil {
		if r.ContentLength > maxBody {
			return false, errBody
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	w.Subject.Protocol = access.SiteProtocol
	return false, nil
}

// documents serves the documents that belong to no single protocol, the machine documents, and
// the errors of protocols for unknown paths.
func (g *Gateway) documents(w *response, r *http.Request) (bool, error) {
	inner := w.inner
	w.edition = g.server.Current()
	if done, err := g.site.Serve(w, r, inner, &w.Request); done || err != nil || inner == nil || g.site.Own(inner) {
		return done, err
	}
	// Without an origin, all paths except these two need a key, because even an error could reveal
	// whether a document exists.
	hidden := g.guarded && g.origin == nil && inner.URL.Path != "/" && inner.URL.Path != "/robots.txt"
	if hidden && g.server.KeyRequired(inner.URL.EscapedPath()) {
		if err := w.CheckKey(); err != nil {
			return false, err
		}
	}
	done, err := g.server.Answer(w, inner, &w.Request)
	if ed := g.server.Current(); w.edition == nil && ed != nil && !done && err == nil { // published meanwhile
		w.edition = ed
		done, err = g.server.Answer(w, inner, &w.Request)
	}
	if done || err != nil {
		return done, err
	}
	_, _, proto := g.server.RenderError(inner, http.StatusNotFound, nil)
	if proto != nil && proto.Guarded || proto == nil && hidden {
		// A client without a key must not learn which documents exist.
		if err := w.CheckKey(); err != nil {
			return false, err
		}
	}
	switch {
	case proto == nil:
		return false, nil
	case w.edition == nil:
		return false, errEarly
	}
	g.refuse(w, r, http.StatusNotFound, nil)
	return true, nil
}

// discovery serves well-known documents at the root of the host (RFC 8615).
func (g *Gateway) discovery(w *response, r *http.Request) (bool, error) {
	if w.inner != nil || !strings.HasPrefix(r.URL.Path, "/.well-known/") {
		return false, nil
	}
	return g.server.Discovery(w, r, &w.Request)
}

// own serves the site's own pages and files.
func (g *Gateway) own(w *response, r *http.Request) (bool, error) {
	if g.front != nil {
		w.Leave() // the proxy has its own limit
	}
	w.Record = access.Record{SitePage: true}
	if inner := basepath.Under(r, g.base); inner != nil {
		return true, g.pages.Serve(w, r, inner, w.edition, &w.Request)
	}
	if g.front != nil {
		g.front.Pass(w, r)
	}
	return g.front != nil, nil
}

func (g *Gateway) root(w *response, r *http.Request) (bool, error) {
	at := r.URL.EscapedPath()
	if at != "/" && at != g.base {
		return false, nil
	}
	w.Subject.Protocol, w.SitePage = access.SiteProtocol, false
	reply.Redirect(w, r, g.base+"/")
	return true, nil
}
