package fetch

import (
	"fmt"
	"time"

	"github.com/millrace/millrace"
)

const (
	maxBackoff  = 30 * time.Second
	restAfter   = 8 // failures in a row
	restWaves   = 3 // of which so many began one after another
	firstRest   = 30 * time.Second
	maxRest     = 5 * time.Minute
	backoffBits = 5 // firstBackoff doubled so often is over maxBackoff
)

// RestError is a request that was not sent, because the last ones to its host
// have failed. It is [millrace.ErrUnavailable].
type RestError struct {
	Host     string
	Failures int           // in a row
	Wait     time.Duration // until one request is let through to see how the host is
	Asked    bool          // the host has asked to be left alone, by Retry-After
}

// Error returns "HOST is resting after 8 failures in a row; next try in 30s".
func (e *RestError) Error() string {
	wait := (e.Wait + time.Second - 1).Truncate(time.Second)
	if e.Asked {
		return fmt.Sprintf("%s has asked to be left alone (Retry-After); next try in %s", e.Host, wait)
	}
	return fmt.Sprintf("%s is resting after %d failures in a row; next try in %s", e.Host, e.Failures, wait)
}

// ErrorCode returns "host-resting", or "retry-after" if Asked.
func (e *RestError) ErrorCode() string {
	if e.Asked {
		return "retry-after"
	}
	return "host-resting"
}

// Unwrap returns [millrace.ErrUnavailable].
func (e *RestError) Unwrap() error { return millrace.ErrUnavailable }

// outcome is what a request says about its host.
type outcome uint8

const (
	unknown outcome = iota // nothing: the caller gave up, or we refused
	fine
	faulty  // a 5xx that may be the page's alone
	failing // the network, 429, or the 5xx of a host in trouble
)

// outcomeOf judges a status code.
func outcomeOf(code int) outcome {
	switch {
	case retryStatus(code):
		return failing
	case code >= 500:
		return faulty
	}
	return fine
}

// health is how a host has been. Failures in a row put its next turn off, each
// wave of them by twice as much; many make it rest: then requests fail at
// once, but for one now and then that shows whether it is well again.
//
// A wave is made of the failures of requests that began before the first of
// them failed: that many run at once says nothing about how long a host is
// down. A request that is repeated begins none either: it may be the trouble.
type health struct {
	failures, waves int           // in a row
	failed          time.Time     // when the last wave began to fail
	retry           time.Time     // backoff ends
	rest            time.Duration // 0: it does not rest
	until           time.Time     // the rest ends
	probing         bool          // the one request is under way
	asked           bool          // the rest is one that the host has asked for
}

// resting refuses a request. The next rest ends when the probe has failed; what
// it will say is not known before.
func (h *health) resting(host string, now time.Time) error {
	wait := h.until.Sub(now)
	switch {
	case h.rest == 0, wait <= 0 && !h.probing:
		return nil
	case wait <= 0:
		wait = firstBackoff
	}
	return &RestError{Host: host, Failures: h.failures, Wait: wait, Asked: h.asked}
}

// leave leaves a host alone that has asked for longer than anybody waits.
func (h *health) leave(end time.Time) {
	if end.After(h.until) {
		h.rest, h.until, h.asked = max(firstRest, h.rest), end, true
	}
}

// judge notes how a request went that began at a time.
func (h *health) judge(o outcome, repeated bool, began, now time.Time, rand func() float64) {
	news := h.failures == 0 || began.After(h.failed)
	if o == fine {
		if news {
			*h = health{until: h.until}
		}
		return
	}
	h.failures++
	if !news {
		return
	}
	if !repeated || h.waves == 0 {
		h.waves++
	}
	h.failed = now
	if h.failures >= restAfter && h.waves >= restWaves {
		h.rest = min(max(firstRest, 2*h.rest), maxRest)
		h.retry = time.Time{}
		if end := now.Add(h.rest); end.After(h.until) {
			h.until, h.asked = end, false
		}
		return
	}
	step := h.waves
	if o == faulty {
		step-- // one broken page delays no other page
	}
	if step > 0 {
		wait := min(firstBackoff<<min(step-1, backoffBits), maxBackoff)
		h.retry = now.Add(jitter(wait, rand))
	}
}
