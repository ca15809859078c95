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

// ErrGone is the [ErrNotFound] of something that was published before.
var ErrGone = Coded("gone", fmt.Errorf("%w any more", ErrNotFound))

// sentinels is the one table of the sentinels with their codes and HTTP
// statuses, in the order in which an error is tried.
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

// others are the codes of errors of the standard library.
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

// ErrorCode returns the code of err, by which scripts and tests tell errors
// apart, whatever their wording: that of the first error in its tree with a code
// of its own (see [Coded]), else that of its sentinel, such as "not-found", or of
// the error of the standard library, such as "canceled". It returns "internal"
// for any other error, "" for nil. docs/reference/errors.md lists the codes.
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
	switch e := any(err).(type) { // the errors are walked one by one
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

// Coded returns err with a code: lower-case words with hyphens, such as
// "robots-disallow", or the ID of the rule that is broken. Types of errors with
// a code of their own have a method ErrorCode() string instead.
func Coded(code string, err error) error { return &codedError{err, code} }

type codedError struct {
	error
	code string
}

func (e *codedError) ErrorCode() string { return e.code }
func (e *codedError) Unwrap() error     { return e.error }

// Status returns the HTTP status code that an error stands for: 200 for nil,
// that of a [RequestError], 500 for an error that wraps no sentinel.
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

// StatusErr returns the sentinel that an HTTP status code of a remote server
// stands for: nil for 2xx, [ErrInvalid] for a code without a meaning of its own
// here.
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
	Code   string // as the protocol names it, such as "INVALID_PARAM"; "" = as it names the status
	Text   string // what is wrong, and what to do
	Page   string // identity of the requested page; "" if none or unknown
}

// Error implements error.
func (e *RequestError) Error() string { return e.Code + ": " + e.Text }

// ErrorCode returns Code as [ErrorCode] has codes: "INVALID_PARAM" is "invalid-param".
func (e *RequestError) ErrorCode() string {
	return strings.ReplaceAll(strings.ToLower(e.Code), "_", "-")
}

// Unwrap returns the sentinel that the status stands for.
func (e *RequestError) Unwrap() error { return StatusErr(e.Status) }

// FormatError reports a place where a document breaks a rule of its format. It
// is an [ErrInvalid].
type FormatError struct {
	Protocol string // such as "tct-01"; "" for a format that belongs to none
	URL      string // the document; "" when the caller knows it better
	Position string // line and column, or a JSON Pointer such as "/items/3/etag"; "" for the whole
	Section  string // of the specification, such as "1.5.2"; "" when no rule has a number
	Code     string // of the error; "" = the code of Err, or PROTOCOL/SECTION, or "invalid"
	Reason   string // what is wrong, in words
	Err      error  // the cause, if there is one
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

// ErrorCode returns Code, the code of Err, or the section as "tct-01/1.7.1".
func (e *FormatError) ErrorCode() string {
	code := cmp.Or(e.Code, ownCode(e.Err))
	if code == "" && e.Protocol != "" && e.Section != "" {
		code = e.Protocol + "/" + strings.ReplaceAll(strings.ToLower(e.Section), " ", "-")
	}
	return code
}

// Unwrap returns [ErrInvalid] and the cause.
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

// Error returns "skipped URL: why".
func (e *SkipError) Error() string { return fmt.Sprintf("skipped %s: %v", e.URL, e.Err) }

// Unwrap returns the reason.
func (e *SkipError) Unwrap() error { return e.Err }
