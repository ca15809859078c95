package millrace

import (
	"context"
	"net/http"
)

// Refuser is a [Publisher] whose protocol has a form of its own for errors. It
// is found by assertion.
type Refuser interface {
	// Refuse gives header and body of an error's response to a request for a
	// path of the protocol's; false when the path is not the protocol's. err
	// says why, nil when there is nothing to say but the status; what it says
	// of the inside must not be in the body, unless it is a [RequestError].
	Refuse(r *http.Request, status int, err error) (header http.Header, body []byte, ok bool)
}

// Worker is a [Publisher] that says which documents are work to find, as those
// of a search are: few are looked for at once. It is found by assertion; of a
// [Refuser] that is none, whatever has a query is work.
type Worker interface {
	// Works reports whether Find works for a request. The path of r is relative
	// to the documents' base.
	Works(r *http.Request) bool
}

// Server is a [Publisher] that answers requests which name no document, such
// as one for a stream of events. It is found by assertion.
type Server interface {
	// Right says what a request is allowed by, if it is one that Serve answers;
	// ok is false for others. The path of r is relative to the documents' base.
	Right(r *http.Request) (right Right, ok bool)
	// Serve answers a request that has the right. An error means that nothing
	// has been answered yet; the error of a method comes with the field Allow, by
	// which an OPTIONS is answered. The request's context ends with the cause
	// ErrForbidden when the right is taken away meanwhile.
	Serve(w http.ResponseWriter, r *http.Request, live Live) error
}

// Right is what a key can allow.
type Right string

// The rights of a key.
const (
	RightRead   Right = "read"   // the content of every protocol
	RightUpdate Right = "update" // to say what has changed; nobody has it without a key
)

// Live is what a [Server] has to do with beyond the request.
type Live interface {
	// View gives the newest published view; ErrUnavailable: there is none yet.
	View() (View, error)
	// Wait gives the newest published view once its sequence number is above
	// after. It ends with the context, or with ErrUnavailable when the
	// process is about to end.
	Wait(ctx context.Context, after uint64) (View, error)
	// Update brings the pages with the given URLs (absolute, or identities) up
	// to date with where they come from, now; with gone, it takes them away
	// until they are found there again. What it has done is in the store, and
	// in the next edition. ErrUnavailable: pages cannot be asked for singly
	// here, such as in a mirror.
	Update(ctx context.Context, urls []string, gone bool) (Tally, error)
}

// Teller is a [Live] that wants to hear what a request was for, which its method
// and its path do not say. It is found by assertion.
type Teller interface {
	// Tell says what the answer is of. It may be called at any time: what is said
	// after the request has ended nobody hears.
	Tell(s Subject)
}

// Subject is what an answer is of: one page, a search, or what names many pages.
type Subject struct {
	Page   string // identity of the page; "" = of none, or of many
	Rest   bool   // it is but the rest of a page that comes in parts
	Search bool   // it answers a question
	Query  string // the question, as far as it is known
	Names  int64  // how many pages, changes or passages it names; 0 = none, or nobody knows
	Public bool   // discovery: it leads to the others
}
