package fetch

import (
	"fmt"
	"time"

	"github.com/millrace/millrace"
)

const (
	maxBackoff  = 30 * time.Second
	restAfter   = 8 // minimum number of failures in a row, in at least restWaves waves, before a host is paused
	restWaves   = 3 // minimum number of waves of failures before a host is paused
	firstPause  = 30 * time.Second
	maxPause    = 5 * time.Minute
	backoffBits = 5 // number of doublings of firstBackoff that exceeds maxBackoff
)

// PauseError is the error of a request that was not sent, because the host is paused after failures
// or a Retry-After. It wraps [millrace.ErrUnavailable].
type PauseError struct {
	Host     string
	Failures int           // number of failures in a row
	Wait     time.Duration // time until the next request is sent
	Asked    bool          // the host is paused because of a Retry-After
}

// Error returns "HOST is paused after 8 failures in a row; next request in 30s".
func (e *PauseError) Error() string {
	wait := (e.Wait + time.Second - 1).Truncate(time.Second)
	if e.Asked {
		return fmt.Sprintf("%s sent a Retry-After; next request in %s", e.Host, wait)
	}
	return fmt.Sprintf("%s is paused after %d failures in a row; next request in %s", e.Host, e.Failures, wait)
}

// ErrorCode returns "host-paused", or "retry-after" if Asked.
func (e *PauseError) ErrorCode() string {
	if e.Asked {
		return "retry-after"
	}
	return "host-paused"
}

// Unwrap returns [millrace.ErrUnavailable].
func (e *PauseError) Unwrap() error { return millrace.ErrUnavailable }

// outcome classifies what the result of a request says about its host.
type outcome uint8

const (
	unknown outcome = iota // no information: the caller canceled the request, or this client refused it
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

// health records the recent failures of a host. Each wave of failures in a row doubles the delay
// of the next request. After many failures, the host is paused: requests fail at once, except for
// an occasional probe that tests the host.
//
// A wave consists of the failures of requests that began before the first of them failed. The
// number of parallel failures does not show how long a host has been down. Repeating a failed
// request does not start a wave, since that request itself may cause the failures.
type health struct {
	failures, waves int           // number of failures and of waves in a row
	failed          time.Time     // time of the first failure in the last wave
	retry           time.Time     // end of the backoff
	pause           time.Duration // length of the pause; 0 if the host is not paused
	until           time.Time     // end of the pause
	probing         bool          // the probe is in flight
	asked           bool          // the host is paused because of a Retry-After
}

// pauseError returns a *PauseError if the host is paused. If the pause is over, but the probe is
// still in flight, Wait is firstBackoff.
func (h *health) pauseError(host string, now time.Time) error {
	wait := h.until.Sub(now)
	switch {
	case h.pause == 0, wait <= 0 && !h.probing:
		return nil
	case wait <= 0:
		wait = firstBackoff
	}
	return &PauseError{Host: host, Failures: h.failures, Wait: wait, Asked: h.asked}
}

// leave pauses a host until end, for a Retry-After longer than maxHold. It never shortens a pause.
func (h *health) leave(end time.Time) {
	if end.After(h.until) {
		h.pause, h.until, h.asked = max(firstPause, h.pause), end, true
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
		h.pause = min(max(firstPause, 2*h.pause), maxPause)
		h.retry = time.Time{}
		if end := now.Add(h.pause); end.After(h.until) {
			h.until, h.asked = end, false
		}
		return
	}
	step := h.waves
	if o == faulty {
		step-- // a single broken page must not delay the other pages
	}
	if step > 0 {
		wait := min(firstBackoff<<min(step-1, backoffBits), maxBackoff)
		h.retry = now.Add(jitter(wait, rand))
	}
}
