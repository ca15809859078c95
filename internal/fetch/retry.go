package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"
)

const (
	maxRetries    = 3
	firstBackoff  = time.Second // wait before the first retry, doubled for each further one
	maxRetryAfter = 30 * time.Second
	drainLimit    = 64 << 10 // bytes of a discarded body that are read, to reuse its connection
)

// Do sends req with client and repeats it up to three times after a temporary failure: 429, 502,
// 503, 504, or a connection that breaks before the response. It repeats only safe requests: GET,
// HEAD and OPTIONS without a body. The waits are 1 s, 2 s and 4 s minus a jitter of up to half, or
// a longer Retry-After of up to 30 s. Do gives up if it would have to wait longer, or past the
// deadline of ctx.
//
// A response with any other status is returned; see [CheckStatus]. The caller must close its body.
// Errors name the URL without its credentials. They wrap the sentinels of [Client.RoundTrip], or
// are a [*RedirectError], or the [*StatusError] of the last attempt, whose Note is the reason why
// Do gave up.
func Do(ctx context.Context, client *http.Client, req *http.Request) (*http.Response, error) {
	if err := checkURL(req.URL); err != nil {
		return nil, err
	}
	c := clientOf(client.Transport)
	asking := ctx
	for attempt := 0; ; attempt++ {
		resp, err := client.Do(req.WithContext(asking))
		if err != nil {
			resp, err = nil, unwrapURL(err, req.URL)
			_, ruled := errors.AsType[*RobotsError](err)
			if _, led := errors.AsType[*RedirectError](err); ruled || led {
				return nil, err // the error names the URL
			}
			err = fmt.Errorf("fetch %s: %w", cleanURL(req.URL), err)
		}
		if !mayPass(resp, err) || !repeatable(req) {
			return resp, err
		}
		wait := backoff(attempt, c)
		note := ""
		if err == nil {
			after := retryAfter(resp.Header)
			status := &StatusError{URL: responseURL(resp), Code: resp.StatusCode, RetryAfter: after}
			err = status
			if wait = max(wait, after); wait > maxRetryAfter {
				note = fmt.Sprintf("gave up: Retry-After is longer than %s", maxRetryAfter)
			}
			_, _ = io.CopyN(io.Discard, resp.Body, drainLimit)
			_ = resp.Body.Close()
		}
		if attempt == maxRetries {
			note = fmt.Sprintf("gave up after %d attempts", attempt+1)
		}
		if end, ok := ctx.Deadline(); ok && note == "" && time.Until(end) < wait {
			note = fmt.Sprintf("gave up: the deadline does not allow a wait of %s", wait)
		}
		if note != "" {
			return nil, withNote(err, note)
		}
		if c != nil {
			c.stats.retries.Add(1)
			c.log.LogAttrs(ctx, slog.LevelDebug, "request failed; retrying", slog.Any("err", err), slog.Duration("retry_in", wait))
		}
		// The host's queue also waits from this moment, so a Retry-After does not delay the
		// request twice.
		if err := Sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", cleanURL(req.URL), err)
		}
		asking = context.WithValue(ctx, repeated{}, true)
	}
}

// repeated marks the context of a repeated request.
type repeated struct{}

// clientOf returns the [Client] that t is or wraps, or nil.
func clientOf(t http.RoundTripper) *Client {
	switch t := t.(type) {
	case *Client:
		return t
	case robotsTransport:
		return t.c
	case keyed:
		return clientOf(t.next)
	case Wrapper:
		return clientOf(t.Unwrap())
	}
	return nil
}

// withNote adds note to an error that ends the attempts.
func withNote(err error, note string) error {
	if status, ok := errors.AsType[*StatusError](err); ok {
		status.Note = note
		return status
	}
	return fmt.Errorf("%w, %s", err, note)
}

func repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return req.Body == nil || req.Body == http.NoBody
	}
	return false
}

// mayPass reports whether a restart or a short overload may have caused the failure. It returns
// false for a refused connection or an unknown name, because the URL is probably wrong, and for a
// timeout, because the caller has already waited long.
func mayPass(resp *http.Response, err error) bool {
	if err != nil {
		for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	return retryStatus(resp.StatusCode)
}

func retryStatus(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// backoff returns between half and all of 1 s, 2 s, 4 s. The jitter prevents clients that failed at
// the same time from retrying at the same time.
func backoff(attempt int, c *Client) time.Duration {
	random := rand.Float64
	if c != nil {
		random = c.rand
	}
	return jitter(firstBackoff<<attempt, random)
}

func jitter(wait time.Duration, random func() float64) time.Duration {
	return wait - time.Duration(random()*float64(wait/2))
}
