package edition

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
)

// Serve calls [Server.Answer] for a request without a key and without limits.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request) (bool, error) {
	return s.Answer(w, r, nil)
}

// maxLink is the maximum length in bytes of a Link field with the document's own URL, which may
// contain a long query. nginx refuses responses with more than 4 KiB of fields.
const maxLink = 1024

// Answer responds to a request for a document of the current edition. The path of r is relative to the
// endpoint base. Answer returns false and writes nothing if the document does not exist. It ignores
// a query that no protocol defines, as static hosts do. In that case, the Link field contains the
// document's own URL. If Answer returns an error, it has written nothing, unless the error wraps
// [ErrBroken]; [millrace.Status] returns the status for the error. If q is nil, the request has no
// key and no limits.
func (s *Server) Answer(w http.ResponseWriter, r *http.Request, q *access.Request) (bool, error) {
	ed := s.current.Load()
	if ed == nil {
		return s.Discovery(w, r, q)
	}
	e, err := s.lookUp(ed, r, q)
	if _, gone := ed.manifest.Gone[r.URL.Path]; gone && e == nil {
		return true, errGone
	}
	if e == nil {
		return false, err
	}
	bodies := keeper(s.cache)
	if e.large {
		bodies = nil
	}
	if full := ed.keyed[e.key]; full != nil && q.HasKey() {
		e = full
	}
	if keyOf(r.URL) != e.key && reads(r) && !e.variant() && !e.canonical() {
		own := millrace.Link{URL: strings.TrimSuffix(ed.View.Site().EndpointBase, "/") + e.key.target(), Rel: "canonical"}.String()
		if len(own) <= maxLink {
			w.Header()["Link"] = []string{own}
		}
	}
	return s.respond(w, r, e, bodies, q)
}

// Has reports whether Answer has a response to a request. It renders nothing. If only a costly
// lookup could tell, Has returns true without the lookup.
func (s *Server) Has(r *http.Request, q *access.Request) bool {
	ed := s.current.Load()
	if ed == nil {
		return false
	}
	for i := range s.protocols {
		if s.protocols[i].costly(r) {
			return true
		}
	}
	e, err := s.lookUp(ed, r, q)
	_, gone := ed.manifest.Gone[r.URL.Path]
	return e != nil || err != nil || gone
}

// Discovery responds to a request for a discovery document, even before the first edition. It returns
// false and writes nothing for other documents.
func (s *Server) Discovery(w http.ResponseWriter, r *http.Request, q *access.Request) (bool, error) {
	ed := s.current.Load()
	if ed == nil {
		head, err := (*s.publication.Load()).Head(r.Context())
		if err != nil {
			return false, nil //nolint:nilerr // there are no discovery documents yet
		}
		ed = &Edition{View: s.searchView(head)}
	}
	d, proto, err := s.ask(ed, withoutQuery(r), nil)
	if err != nil || d == nil || !d.Public || d.Variant != "" {
		return false, nil //nolint:nilerr // the request names no discovery document
	}
	e, err := prepare(d, proto.Guarded, ed.number, time.Now())
	if err != nil {
		return false, err
	}
	e.setSubject(&d.Subject, proto.Name)
	e.key = keyOf(r.URL)
	return s.respond(w, r, e, nil, q)
}

// respond checks the access to a document and responds with it.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, e *entry, bodies keeper, q *access.Request) (bool, error) {
	q.SetSubject(e.subject())
	if !e.public {
		if err := q.CheckContent(e.guarded); err != nil {
			return true, err
		}
	}
	return true, s.answer(w, r, e, s.base(), bodies, q)
}

// base returns the URL to which the paths of documents are relative, or "" before the first
// edition.
func (s *Server) base() string {
	if ed := s.current.Load(); ed != nil {
		return ed.View.Site().EndpointBase
	}
	return ""
}

// Document returns the subject of a request, and true if the target is, or recently was, a
// document of a protocol, or if a protocol handles the request. A document that shares the URL of
// a page of the site does not count. The path of r is relative to the endpoint base.
func (s *Server) Document(r *http.Request) (access.Subject, bool) {
	if h, _, _ := s.Handler(r); h != nil {
		return access.Subject{}, true
	}
	ed := s.current.Load()
	if ed == nil {
		return access.Subject{}, false
	}
	e, err := s.lookUp(ed, r, nil)
	if err != nil || e == nil || e.variant() {
		_, gone := ed.manifest.Gone[r.URL.Path]
		return access.Subject{}, gone
	}
	return e.subject(), true
}

// lookUp returns the document that a request names, or nil. It ignores a query that names no
// document. For methods other than GET and HEAD, it looks the path up without the query first,
// because the allowed methods do not depend on the query.
func (s *Server) lookUp(ed *Edition, r *http.Request, q *access.Request) (*entry, error) {
	if r.URL.RawQuery == "" {
		return s.at(ed, r, q)
	}
	first, second := r, withoutQuery(r)
	if !reads(r) {
		first, second = second, first
	}
	e, err := s.at(ed, first, q)
	if e != nil || err != nil {
		return e, err
	}
	e, err = s.at(ed, second, q)
	if e != nil && e.variant() {
		return nil, err // the URL is a page of the site, whose server evaluates the query
	}
	if t, may := targetOf(keyOf(r.URL), r); e != nil && e.shared && may && !s.Guarded() {
		ed.targets.add(t, e.key)
	}
	return e, err
}

// at returns the document with exactly the target of a request, or nil.
func (s *Server) at(ed *Edition, r *http.Request, q *access.Request) (*entry, error) {
	k := keyOf(r.URL)
	e := s.known(ed, k)
	if e != nil && (e.large || e.state.Load().number >= ed.number) {
		return e, nil
	}
	t, may := targetOf(k, r)
	if may && e == nil {
		of, known := ed.targets.get(t)
		if known && of == (key{}) {
			return nil, nil
		}
		if own := s.known(ed, of); known && own != nil && (own.large || own.state.Load().number >= ed.number) {
			return own, nil
		}
	}
	// Do not cache the absence of a document if a protocol is guarded, because the result then
	// depends on the key. Do not cache the absence for a query either, because work for a query
	// counts against a limit.
	none := may && e == nil && k.query == "" && !s.Guarded()
	e, err := s.find(ed, k, e, r, q)
	switch {
	case err != nil || e != nil && e.variant() && !reads(r):
		return nil, err
	case e == nil && none:
		ed.targets.add(t, key{})
	case e != nil && e.key != k && may && !s.Guarded():
		ed.targets.add(t, e.key)
	}
	return e, nil
}

// known returns the large or cached document of a key, or nil.
func (s *Server) known(ed *Edition, k key) *entry {
	if e := ed.large[k]; e != nil {
		return e
	}
	return s.cache.get(k)
}

// find looks a target up in the protocols. old is the entry of the target in an earlier
// edition, or nil.
func (s *Server) find(ed *Edition, k key, old *entry, r *http.Request, q *access.Request) (*entry, error) {
	d, proto, err := s.ask(ed, r, q)
	if err != nil || d == nil {
		if old != nil && err == nil {
			s.cache.remove(old)
		}
		return nil, err
	}
	e, err := prepare(d, proto.Guarded, ed.number, time.Now())
	if err != nil {
		return nil, err
	}
	e.setSubject(&d.Subject, proto.Name)
	e.signer = s.signer
	if d.Variant != "" {
		// The target belongs to another document, or to a page of the site.
		k = key{path: d.Path, raw: " " + d.Variant}
		old = s.cache.get(k)
	} else {
		// Cache the document once, under its own URL.
		if own := keyAt(d.Path); own != k {
			k, old = own, s.cache.get(own)
		}
		if !e.shared {
			e.key = k
			return e, nil
		}
	}
	if old != nil && old.same(e) {
		old.confirm(e.state.Load())
		return old, nil
	}
	e.key = k.clone()
	s.cache.intern(e)
	if old != nil {
		e.adopt(old)
	}
	return s.cache.put(e, old), nil
}

// ask returns the document of the first protocol that has one for the request, or nil. From a
// guarded protocol, a request without a valid key gets only discovery documents.
func (s *Server) ask(ed *Edition, r *http.Request, q *access.Request) (*millrace.Document, *Protocol, error) {
	for i := range s.protocols {
		proto := &s.protocols[i]
		req, denied := r, error(nil)
		if proto.Guarded {
			if denied = q.CheckKey(); denied != nil {
				req = withoutQuery(r)
			}
		}
		d, err := proto.find(r.Context(), ed.View, req, q)
		switch {
		case errors.Is(err, millrace.ErrNotFound) && !hasRequestError(err):
			continue
		case denied != nil && err == nil && d.Variant != "":
			continue // the site's own page needs no key
		case denied != nil && (err != nil || !d.Public):
			proto.setErrorSubject(q, false, nil)
			return nil, nil, denied
		case err != nil:
			proto.setErrorSubject(q, proto.costly(r), err)
			return nil, nil, fmt.Errorf("%s of %s: %w", r.URL.Path, proto.Name, err)
		case d.Large:
			// The edition serves large documents itself.
			return nil, nil, nil
		}
		return d, proto, nil
	}
	return nil, nil, nil
}

// hasRequestError reports whether an error contains a protocol's own response, such as 410. If so,
// the server does not ask other protocols.
func hasRequestError(err error) bool { return requestError(err) != nil }

// requestError returns the RequestError in an error, or nil.
func requestError(err error) *millrace.RequestError {
	reqErr, _ := errors.AsType[*millrace.RequestError](err)
	return reqErr
}

// find waits until the request has a turn, and looks a document up in the protocol.
func (proto *Protocol) find(ctx context.Context, v millrace.View, r *http.Request, q *access.Request) (*millrace.Document, error) {
	if proto.costly(r) {
		end, err := q.Search()
		if err != nil {
			return nil, err
		}
		defer end()
	} else if err := q.WaitTurn(); err != nil {
		return nil, err
	}
	return proto.Publisher.Find(ctx, v, r)
}

// costly reports whether finding a document is expensive.
func (proto *Protocol) costly(r *http.Request) bool {
	p, ok := proto.Publisher.(millrace.ErrorRenderer)
	return ok && r.URL.RawQuery != "" && p.Costly(r)
}
