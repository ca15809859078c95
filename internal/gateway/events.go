package gateway

import (
	"cmp"
	"context"
	"net/http"
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
	if g.o.Events == nil || g.press == nil {
		return
	}
	if inner := under(r, g.docs); inner != nil {
		if of, known := g.press.Known(inner); known {
			w.what.of = of
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

// Tell implements [millrace.Teller].
func (l live) Tell(s millrace.Subject) {
	l.told.mu.Lock()
	defer l.told.mu.Unlock()
	l.told.said, l.told.of = true, s
}

// served notes what a request was that a room has answered itself.
func (w *response) served(told *hint, room string, right millrace.Right) {
	told.mu.Lock()
	defer told.mu.Unlock()
	of := edition.Subject{Subject: told.of, Room: room, Found: true}
	if !told.said {
		// To listen is to be told of many pages.
		of.Public = w.r.Method != http.MethodGet
	}
	w.what.of, w.what.made, w.what.told = of, true, true
	w.what.quiet = right != millrace.RightRead // whoever tells of changes reads nothing
}

// signing is how many signatures are looked at when their requests have been
// answered, and signTime how long that may take for each.
const (
	signing  = 32
	signTime = 10 * time.Second
)

// event tells of an answer, if it was one to a machine.
func (g *Gateway) event(w *response, r *http.Request) {
	if w.silent || w.what.quiet || g.o.Bots == nil {
		return
	}
	if !w.identified && g.signed(r) {
		// A signature may take a while, which no request has to wait for.
		e := g.eventOf(w, r)
		select {
		case g.signatures <- struct{}{}:
			go g.later(e, r)
			return
		default: // many are looked at: nobody can tell of this one
			w.identified, w.id.bot = true, cmp.Or(g.o.Bots.Identify(r.UserAgent()), bots.Other)
		}
	}
	id := w.identify()
	if id.bot == nil || isInside(r.Context()) {
		return
	}
	e := g.eventOf(w, r)
	by(&e, id)
	g.o.Events.Record(e)
}

// by notes who has asked.
func by(e *store.Event, id identity) {
	e.Bot, e.Family = id.bot.Token, id.bot.Family
	if e.Bot == "" {
		e.Bot = id.bot.Name
	}
	switch id.verdict {
	case bots.Verified:
		e.Verdict = store.Verified
	case bots.Forged:
		e.Verdict = store.Forged
	}
}

// eventOf gives the event of an answer, but for who has asked.
func (g *Gateway) eventOf(w *response, r *http.Request) store.Event {
	what := &w.what
	e := store.Event{
		Time: w.start, Protocol: what.of.Room, Query: what.of.Query, Status: w.status, Bytes: w.bytes,
		Took: time.Since(w.start), Cached: what.told && !what.made, Size: what.size,
	}
	switch {
	case what.broken:
		e.Status = 0
	case w.status == 0 && r.Context().Err() == nil:
		e.Status = http.StatusOK // the server writes an empty answer
	}
	if e.Status == http.StatusNotModified {
		e.Cached, e.Size = true, 0
	}
	if holdsKey(e.Query) {
		e.Query = "(a key)"
	}
	if intent := r.Header["X-Openfeeder-Intent"]; len(intent) > 0 && !holdsKey(intent[0]) {
		e.Intent = intent[0]
	}
	if what.page || e.Protocol == "" {
		g.ofPage(&e, w, r)
		return e
	}
	of := &what.of
	switch {
	case of.Search:
		e.Endpoint = store.EndpointSearch
	case of.Public, of.Room == composedRoom:
		e.Endpoint = store.EndpointDiscovery
	case of.Page != "", !of.Found && store.OutcomeOf(e.Status) == store.Missing:
		e.Endpoint = store.EndpointFetch
	default:
		e.Endpoint = store.EndpointIndex
	}
	if of.Rest {
		e.HTML = -1 // the page has been counted with its first part
	}
	if e.Status == http.StatusOK && r.Method != http.MethodHead || of.Search {
		e.Results = of.Names
	}
	switch e.Path = of.Page; {
	case e.Path != "":
	case of.Room == composedRoom:
		e.Path = r.URL.EscapedPath()
	default:
		e.Path = r.URL.EscapedPath()
		if inner := under(r, g.docs); inner != nil {
			e.Path = inner.URL.EscapedPath()
		}
	}
	e.Path = shown(e.Path)
	return e
}

// ofPage completes the event of a request for a page or file of the site's own,
// or for what nobody has.
func (g *Gateway) ofPage(e *store.Event, w *response, r *http.Request) {
	h := w.Header()
	e.Protocol, e.Endpoint, e.Cached = pageRoom, store.EndpointFile, e.Status == http.StatusNotModified
	switch kind := h.Get("Content-Type"); {
	case w.what.of.Page != "", isHTML(kind), mayBePage(r.URL.Path) && (e.Status >= 300 || kind == ""):
		e.Endpoint = store.EndpointFetch
	}
	if e.Size = 0; e.Status == http.StatusOK && h["Content-Encoding"] == nil {
		e.Size = e.Bytes
	}
	if e.Path = w.what.of.Page; e.Path == "" {
		e.Path = r.URL.EscapedPath()
		if inner := under(r, g.base); inner != nil {
			e.Path = inner.URL.EscapedPath()
		}
	}
	e.Path = shown(e.Path)
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
	if id := w.identify(); id.bot != nil && !isInside(ctx) {
		by(&e, id)
		g.o.Events.Record(e)
	}
}
