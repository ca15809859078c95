package edition

import (
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
)

// extraSubject contains the fields of a subject that few documents set.
type extraSubject struct {
	query        string
	pageCount    int64
	continuation bool
}

// setSubject sets the protocol and the subject of the entry, except its page.
func (e *entry) setSubject(s *millrace.Subject, proto string) {
	e.proto = proto
	if s.Query != "" || s.PageCount > 0 || s.Continuation {
		// Clone the query, which may be a substring of a long string.
		e.extra = &extraSubject{strings.Clone(s.Query), s.PageCount, s.Continuation}
	}
}

// subject returns the subject of the entry.
func (e *entry) subject() access.Subject {
	s := access.Subject{Subject: millrace.Subject{Page: e.page, Public: e.public}, Protocol: e.proto, Found: true}
	if a := e.extra; a != nil {
		s.Query, s.PageCount, s.Search, s.Continuation = a.query, a.pageCount, a.query != "", a.continuation
	}
	return s
}

// KnownSubject returns the subject of a request if the cache or the edition contains its document. It
// never asks the protocols. The path of r is relative to the endpoint base.
func (s *Server) KnownSubject(r *http.Request) (access.Subject, bool) {
	ed := s.current.Load()
	if ed == nil {
		return access.Subject{}, false
	}
	e := s.known(ed, keyOf(r.URL))
	if e == nil {
		return access.Subject{}, false
	}
	return e.subject(), true
}

// setErrorSubject sets the protocol and the page of an error response.
func (proto *Protocol) setErrorSubject(q *access.Request, search bool, err error) {
	s := access.Subject{Subject: millrace.Subject{Search: search}, Protocol: proto.Name}
	if reqErr := requestError(err); reqErr != nil {
		s.Page = reqErr.Page
	}
	q.SetSubject(s)
}
