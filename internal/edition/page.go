package edition

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
)

// ErrChanged is the error of [millrace.Document.Write] when the bytes are no longer
// those of the document's validator.
var ErrChanged = fmt.Errorf("%w: changed while it was read", millrace.ErrUnavailable)

// Page answers a GET or HEAD for a page of the site itself as [Server.Answer] answers
// one for a document, from the same cache. name and variant name the page, and
// state what it is made of: document is called if the cache has the page in another
// state, or if state is "".
func (s *Server) Page(w http.ResponseWriter, r *http.Request, q *access.Request, name, variant, state string, document func() (*millrace.Document, error)) error {
	const attempts = 3
	var err error
	for range attempts {
		var e *entry
		if e, err = s.page(key{path: name, raw: " page", query: variant}, state, document); err != nil {
			return err
		}
		if err = e.respond(w, r, &s.enc, s.cache, q); !errors.Is(err, ErrChanged) {
			return err
		}
		s.cache.remove(e)
	}
	return err
}

// Prepared is [Server.Page] for a page that the cache has in this state. It reports
// false, with nothing answered, if it does not.
func (s *Server) Prepared(w http.ResponseWriter, r *http.Request, q *access.Request, name, variant, state string) (bool, error) {
	e := s.cache.get(key{path: name, raw: " page", query: variant})
	if e == nil || state == "" || e.state.Load().pageState != state {
		return false, nil
	}
	err := e.respond(w, r, &s.enc, s.cache, q)
	return !errors.Is(err, ErrChanged), err
}

// page returns the entry of a page of the site itself.
func (s *Server) page(k key, state string, document func() (*millrace.Document, error)) (*entry, error) {
	old := s.cache.get(k)
	if old != nil && state != "" && old.state.Load().pageState == state {
		return old, nil
	}
	d, err := document()
	if err != nil {
		return nil, err
	}
	e, err := prepare(d, false, 0, time.Now())
	if err != nil {
		return nil, err
	}
	e.private, e.shape.all = true, slices.DeleteFunc(e.shape.all, cors)
	e.state.Store(&entryState{write: d.Write, pageState: state})
	if old != nil && old.same(e) {
		old.state.Store(e.state.Load())
		return old, nil
	}
	e.key = k.clone()
	s.cache.intern(e)
	if old != nil {
		e.adopt(old)
	}
	return s.cache.put(e, old), nil
}

// Keep stores a body in the response cache under a name, in place of the one that
// was there. state says what the body was made of. The caller must not change body.
func (s *Server) CacheBody(name, variant, state string, body []byte) {
	if int64(len(body)) > s.cache.limit/4 {
		return
	}
	k := key{path: name, raw: " body", query: variant}
	e := &entry{key: k.clone(), shape: new(shape)}
	e.state.Store(&entryState{pageState: state})
	if body != nil {
		e.reps[identity].Store(&rep{body: body, size: int64(len(body))})
	}
	s.cache.put(e, s.cache.get(k))
}

// Kept returns what [Server.Keep] has stored last, as far as the cache still has it.
func (s *Server) CachedBody(name, variant string) (state string, body []byte) {
	e := s.cache.get(key{path: name, raw: " body", query: variant})
	if e == nil {
		return "", nil
	}
	if r := e.reps[identity].Load(); r != nil {
		e.touch(1 << identity)
		body = r.body
	}
	return e.state.Load().pageState, body
}
