package edition

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace"
)

// Serve is Answer for a request that has no key, and without limits.
func (p *Press) Serve(w http.ResponseWriter, r *http.Request) (bool, error) {
	return p.Answer(w, r, nil)
}

// errMethod is the answer to a request for a document by another method than
// those of allow.
var errMethod = &millrace.RequestError{
	Status: http.StatusMethodNotAllowed, Text: "documents are read with GET and HEAD",
}

// Answer answers a request for a document of the current edition; the path of r
// is relative to the documents' base. It reports false, with nothing answered,
// when there is no such document. An error means that nothing has been
// answered, unless it wraps [ErrBroken]; [millrace.Status] gives its status.
// gate may be nil: then nobody has a key, and nothing is limited.
func (p *Press) Answer(w http.ResponseWriter, r *http.Request, gate Gate) (bool, error) {
	ed := p.current.Load()
	if ed == nil {
		return false, nil
	}
	k := keyOf(r.URL)
	e, bodies := ed.large[k], keeper(nil)
	if e == nil {
		bodies = p.cache
		if e = p.cache.get(k); e == nil || e.standing.Load().number < ed.number {
			// Of guarded rooms, what is there depends on who asks.
			t, may := targetOf(k, r)
			if may = may && e == nil && !p.Guarded(); may && ed.absent.has(t) {
				return false, nil
			}
			var err error
			if e, err = p.find(ed, k, e, r, gate); e == nil {
				if may && err == nil {
					ed.absent.add(t)
				}
				return false, err
			}
		}
	}
	if full := ed.keyed[k]; full != nil && gate != nil && gate.Brings() {
		e = full
	}
	if gate != nil {
		gate.Of(e.subject())
	}
	if !e.public {
		if err := e.admit(gate); err != nil {
			return true, err
		}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true, e.respond(w, r, &p.enc, bodies, gate)
	}
	w.Header().Set("Allow", allow)
	return true, errMethod
}

func (e *entry) admit(gate Gate) error {
	switch {
	case gate != nil:
		return gate.Content(e.guarded)
	case e.guarded:
		return errGuarded
	}
	return nil
}

// find asks the rooms for a target. old is the entry that an earlier edition
// had there, or nil.
func (p *Press) find(ed *Edition, k key, old *entry, r *http.Request, gate Gate) (*entry, error) {
	d, room, err := p.ask(ed, r, gate)
	if err != nil || d == nil {
		if old != nil && err == nil {
			p.cache.remove(old)
		}
		return nil, err
	}
	e, err := prepare(d, room.Guarded, ed.number, time.Now())
	if err != nil {
		return nil, err
	}
	e.about(d, room.Name)
	e.signer = p.sign
	if d.Variant != "" {
		// The target is that of another document, or of the site's own page.
		k = key{path: d.Path, raw: " " + d.Variant}
		old = p.cache.get(k)
	} else if !e.shared || room.Guarded && e.public && r.URL.RawQuery != "" {
		// The latter was found without the query.
		e.key = k
		return e, nil
	}
	if old != nil && old.same(e) {
		old.confirm(e.standing.Load())
		return old, nil
	}
	e.key = k.clone()
	p.cache.intern(e)
	if old != nil {
		e.adopt(old)
	}
	return p.cache.put(e, old), nil
}

// ask gives the first room's document, nil if no room has one. Those who may
// not read a guarded room hear of it whether a path is discovery, and nothing
// else.
func (p *Press) ask(ed *Edition, r *http.Request, gate Gate) (*millrace.Document, *Room, error) {
	for i := range p.rooms {
		room := &p.rooms[i]
		req, denied := r, error(nil)
		if room.Guarded {
			if denied = hasKey(gate); denied != nil {
				req = withoutQuery(r)
			}
		}
		d, err := room.find(r.Context(), ed.View, req, gate)
		switch {
		case errors.Is(err, millrace.ErrNotFound) && !said(err):
			continue
		case denied != nil && err == nil && d.Variant != "":
			continue // whoever may not have it has the page
		case denied != nil && (err != nil || !d.Public):
			room.failed(gate, false, nil)
			return nil, nil, denied
		case err != nil:
			room.failed(gate, room.works(r), err)
			return nil, nil, fmt.Errorf("%s of %s: %w", r.URL.Path, room.Name, err)
		case d.Large:
			// A large document is served from the edition or not at all.
			return nil, nil, nil
		}
		return d, room, nil
	}
	return nil, nil, nil
}

// said reports whether a room has words of its own for what is wrong, as for
// what is gone: then nobody else is asked.
func said(err error) bool { return requestError(err) != nil }

// requestError gives what an error says to whoever asked, nil if it says nothing.
func requestError(err error) *millrace.RequestError {
	said, _ := errors.AsType[*millrace.RequestError](err)
	return said
}

// find looks a document up, which may take work.
func (room *Room) find(ctx context.Context, v millrace.View, r *http.Request, gate Gate) (*millrace.Document, error) {
	if gate != nil && room.works(r) {
		end, err := gate.Work()
		if err != nil {
			return nil, err
		}
		defer end()
	}
	return room.Publisher.Find(ctx, v, r)
}

// works reports whether finding a document may be work: what a query of the
// protocol's own names, unless the room knows better.
func (room *Room) works(r *http.Request) bool {
	if r.URL.RawQuery == "" {
		return false
	}
	if w, ok := room.Publisher.(millrace.Worker); ok {
		return w.Works(r)
	}
	f, ok := room.Publisher.(millrace.Refuser)
	if !ok {
		return false
	}
	_, _, its := f.Refuse(r, http.StatusTooManyRequests, nil)
	return its
}
