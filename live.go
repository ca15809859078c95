package millrace

import (
	"context"
	"net/http"
)

// ErrorRenderer is an optional interface of a [Publisher] that answers queries and has its own
// error format.
type ErrorRenderer interface {
	// Costly reports whether Find is expensive for a request, such as a search. The server limits
	// the number of concurrent costly requests. The path of r is relative to the endpoint base.
	Costly(r *http.Request) bool
	// RenderError returns the header and body of the response to a failed request. ok is false if
	// the path does not belong to the protocol. err is the cause, or nil. Of an error, only the
	// text of a [RequestError] may appear in the body.
	RenderError(r *http.Request, status int, err error) (header http.Header, body []byte, ok bool)
}

// Handler is an optional interface of a [Publisher] that handles requests for something other
// than a document, such as a stream of events.
type Handler interface {
	// Scope returns the scope that a request needs. ok is false if Serve does not handle the
	// request. The path of r is relative to the endpoint base.
	Scope(r *http.Request) (s Scope, ok bool)
	// Serve handles a request that has the scope. If Serve returns an error, it has sent nothing.
	// For OPTIONS and for methods that are not allowed, it sets the Allow field and returns an
	// error. If the scope is revoked during the request, the context of the request ends with the
	// cause ErrForbidden.
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
	// View returns the newest published view. If no view is published, it returns ErrUnavailable.
	View() (View, error)
	// Wait blocks until the newest published view has a sequence number above after, and returns
	// the view. It fails when ctx ends. If the process is shutting down, it returns ErrUnavailable.
	Wait(ctx context.Context, after uint64) (View, error)
	// Update fetches the pages with the given URLs (absolute, or identities) from their source. If
	// gone is set, Update deletes the pages until the source has them again. When Update returns,
	// the changes are stored, and the next edition publishes them. If the source cannot fetch
	// single pages, as in a mirror, Update returns ErrUnavailable.
	Update(ctx context.Context, urls []string, gone bool) (Counts, error)
	// Annotate describes the requested content if the method and path do not identify it. Calls
	// after the end of the request have no effect.
	Annotate(s Subject)
}

// Subject describes the content of a response: one page, the result of a search, or a list of
// pages.
type Subject struct {
	Page         string // identity of the page. If empty, there is no page, or several.
	Continuation bool   // the response is a later part of a page that is sent in parts
	Search       bool   // the response is the result of a search
	Query        string // text of the search, if known
	PageCount    int64  // number of pages, changes or passages in the response. If zero, none or unknown.
	Public       bool   // the response is a discovery document, which leads to the other documents
}
