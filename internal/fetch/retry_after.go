package fetch

import (
	"errors"
	"time"
)

// RetryAfter returns the time for which to send no request to the host of a failed request, because
// of a Retry-After or because the host is paused. It returns 0 if unknown.
func RetryAfter(err error) time.Duration {
	if failed, ok := errors.AsType[*robotsFailure](err); ok {
		return RetryAfter(failed.cause)
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.RetryAfter
	}
	if rest, ok := errors.AsType[*PauseError](err); ok {
		return rest.Wait
	}
	return 0
}
