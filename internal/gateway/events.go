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
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/store"
)

// What is no room's is named for events by what it is.
const (
	pageRoom     = "html" // the site's own pages and files
	composedRoom = "site" // what is composed of all, and of no protocol alone
)

// what is what is known of a request for its event.
type what struct {
	of     edition.Subject
	size   int64 // of the body without coding; 0 = not known
	told   bool  // size and made are known
	made   bool  // the body was made for this request
	page   bool  // a page or file of the site was asked for; of.Page is its identity, if it is a page
	broken bool  // the answer broke off
	quiet  bool  // it is no visit: nothing is recorded
	// listens: how long it took is how long the client has listened.
	listens bool
}

// Of implements [edition.Gate].
func (w *response) Of(s edition.Subject) { w.what.of, w.what.page = s, false }

// Sends implements [edition.Gate].
func (w *response) Sends(size int64, made bool) {
	w.what.size, w.what.made, w.what.told = size, made, true
}

// its notes whose error an answer is, unless more is known.
func (w *response) its(room string) {
	if of := &w.what.of; of.Room == "" || of.Room == composedRoom {
		*of = edition.Subject{Room: room}
	}
}

// guess notes what a request was for that is turned away before anybody looks.
func (g *Gateway) guess(w *response, r *http.Request) {
	if !g.timed || g.press == nil {
		return
	}
	if inner := under(r, g.docs); inner != nil {
		if of, known := g.press.Known(inner); known {
			w.what.of = of
		} else if _, _, room := g.press.Refuse(inner, http.StatusForbidden, nil); room != nil {
			w.what.of = edition.Subject{Room: room.Name}
		}
	}
}

// composed notes that an answer was composed of what all have.
func (w *response) composed(size int) {
	w.what.size, w.what.made, w.what.told = int64(size), true, true
	w.what.of.Public, w.what.of.Found = w.what.of.Room == composedRoom, true
}

// hint is what a room that answers a request itself tells of it, from any of its
// goroutines.
type hint struct {
	mu   sync.Mutex
	said bool
	of   millrace.Subject
}

// Annotate implements [millrace.RequestAnnotator].
func (l live) Annotate(s millrace.Subject) {
	l.told.mu.Lock()
	defer l.told.mu.Unlock()
	l.told.said, l.told.of = true, s
}

// served notes what a request was that a room has answered itself.
func (w *response) served(told *hint, room string, scope millrace.Scope) {
	told.mu.Lock()
	defer told.mu.Unlock()
	of := edition.Subject{Subject: told.of, Room: room, Found: true}
	if !told.said {
		// To listen is to be told of many pages.
		of.Public = w.r.Method != http.MethodGet
	}
	w.what.of, w.what.made, w.what.told = of, true, true
	w.what.quiet = scope != millrace.ScopeRead // a report of changes reads no content
}

// signing is how many signatures are looked at when their requests have been
// answered, and signTime how long that may take for each.
const (
	signing  = 32
	signTime = 10 * time.Second
)

// event tells of an answer, if it was one to a machine, and counts it.
func (g *Gateway) event(w *response, r *http.Request) {
	if w.silent || w.what.quiet || g.o.Bots == nil && g.o.Metrics == nil {
		return
	}
	wait := false
	if !w.identified && g.o.Bots != nil {
		if w.name(); g.signed(r) {
			wait = true
		} else {
			w.locate()
		}
	}
	id := w.id
	if id.bot == nil && !wait && g.o.Metrics == nil || w.owned {
		return
	}
	e := g.outline(w, r)
	if g.o.Metrics != nil {
		g.o.Metrics.count(&e, family(id.bot), w.what.listens)
	}
	if g.o.Events == nil || id.bot == nil && !wait {
		return
	}
	g.complete(&e, w, r)
	if wait {
		// A signature may take a while, which no request has to wait for.
		select {
		case g.signatures <- struct{}{}:
			go g.later(e, r)
			return
		default: // many are looked at: nobody can tell of this one
			id.bot = cmp.Or(id.bot, bots.Other)
		}
	}
	by(&e, id)
	g.o.Events.Record(e)
}

// family gives who runs a machine, for metrics.
func family(b *bots.Bot) string {
	switch {
	case b == nil:
		return nobody
	case b.Family == "":
		return others
	}
	return label(b.Family)
}

// by notes who has asked.
func by(e *store.Event, id identity) {
	e.Bot, e.Family = id.bot.Token, id.bot.Family
	if e.Bot == "" {
		e.Bot = id.bot.Name
	}
	switch id.verdict {
	case bots.Verified:
		e.Identity = store.Verified
	case bots.Forged:
		e.Identity = store.Forged
	}
}

// outline gives what kind of request was answered, and how.
func (g *Gateway) outline(w *response, r *http.Request) store.Event {
	what := &w.what
	of := &what.of
	e := store.Event{Time: w.start, Protocol: of.Room, Status: w.status, Bytes: w.bytes, Took: time.Since(w.start)}
	switch {
	case what.broken:
		e.Status = 0
	case w.status == 0 && r.Context().Err() == nil:
		e.Status = http.StatusOK // the server writes an empty answer
	}
	switch {
	case what.page || e.Protocol == "":
		e.Protocol, e.Endpoint = pageRoom, store.EndpointFile
		kind := w.Header().Get("Content-Type")
		if of.Page != "" || isHTML(kind) || mayBePage(r.URL.Path) && (e.Status >= 300 || kind == "") {
			e.Endpoint = store.EndpointFetch
		}
	case of.Search:
		e.Endpoint = store.EndpointSearch
	case of.Public, of.Room == composedRoom:
		e.Endpoint = store.EndpointDiscovery
	case of.Page != "", !of.Found && store.OutcomeOf(e.Status) == store.Missing:
		e.Endpoint = store.EndpointFetch
	default:
		if e.Endpoint = store.EndpointIndex; isSitemap(r.URL.Path) {
			e.Protocol = composedRoom // every crawler asks for it: it says nothing of the room that writes it
		}
	}
	return e
}

// takesPlain reports whether a client takes no coding that is worth something.
func takesPlain(r *http.Request) bool {
	for _, v := range r.Header["Accept-Encoding"] {
		if strings.Contains(v, "gzip") || strings.Contains(v, "br") || strings.Contains(v, "zstd") || strings.Contains(v, "*") {
			return false
		}
	}
	return true
}

// isSitemap reports whether a path is that of an XML sitemap.
func isSitemap(name string) bool {
	name = path.Base(name)
	return strings.HasPrefix(name, "sitemap") && strings.HasSuffix(name, ".xml")
}

// complete adds to an outline what was asked for.
func (g *Gateway) complete(e *store.Event, w *response, r *http.Request) {
	what, base := &w.what, g.docs
	of := &what.of
	e.Query, e.Cached, e.Size = of.Query, what.told && !what.made, what.size
	if e.Protocol == pageRoom {
		base, e.Cached = g.base, false
		if !what.told && e.Status == http.StatusOK && w.Header()["Content-Encoding"] == nil {
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
		e.Received = -1 // its HTML would have come without coding, too
	}
	if of.Continuation {
		e.HTML = -1 // the page has been counted with its first part
	}
	stands := e.Status == http.StatusNotModified // with all that it names
	if (e.Status == http.StatusOK || stands) && r.Method != http.MethodHead || of.Search {
		e.Results = of.PageCount
	}
	if e.Path = of.Page; e.Path == "" {
		e.Path = r.URL.EscapedPath()
		if inner := under(r, base); inner != nil && e.Protocol != composedRoom {
			e.Path = inner.URL.EscapedPath()
		}
	}
	e.Path = shown(e.Path)
	if holdsKey(e.Query) {
		e.Query = "(a key)"
	}
	if intent := r.Header["X-Openfeeder-Intent"]; len(intent) > 0 && !holdsKey(intent[0]) {
		e.Intent = intent[0]
	}
}

// identityAt gives the identity that a page of the site has by the path and query
// of a request, relative to the base.
func (g *Gateway) identityAt(r *http.Request, query bool) string {
	name := r.URL.EscapedPath()
	if query && r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	base := strings.TrimSuffix(g.o.Base, "/")
	u, err := canon.URL(canon.Absolute(base, name))
	if err != nil {
		return name
	}
	return canon.Relative(base, u)
}

// signed reports whether a request has a signature to look at.
func (g *Gateway) signed(r *http.Request) bool {
	h := r.Header
	return g.o.Agents != nil && (h["Signature-Agent"] != nil || h["Signature"] != nil || h["Signature-Input"] != nil)
}

// later tells of an answer once the signature of its request has been looked at.
func (g *Gateway) later(e store.Event, r *http.Request) {
	defer func() { <-g.signatures }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), signTime)
	defer cancel()
	w := &response{g: g, r: r.WithContext(ctx)}
	if id := w.identify(); id.bot != nil {
		by(&e, id)
		g.o.Events.Record(e)
	}
}
