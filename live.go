package millrace

import (
	"context"
	"net/http"
)

// ErrorRenderer is an optional interface of a [Publisher] whose protocol answers
// queries, and has its own form of errors.
type ErrorRenderer interface {
	// Costly reports whether Find is expensive for a request, such as a search. Few
	// of them run at once. The path of r is relative to the endpoint base.
	Costly(r *http.Request) bool
	// RenderError returns header and body of the response to a request that
	// failed with a status. ok is false if the path is not the protocol's. err is
	// the cause, or nil. Only the text of a [RequestError] may appear in the body.
	RenderError(r *http.Request, status int, err error) (header http.Header, body []byte, ok bool)
}

// Handler is an optional interface of a [Publisher] that answers requests which
// name no document, such as one for a stream of events.
type Handler interface {
	// Scope returns the scope that a request needs. ok is false if Serve does not
	// answer it. The path of r is relative to the endpoint base.
	Scope(r *http.Request) (s Scope, ok bool)
	// Serve answers a request that has the scope. If it returns an error, it has
	// sent nothing. The error of a wrong method comes with the field Allow, which
	// also answers an OPTIONS. If the scope is revoked meanwhile, the context of
	// the request ends with the cause ErrForbidden.
	Serve(w http.ResponseWriter, r *http.Request, live Live) error
}

// Scope is what a key allows.
type Scope string

// The scopes of a key.
const (
	ScopeRead   Scope = "read"   // read the content of every protocol
	ScopeUpdate Scope = "update" // report changes; always needs a key
)

// Live gives a [Handler] access to the site.
type Live interface {
	// View returns the newest published view. ErrUnavailable: none is published.
	View() (View, error)
	// Wait returns the newest published view as soon as its sequence number is
	// above after. It fails when the context ends, and with ErrUnavailable when
	// the process is about to end.
	Wait(ctx context.Context, after uint64) (View, error)
	// Update fetches the pages with the given URLs (absolute, or identities) from
	// their source now. With gone, it deletes them until the source has them again.
	// The changes are in the store when Update returns, and in the next edition.
	// ErrUnavailable: the source cannot be asked for single pages, as with a mirror.
	Update(ctx context.Context, urls []string, gone bool) (Counts, error)
	// Annotate records what the request was for, if its method and path do not say.
	// Calls after the end of the request have no effect.
	Annotate(s Subject)
}

// Subject is what a response contains: one page, the result of a search, or a
// list of pages.
type Subject struct {
	Page         string // identity of the page; "" = none, or several
	Continuation bool   // a later part of a page that comes in parts
	Search       bool   // it answers a question
	Query        string // the question, if known
	PageCount    int64  // number of pages, changes or passages that it names; 0 = none or unknown
	Public       bool   // a discovery document: it leads to the others
}
