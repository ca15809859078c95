package edition

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace"
)

// Serve answers a request for a document of the current edition; the path of r
// is relative to the documents' base. It reports false, with nothing answered,
// when there is no such document. An error means that nothing has been
// answered, unless it wraps [ErrBroken]; [millrace.Status] gives its status.
func (p *Press) Serve(w http.ResponseWriter, r *http.Request) (bool, error) {
	ed := p.current.Load()
	if ed == nil {
		return false, nil
	}
	k := keyOf(r.URL)
	if e := ed.large[k]; e != nil {
		return true, e.respond(w, r, &p.enc, nil)
	}
	e := p.cache.get(k)
	if e == nil || e.standing.Load().number < ed.number {
		var err error
		if e, err = p.find(ed, k, e, r); e == nil {
			return false, err
		}
	}
	return true, e.respond(w, r, &p.enc, p.cache)
}

// find asks the rooms for a target. old is the entry that an earlier edition
// had there, or nil.
func (p *Press) find(ed *Edition, k key, old *entry, r *http.Request) (*entry, error) {
	d, err := p.ask(ed, r)
	if err != nil || d == nil {
		if old != nil && err == nil {
			p.cache.remove(old)
		}
		return nil, err
	}
	e, err := prepare(d, ed.number, time.Now())
	if err != nil {
		return nil, err
	}
	if !e.shared {
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

// ask gives the first room's document, nil if no room has one.
func (p *Press) ask(ed *Edition, r *http.Request) (*millrace.Document, error) {
	for _, room := range p.rooms {
		d, err := room.Publisher.Find(r.Context(), ed.View, r)
		switch {
		case errors.Is(err, millrace.ErrNotFound):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s of %s: %w", r.URL.Path, room.Name, err)
		case d.Large:
			// A large document is served from the edition or not at all.
			return nil, nil
		}
		return d, nil
	}
	return nil, nil
}
