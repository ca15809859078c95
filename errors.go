package millrace

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// The sentinels say what a caller can do about an error. Every error that
// leaves a package of millrace wraps at most one of them.
var (
	ErrNotFound    = errors.New("not found")         // ask for something else
	ErrInvalid     = errors.New("invalid")           // mend the input
	ErrConflict    = errors.New("conflict")          // start over from the present state
	ErrUnavailable = errors.New("unavailable")       // try again later
	ErrUnmodified  = errors.New("unmodified")        // use what you hold
	ErrForbidden   = errors.New("not allowed")       // ask the owner of the other side
	ErrTooLarge    = errors.New("over a size limit") // raise the limit, or do without
)

// statuses is the one table between errors and HTTP status codes, in the
// order in which an error is tried.
var statuses = []struct {
	err  error
	code int
}{
	{ErrUnmodified, http.StatusNotModified},
	{ErrNotFound, http.StatusNotFound},
	{ErrInvalid, http.StatusBadRequest},
	{ErrConflict, http.StatusConflict},
	{ErrForbidden, http.StatusForbidden},
	{ErrTooLarge, http.StatusRequestEntityTooLarge},
	{ErrUnavailable, http.StatusServiceUnavailable},
}

// Status gives the HTTP status code that an error stands for: 200 for nil,
// that of a [RequestError], 500 for an error that wraps no sentinel.
func Status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	if request := (*RequestError)(nil); errors.As(err, &request) {
		return request.Status
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	return http.StatusInternalServerError
}

// StatusErr gives the sentinel that an HTTP status code of a remote server
// stands for: nil for 2xx, [ErrInvalid] for a code without a meaning of its
// own here.
func StatusErr(code int) error {
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusNotModified:
		return ErrUnmodified
	case code == http.StatusNotFound, code == http.StatusGone:
		return ErrNotFound
	case code == http.StatusUnauthorized, code == http.StatusForbidden,
		code == http.StatusPaymentRequired, code == http.StatusUnavailableForLegalReasons:
		return ErrForbidden
	case code == http.StatusConflict, code == http.StatusPreconditionFailed:
		return ErrConflict
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return ErrUnavailable
	}
	return ErrInvalid
}

// RequestError says what is wrong with a request, in words that are meant for
// whoever sent it.
type RequestError struct {
	Status int    // HTTP status, 400 or above
	Code   string // as the protocol names it, such as "INVALID_PARAM"; "" = as it names the status
	Text   string // what is wrong, and what to do
	Page   string // identity of the page that was asked for; "" = none was, or nobody knows
}

// Error implements error.
func (e *RequestError) Error() string { return e.Code + ": " + e.Text }

// Unwrap gives the sentinel that the status stands for.
func (e *RequestError) Unwrap() error { return StatusErr(e.Status) }

// FormatError says where a document breaks which rule of its format. It is an
// [ErrInvalid].
type FormatError struct {
	Protocol string // the room, such as "tct-01"; "" for a format that belongs to none
	URL      string // the document; "" when the caller knows it better
	Position string // line and column, or a JSON Pointer such as "/items/3/etag"; "" for the whole
	Section  string // of the specification, such as "1.5.2"; "" when no rule has a number
	Reason   string // what is wrong, in words
	Err      error  // the cause, if there is one
}

// Error gives "tct-01 https://example.com/llm-pages.json at /items/3/etag: reason (section 1.7.1)".
func (e *FormatError) Error() string {
	var b strings.Builder
	for _, part := range []string{e.Protocol, e.URL} {
		if part != "" {
			b.WriteString(part)
			b.WriteByte(' ')
		}
	}
	if e.Position != "" {
		b.WriteString("at " + e.Position)
	}
	head := strings.TrimSuffix(b.String(), " ")
	reason := e.Reason
	if e.Err != nil {
		reason = strings.TrimPrefix(reason+": "+e.Err.Error(), ": ")
	}
	if head != "" {
		reason = head + ": " + reason
	}
	if e.Section != "" {
		reason += " (section " + e.Section + ")"
	}
	return reason
}

// Unwrap gives [ErrInvalid] and the cause.
func (e *FormatError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrInvalid, e.Err}
	}
	return []error{ErrInvalid}
}

// SkipError reports one entry that a source could not stand behind. The
// stream goes on after it, and the entry does not count as absent unless the
// source says so.
type SkipError struct {
	URL string // the entry
	Err error  // why
	// Absent: the source is sure that it has no such page. A page that is
	// held goes with the next whole milestone that does not name it either.
	Absent bool
}

// Error gives "skipped URL: why".
func (e *SkipError) Error() string { return fmt.Sprintf("skipped %s: %v", e.URL, e.Err) }

// Unwrap gives the reason.
func (e *SkipError) Unwrap() error { return e.Err }
