package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace"
)

// BodyError is the error of an unusable response body.
type BodyError struct {
	URL    string // without credentials; "" if the response has none
	Code   string // code for [millrace.ErrorCode]; if empty, the code of Err
	Reason string
	// Kind is ErrUnavailable for a body that the network cut short, ErrTooLarge for a body over a
	// limit, and ErrInvalid for an invalid body.
	Kind error
	Err  error // the cause; nil if Reason is complete
}

// Error returns "body of URL: reason: cause".
func (e *BodyError) Error() string {
	s := "body of " + e.URL + ": " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// ErrorCode returns Code.
func (e *BodyError) ErrorCode() string { return e.Code }

// Interrupted reports whether the body ended early, for a reason other than a timeout. Such a
// request may succeed if it is repeated.
func (e *BodyError) Interrupted() bool {
	_, slow := errors.AsType[slowError](e.Err)
	return errors.Is(e.Kind, millrace.ErrUnavailable) && !slow
}

// Unwrap returns Kind and Err.
func (e *BodyError) Unwrap() []error {
	if e.Err != nil {
		return []error{e.Kind, e.Err}
	}
	return []error{e.Kind}
}

func tooLarge(url, code, format string, args ...any) *BodyError {
	return &BodyError{URL: url, Code: code, Reason: fmt.Sprintf(format, args...), Kind: millrace.ErrTooLarge}
}

// StatusError is the error for a response whose status code is not a success. It wraps the sentinel
// that [millrace.StatusErr] returns for the code.
type StatusError struct {
	URL        string // URL of the response, after redirects; without credentials
	Code       int
	RetryAfter time.Duration // value of Retry-After; 0 if absent
	Note       string        // why the request was not repeated; may be empty
}

// Error returns "URL: 503 Service Unavailable (retry after 2m0s)".
func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s: %d %s", e.URL, e.Code, cmp.Or(http.StatusText(e.Code), "(unknown status)"))
	if e.RetryAfter > 0 {
		s += fmt.Sprintf(" (retry after %s)", e.RetryAfter)
	}
	if e.Note != "" {
		s += ", " + e.Note
	}
	return s
}

// ErrorCode returns the status code, such as "http-503".
func (e *StatusError) ErrorCode() string { return "http-" + strconv.Itoa(e.Code) }

// Unwrap returns the sentinel for the code.
func (e *StatusError) Unwrap() error { return millrace.StatusErr(e.Code) }

// CheckStatus returns nil for a 2xx response and a [*StatusError] for any other. The error for
// a 304 wraps [millrace.ErrUnmodified].
func CheckStatus(resp *http.Response) error {
	if millrace.StatusErr(resp.StatusCode) == nil {
		return nil
	}
	return &StatusError{URL: responseURL(resp), Code: resp.StatusCode, RetryAfter: retryAfter(resp.Header)}
}

// retryAfter parses Retry-After (RFC 9110, section 10.2.3), seconds or a date. It returns 0
// for absent, past and invalid values.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return max(0, time.Until(t).Round(time.Second))
}

func responseURL(resp *http.Response) string {
	if resp.Request == nil || resp.Request.URL == nil {
		return ""
	}
	return cleanURL(resp.Request.URL)
}
