package fetch

import (
	"fmt"
	"time"

	"github.com/millrace/millrace"
)

const (
	maxBackoff  = 30 * time.Second
	restAfter   = 8 // failures in a row before a host rests
	restWaves   = 3 // waves of failures before a host rests
	firstRest   = 30 * time.Second
	maxRest     = 5 * time.Minute
	backoffBits = 5 // doublings of firstBackoff that exceed maxBackoff
)

// RestError is a request that was not sent because the host rests after failures or a
// Retry-After. It wraps [millrace.ErrUnavailable].
type RestError struct {
	Host     string
	Failures int           // in a row
	Wait     time.Duration // time until the next request is sent
	Asked    bool          // the host rests because of a Retry-After
}

// Error returns "HOST is resting after 8 failures in a row; next try in 30s".
func (e *RestError) Error() string {
	wait := (e.Wait + time.Second - 1).Truncate(time.Second)
	if e.Asked {
		return fmt.Sprintf("%s sent a Retry-After; next try in %s", e.Host, wait)
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

// outcome classifies the result of a request by what it means for its host.
type outcome uint8

const (
	unknown outcome = iota // no information: the caller canceled, or this client refused
	fine
	faulty  // a 5xx that may concern only one page
	failing // a network failure, 429, or a 5xx of an overloaded host
)

// outcomeOf returns the outcome for a status code.
func outcomeOf(code int) outcome {
	switch {
	case retryStatus(code):
		return failing
	case code >= 500:
		return faulty
	}
	return fine
}

// health records the recent failures of a host. Each wave of failures in a row doubles the delay of
// the next request. After many, the host rests: requests fail at once, except for an occasional
// probe that tests the host.
//
// A wave consists of the failures of requests that began before the first of them failed, because
// the number of parallel failures does not show how long a host has been down. A repeated request
// does not start a wave either, since it may be the cause.
type health struct {
	failures, waves int           // in a row
	failed          time.Time     // start of the last wave
	retry           time.Time     // end of the backoff
	rest            time.Duration // 0 if the host does not rest
	until           time.Time     // end of the rest
	probing         bool          // the probe is in flight
	asked           bool          // the host rests because of a Retry-After
}

// resting returns a *RestError if the host rests. While the probe is in flight, the end of the
// rest assumes that it fails.
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

// leave makes a host rest until end, for a Retry-After longer than maxHold.
func (h *health) leave(end time.Time) {
	if end.After(h.until) {
		h.rest, h.until, h.asked = max(firstRest, h.rest), end, true
	}
}

// judge records the outcome of a request that began at began.
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
		step-- // one broken page must not delay the others
	}
	if step > 0 {
		wait := min(firstBackoff<<min(step-1, backoffBits), maxBackoff)
		h.retry = now.Add(jitter(wait, rand))
	}
}
