package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace"
)

const (
	maxAnswer         = 64 << 10 // maximum number of bytes that Post reads of a response body
	maxPostRetryAfter = 24 * time.Hour
)

// Post sends body in one POST request, without retries. It returns the header of a 2xx
// response and the first 64 KiB of its body. Errors are [*PostError].
func Post(ctx context.Context, client *http.Client, target string, header http.Header, body []byte) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, nil, &PostError{target, fmt.Errorf("%w: not a URL", millrace.ErrInvalid)}
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL
		}
		return nil, nil, &PostError{target, err}
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // a part of the body is enough
	if err := CheckStatus(resp); err != nil {
		return nil, nil, &PostError{target, err}
	}
	return resp.Header, answer, nil
}

// PostError is the error for a failed request of [Post]. It wraps a [*StatusError] if the server
// responded. Its text has only the scheme and host of the URL, since the rest may be secret.
type PostError struct {
	target string
	err    error
}

// Error returns the scheme and host of the URL, and the cause.
func (e *PostError) Error() string {
	reason := e.err.Error()
	if status, ok := errors.AsType[*StatusError](e.err); ok {
		if reason = fmt.Sprint(status.Code, " ", http.StatusText(status.Code)); status.Code/100 == 3 {
			reason += "; redirects are not followed"
		}
	}
	return HostOf(e.target) + ": " + reason
}

// Unwrap returns the cause.
func (e *PostError) Unwrap() error { return e.err }

// Endpoint parses a URL for [Post] and removes its fragment. Errors wrap [millrace.ErrInvalid] and
// contain no secrets.
func Endpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a URL: %w", millrace.Coded("bad-url", millrace.ErrInvalid))
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("not the URL of a server: %w; use a URL that starts with http:// or https://", millrace.Coded("bad-scheme", millrace.ErrInvalid))
	case u.User != nil:
		return nil, fmt.Errorf("%s: URL with a user name or password: %w", u.Host, millrace.Coded("url-credentials", millrace.ErrInvalid))
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// HostOf returns only the scheme and host of a URL, since the rest may be secret. For an invalid
// URL, it returns "(no URL)".
func HostOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "(no URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// Backoff returns the wait after a failure. err is the error of the failure, and before is the
// number of failures directly before it. The wait is first, doubled for each earlier failure up to
// most, minus a random part of up to half. It is at least the [RetryAfter] of err, up to a day.
func Backoff(err error, before int, first, most time.Duration) time.Duration {
	wait := jitter(min(first<<min(before, 16), most), rand.Float64)
	return max(wait, min(RetryAfter(err), maxPostRetryAfter))
}
