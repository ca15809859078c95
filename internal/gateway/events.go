package gateway

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/store"
)

// pageProtocol is the protocol of the site's own pages and files in events.
const pageProtocol = "html"

// guess sets the probable subject of a request that is refused before its document is looked up.
func (g *Gateway) guess(w *response, r *http.Request) {
	if !g.timed || g.server == nil {
		return
	}
	if inner := basepath.Under(r, g.endpointBase); inner != nil {
		if of, known := g.server.KnownSubject(inner); known {
			w.Subject = of
		} else if _, _, proto := g.server.RenderError(inner, http.StatusForbidden, nil); proto != nil {
			w.Subject = access.Subject{Protocol: proto.Name}
		}
	}
}

// setErrorProtocol sets the protocol of an error response if none, or only access.SiteProtocol, is
// set.
func (w *response) setErrorProtocol(name string) {
	if w.Subject.Protocol == "" || w.Subject.Protocol == access.SiteProtocol {
		w.Subject = access.Subject{Protocol: name}
	}
}

// annotations holds the subject that a protocol sets for its request. It is safe for
// concurrent use.
type annotations struct {
	mu      sync.Mutex
	set     bool
	subject millrace.Subject
}

// Annotate implements [millrace.Live].
func (l live) Annotate(s millrace.Subject) {
	l.annotations.mu.Lock()
	defer l.annotations.mu.Unlock()
	l.annotations.set, l.annotations.subject = true, s
}

// served sets the subject of a request that a protocol has handled.
func (w *response) served(a *annotations, proto string, scope millrace.Scope) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := access.Subject{Subject: a.subject, Protocol: proto, Found: true}
	if !a.set {
		// A GET is a stream about many pages. Count other requests as discovery.
		of.Public = w.r.Method != http.MethodGet
	}
	w.Subject, w.Rendered, w.SizeKnown = of, true, true
	w.Unrecorded = scope != millrace.ScopeRead // a request that announces changes does not read content
}

// signing is the number of signatures that are verified concurrently after their responses, and
// signTime is the time limit of each.
const (
	signing  = 32
	signTime = 10 * time.Second
)

// event counts a response, and records it if the client is a bot. It ignores the owner's own
// requests.
func (g *Gateway) event(w *response, r *http.Request) {
	if w.silent || w.Unrecorded || g.o.Access.Bots == nil && g.o.Metrics == nil || w.fromNearby(r) {
		return
	}
	id, wait := w.Identity()
	if id.Bot == nil && !wait && g.o.Metrics == nil || w.Owned {
		return
	}
	e := g.outline(w, r)
	if g.o.Metrics != nil {
		g.o.Metrics.count(&e, family(id.Bot), w.Listens)
	}
	if g.o.Events == nil || id.Bot == nil && !wait {
		return
	}
	g.complete(&e, w, r)
	if wait {
		// Verify the signature in the background, because that may take several seconds.
		select {
		case g.signatures <- struct{}{}:
			go g.later(e, r)
			return
		default: // too many are being verified; leave the identity unknown
			id.Bot = cmp.Or(id.Bot, bots.Other)
		}
	}
	by(&e, id)
	g.o.Events.Record(e)
}

// family returns the operator of a bot, for metrics.
func family(b *bots.Bot) string {
	switch {
	case b == nil:
		return noBot
	case b.Family == "":
		return others
	}
	return label(b.Family)
}

// by sets the fields of an event that describe the client.
func by(e *store.Event, id access.Identity) {
	e.Bot, e.Family = id.Bot.Token, id.Bot.Family
	if e.Bot == "" {
		e.Bot = id.Bot.Name
	}
	switch id.Identification {
	case bots.Verified:
		e.Identity = store.Verified
	case bots.Forged:
		e.Identity = store.Forged
	}
}

// outline returns the event for a response, with the fields that metrics need.
func (g *Gateway) outline(w *response, r *http.Request) store.Event {
	of := &w.Subject
	e := store.Event{Time: w.start, Protocol: of.Protocol, Status: w.status, Bytes: w.bytes, Took: time.Since(w.start)}
	switch {
	case w.Broken:
		e.Status = 0
	case w.status == 0 && r.Context().Err() == nil:
		e.Status = http.StatusOK // net/http sends 200 if the handler sets no status
	}
	switch {
	case w.SitePage || e.Protocol == "":
		e.Protocol, e.Endpoint = pageProtocol, store.EndpointFile
		kind := w.Header().Get("Content-Type")
		if of.Page != "" || proxy.IsHTML(kind) || proxy.MayBePage(r.URL.Path) && (e.Status >= 300 || kind == "") {
			e.Endpoint = store.EndpointFetch
		}
	case of.Search:
		e.Endpoint = store.EndpointSearch
	case of.Public, of.Protocol == access.SiteProtocol:
		e.Endpoint = store.EndpointDiscovery
	case of.Page != "", !of.Found && store.OutcomeOf(e.Status) == store.Missing:
		e.Endpoint = store.EndpointFetch
	default:
		if e.Endpoint = store.EndpointIndex; isSitemap(r.URL.Path) {
			e.Protocol = access.SiteProtocol // every crawler fetches this document, so it does not count for the protocol that publishes it
		}
	}
	return e
}

// takesPlain reports whether a client accepts no compression.
func takesPlain(r *http.Request) bool {
	for _, v := range r.Header["Accept-Encoding"] {
		if strings.Contains(v, "gzip") || strings.Contains(v, "br") || strings.Contains(v, "zstd") || strings.Contains(v, "*") {
			return false
		}
	}
	return true
}

// isSitemap reports whether a path names an XML sitemap.
func isSitemap(name string) bool {
	name = path.Base(name)
	return strings.HasPrefix(name, "sitemap") && strings.HasSuffix(name, ".xml")
}

// complete adds the fields that metrics do not need, such as the path and the sizes.
func (g *Gateway) complete(e *store.Event, w *response, r *http.Request) {
	of, base := &w.Subject, g.endpointBase
	e.Query, e.Cached, e.Size = of.Query, w.SizeKnown && !w.Rendered, w.Size
	if e.Protocol == pageProtocol {
		base, e.Cached = g.base, false
		if !w.SizeKnown && e.Status == http.StatusOK && w.Header()["Content-Encoding"] == nil {
			e.Size = e.Bytes
		}
	}
	switch {
	case e.Status == http.StatusNotModified:
		e.Cached, e.Size = true, 0
	case e.Bytes == 0:
		e.Size = 0
	case e.Status == http.StatusPartialContent && w.Header()["Content-Encoding"] == nil:
		e.Size = e.Bytes
	}
	if of.Page != "" && takesPlain(r) {
		e.Received = -1 // the client would also have received the HTML uncompressed
	}
	if of.Continuation {
		e.HTML = -1 // the page was counted with its first part
	}
	notModified := e.Status == http.StatusNotModified // the client has the current version
	if (e.Status == http.StatusOK || notModified) && r.Method != http.MethodHead || of.Search {
		e.Results = of.PageCount
	}
	if e.Path = of.Page; e.Path == "" {
		e.Path = r.URL.EscapedPath()
		if inner := basepath.Under(r, base); inner != nil && e.Protocol != access.SiteProtocol {
			e.Path = inner.URL.EscapedPath()
		}
	}
	e.Path = access.Redact(e.Path)
	if access.HoldsKey(e.Query) {
		e.Query = "(a key)"
	}
	if intent := r.Header["X-Openfeeder-Intent"]; len(intent) > 0 && !access.HoldsKey(intent[0]) {
		e.Intent = intent[0]
	}
}

// later verifies the signature of a request, and records its event if the client is a bot.
func (g *Gateway) later(e store.Event, r *http.Request) {
	defer func() { <-g.signatures }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), signTime)
	defer cancel()
	q := g.guard.Request(r.WithContext(ctx))
	if id := q.Verify(); id.Bot != nil {
		by(&e, id)
		g.o.Events.Record(e)
	}
}
