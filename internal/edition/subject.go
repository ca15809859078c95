package edition

import (
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
)

// aside is what few documents have to say of themselves.
type extraSubject struct {
	query        string
	pageCount    int64
	continuation bool
}

// about notes what a document of a protocol is of, beside the page.
func (e *entry) setSubject(s *millrace.Subject, proto string) {
	e.proto = proto
	if s.Query != "" || s.PageCount > 0 || s.Continuation {
		// A question may be a part of a long request.
		e.extra = &extraSubject{strings.Clone(s.Query), s.PageCount, s.Continuation}
	}
}

// subject gives what the entry is of.
func (e *entry) subject() access.Subject {
	s := access.Subject{Subject: millrace.Subject{Page: e.page, Public: e.public}, Protocol: e.proto, Found: true}
	if a := e.extra; a != nil {
		s.Query, s.PageCount, s.Search, s.Continuation = a.query, a.pageCount, a.query != "", a.continuation
	}
	return s
}

// Known gives what a request is for, as far as that is known without looking it
// up: false for what nobody has asked for of late. The path of r is relative to
// the documents' base.
func (s *Server) Known(r *http.Request) (access.Subject, bool) {
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

// failed tells whose error an answer is.
func (proto *Protocol) setErrorSubject(q *access.Request, search bool, err error) {
	s := access.Subject{Subject: millrace.Subject{Search: search}, Protocol: proto.Name}
	if said := requestError(err); said != nil {
		s.Page = said.Page
	}
	q.About(s)
}
