package edition

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
)

// ErrChanged is the error of [millrace.Document.Write] if the bytes no longer match the
// document's validator.
var ErrChanged = fmt.Errorf("%w: changed while it was read", millrace.ErrUnavailable)

// Page responds to a GET or HEAD for a page of the site itself, like [Server.Answer] and from the same
// cache. name and variant identify the page, and state identifies its content. Page calls document
// if the cache does not have the page in this state, or if state is empty.
func (s *Server) Page(w http.ResponseWriter, r *http.Request, q *access.Request, name, variant, state string, document func() (*millrace.Document, error)) error {
	const attempts = 3
	var err error
	for range attempts {
		var e *entry
		if e, err = s.page(key{path: name, raw: " page", query: variant}, state, document); err != nil {
			return err
		}
		if err = s.answerPage(w, r, e, q); !errors.Is(err, ErrChanged) {
			return err
		}
		s.cache.remove(e)
	}
	return err
}

// CachedPage acts like [Server.Page] for a cached page. It returns false and writes nothing if the
// cache does not contain the page in this state.
func (s *Server) CachedPage(w http.ResponseWriter, r *http.Request, q *access.Request, name, variant, state string) (bool, error) {
	e := s.cache.get(key{path: name, raw: " page", query: variant})
	if e == nil || state == "" || e.state.Load().pageState != state {
		return false, nil
	}
	err := s.answerPage(w, r, e, q)
	return !errors.Is(err, ErrChanged), err
}

// answerPage responds with a page. The path of r is that of the page's URL.
func (s *Server) answerPage(w http.ResponseWriter, r *http.Request, e *entry, q *access.Request) error {
	scheme, _, _ := strings.Cut(s.base(), "://")
	return s.answer(w, r, e, scheme+"://"+r.Host, s.cache, q)
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
	e.shared = true // the key contains the values of the fields in Vary
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

// CacheBody stores a body in the response cache under a name and a variant, and replaces an earlier
// body. It ignores a body that is too large for the cache. state identifies the content. The caller
// must not modify body.
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

// CachedBody returns the state and the body of the last [Server.CacheBody], if they are
// still in the cache. Otherwise it returns zero values.
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
