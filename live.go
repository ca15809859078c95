package millrace

import (
	"context"
	"net/http"
)

// ErrorRenderer is an optional interface of a [Publisher] that answers queries and has its own
// error format.
type ErrorRenderer interface {
	// Costly reports whether Find is expensive for a request, such as a search. The server
	// limits how many of these run at once. The path of r is relative to the endpoint base.
	Costly(r *http.Request) bool
	// RenderError returns the header and body of the response to a failed request. ok is false
	// if the path does not belong to the protocol. err is the cause, or nil. Only the text of
	// a [RequestError] may appear in the body.
	RenderError(r *http.Request, status int, err error) (header http.Header, body []byte, ok bool)
}

// Handler is an optional interface of a [Publisher] that answers requests for something other
// than a document, such as a stream of events.
type Handler interface {
	// Scope returns the scope that a request needs. ok is false if Serve does not handle the
	// request. The path of r is relative to the endpoint base.
	Scope(r *http.Request) (s Scope, ok bool)
	// Serve answers a request that has the scope. If Serve returns an error, it has sent nothing.
	// For a method that is not allowed, and for OPTIONS, it sets the Allow field and returns an
	// error. If the scope is revoked during the request, the request's context ends with the cause
	// ErrForbidden.
	Serve(w http.ResponseWriter, r *http.Request, live Live) error
}

// Scope is a permission of an access key.
type Scope string

// The scopes of a key.
const (
	ScopeRead   Scope = "read"   // read the content of every protocol
	ScopeUpdate Scope = "update" // report changes; always requires a key
)

// Live gives a [Handler] access to the site.
type Live interface {
	// View returns the newest published view. ErrUnavailable: none is published.
	View() (View, error)
	// Wait blocks until the newest published view has a sequence number above after, and
	// returns the view. It fails when ctx ends. ErrUnavailable: the process is shutting down.
	Wait(ctx context.Context, after uint64) (View, error)
	// Update fetches the pages with the given URLs (absolute, or identities) from their
	// source. If gone is set, Update deletes the pages until the source has them again. When
	// Update returns, the changes are stored; the next edition publishes them. ErrUnavailable:
	// the source cannot fetch single pages; a mirror cannot.
	Update(ctx context.Context, urls []string, gone bool) (Counts, error)
	// Annotate records what was requested, if the method and path do not identify it. Calls
	// after the end of the request have no effect.
	Annotate(s Subject)
}

// Subject describes the content of a response: one page, the result of a search, or a list of
// pages.
type Subject struct {
	Page         string // identity of the page; "" = no page, or several
	Continuation bool   // a later part of a page that is sent in parts
	Search       bool   // result of a search
	Query        string // search text, if known
	PageCount    int64  // number of pages, changes or passages in the response; 0 = none or unknown
	Public       bool   // discovery document, which leads to the other documents
}
