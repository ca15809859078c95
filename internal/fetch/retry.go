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
	firstBackoff  = time.Second // doubled with every retry
	maxRetryAfter = 30 * time.Second
	drainLimit    = 64 << 10 // of the body of an answer that is thrown away
)

// Do sends req with client and repeats it up to three times when the failure
// may pass: 429, 502, 503 and 504, and connections that break before the
// answer. Only requests that are safe to repeat are: GET, HEAD and OPTIONS
// without a body. The waits are 1 s, 2 s and 4 s less a jitter of up to half;
// a Retry-After of up to 30 s that asks for more is followed. Do gives up
// early rather than wait longer than that or past the deadline of ctx.
//
// The response is the server's last word with any other status; see
// [CheckStatus]. Its body must be closed. Errors name the URL without its
// credentials and wrap the sentinels of [Client.RoundTrip], or are a
// [*RedirectError], or the [*StatusError] of the last attempt, whose Note
// says why Do gave up.
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
				return nil, err // it names the URL
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
				note = fmt.Sprintf("gave up: longer than %s", maxRetryAfter)
			}
			_, _ = io.CopyN(io.Discard, resp.Body, drainLimit)
			_ = resp.Body.Close()
		}
		if attempt == maxRetries {
			note = fmt.Sprintf("gave up after %d attempts", attempt+1)
		}
		if end, ok := ctx.Deadline(); ok && note == "" && time.Until(end) < wait {
			note = fmt.Sprintf("gave up: no time to wait %s", wait)
		}
		if note != "" {
			return nil, withNote(err, note)
		}
		if c != nil {
			c.stats.retries.Add(1)
			c.log.LogAttrs(ctx, slog.LevelDebug, "request failed; retrying", slog.Any("err", err), slog.Duration("retry_in", wait))
		}
		// The host's queue counts from the same moment, so that a Retry-After
		// is waited for once.
		if err := Sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", cleanURL(req.URL), err)
		}
		asking = context.WithValue(ctx, repeated{}, true)
	}
}

// repeated marks the context of a request that has been sent before.
type repeated struct{}

// clientOf returns the [Client] that is a transport, nil if none is.
func clientOf(t http.RoundTripper) *Client {
	switch t := t.(type) {
	case *Client:
		return t
	case unruled:
		return t.c
	case keyed:
		return clientOf(t.next)
	case Wrapper:
		return clientOf(t.Unwrap())
	}
	return nil
}

// withNote adds note to a final failure.
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

// mayPass is for what a restart or a moment of load explains. A refused
// connection or an unknown name is more likely a mistake in the URL, and a
// timeout has waited long enough.
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

// backoff is between half and the whole of 1 s, 2 s, 4 s, so that clients
// that failed together do not come back together.
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
