package millrace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
)

// The sentinel errors classify an error by what a caller can do about it. Every error returned by a
// package of millrace wraps at most one of them.
var (
	ErrNotFound    = errors.New("not found")         // request something else
	ErrInvalid     = errors.New("invalid")           // correct the input
	ErrConflict    = errors.New("conflict")          // start over from the current state
	ErrUnavailable = errors.New("unavailable")       // try again later
	ErrUnmodified  = errors.New("unmodified")        // use the copy that you have
	ErrForbidden   = errors.New("not allowed")       // ask the operator of the remote site
	ErrTooLarge    = errors.New("over a size limit") // raise the limit, or skip the input
)

// ErrGone is the [ErrNotFound] error for something that was published earlier but no longer exists.
var ErrGone = Coded("gone", fmt.Errorf("%w any more", ErrNotFound))

// sentinels lists the sentinels with their codes and HTTP statuses, in the order in which
// [ErrorCode] and [Status] test them.
var sentinels = []struct {
	err    error
	code   string
	status int
}{
	{ErrUnmodified, "unmodified", http.StatusNotModified},
	{ErrNotFound, "not-found", http.StatusNotFound},
	{ErrInvalid, "invalid", http.StatusBadRequest},
	{ErrConflict, "conflict", http.StatusConflict},
	{ErrForbidden, "forbidden", http.StatusForbidden},
	{ErrTooLarge, "too-large", http.StatusRequestEntityTooLarge},
	{ErrUnavailable, "unavailable", http.StatusServiceUnavailable},
}

// others lists the error codes for errors of the standard library.
var others = []struct {
	err  error
	code string
}{
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "timeout"},
	{fs.ErrNotExist, "file-not-found"},
	{fs.ErrExist, "file-exists"},
	{fs.ErrPermission, "file-permission"},
	{errors.ErrUnsupported, "unsupported"},
	{syscall.ENOSPC, "disk-full"},
	{syscall.EISDIR, "is-folder"},
}

// ErrorCode returns the code of err, which does not change with the wording of the error. It
// returns the first of these that exists:
//
//   - the first code in the tree of err; see [Coded]
//   - the code of the sentinel that err wraps, such as "not-found"
//   - the code of an error of the standard library, such as "canceled"
//   - "internal"
//
// It returns "" for nil. docs/reference/errors.md lists the codes.
func ErrorCode(err error) string {
	if code := ownCode(err); code != "" || err == nil {
		return code
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	for _, s := range others {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	return "internal"
}

// ownCode returns the first code in the tree of err, outermost first, or "".
func ownCode(err error) string {
	if e, ok := err.(interface{ ErrorCode() string }); ok && e.ErrorCode() != "" {
		return e.ErrorCode()
	}
	switch e := any(err).(type) { // errors.As would stop at an error with an empty code
	case interface{ Unwrap() error }:
		return ownCode(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if code := ownCode(err); code != "" {
				return code
			}
		}
	}
	return ""
}

// Coded returns an error that wraps err and has a code. A code consists of lower-case words with
// hyphens, such as "robots-disallow", or is the ID of the violated rule. An error type with its own
// codes has a method ErrorCode() string instead.
func Coded(code string, err error) error { return &codedError{err, code} }

type codedError struct {
	error
	code string
}

func (e *codedError) ErrorCode() string { return e.code }
func (e *codedError) Unwrap() error     { return e.error }

// Status returns the HTTP status code of an error: 200 for nil, the status of a [RequestError]
// or of a sentinel, and 500 for any other error.
func Status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	if request := (*RequestError)(nil); errors.As(err, &request) {
		return request.Status
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

// StatusErr returns the sentinel for an HTTP status code of a remote server. It returns nil for
// 2xx, and [ErrInvalid] for every code that it does not know, including 413.
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

// RequestError is an error caused by a request, with a message for its sender.
type RequestError struct {
	Status int    // HTTP status, 400 or above
	Code   string // code of the protocol, such as "INVALID_PARAM". If empty, the protocol's code for Status.
	Text   string // cause, and what the sender can do
	Page   string // identity of the requested page; "" if none or unknown
}

// Error implements error.
func (e *RequestError) Error() string { return e.Code + ": " + e.Text }

// ErrorCode returns Code in the form of [ErrorCode]: "invalid-param" for "INVALID_PARAM".
func (e *RequestError) ErrorCode() string {
	return strings.ReplaceAll(strings.ToLower(e.Code), "_", "-")
}

// Unwrap returns the sentinel for the status.
func (e *RequestError) Unwrap() error { return StatusErr(e.Status) }

// FormatError describes how and where a document violates its format. It wraps [ErrInvalid].
type FormatError struct {
	Protocol string // protocol name, such as "tct-01". If empty, the format belongs to no protocol.
	URL      string // URL of the document. If empty, the caller adds it.
	Position string // line and column, or a JSON Pointer such as "/items/3/etag". If empty, the whole document.
	Section  string // section of the specification, such as "1.5.2", or ""
	Code     string // error code; if empty, the code of Err, else PROTOCOL/SECTION, else "invalid"
	Reason   string // description of the violation
	Err      error  // cause, or nil
}

// Error returns "tct-01 https://example.com/llm-pages.json at /items/3/etag:
// reason (section 1.7.1)".
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

// ErrorCode returns Code. If Code is empty, it returns the code of Err, or the protocol and the
// section, such as "tct-01/1.7.1". It returns "" if neither exists.
func (e *FormatError) ErrorCode() string {
	code := cmp.Or(e.Code, ownCode(e.Err))
	if code == "" && e.Protocol != "" && e.Section != "" {
		code = e.Protocol + "/" + strings.ReplaceAll(strings.ToLower(e.Section), " ", "-")
	}
	return code
}

// Unwrap returns [ErrInvalid] and Err.
func (e *FormatError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrInvalid, e.Err}
	}
	return []error{ErrInvalid}
}

// SkipError reports one entry that a source could not read. The stream continues after it. The page
// of the entry is not deleted unless Absent is set.
type SkipError struct {
	URL string // URL of the entry
	Err error  // cause
	// Absent reports whether the page is known not to exist at the source. If so, a stored page is
	// deleted at the next complete checkpoint, unless the source lists it again.
	Absent bool
}

// Error returns "skipped URL: cause".
func (e *SkipError) Error() string { return fmt.Sprintf("skipped %s: %v", e.URL, e.Err) }

// Unwrap returns the cause.
func (e *SkipError) Unwrap() error { return e.Err }
