package fetch

import (
	"errors"
	"time"
)

// RetryAfter returns how long an error of a request says that its host is to be
// left alone, by a Retry-After or because it rests; 0 if it does not say.
func RetryAfter(err error) time.Duration {
	if failed, ok := errors.AsType[*robotsFailure](err); ok {
		return RetryAfter(failed.cause)
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.RetryAfter
	}
	if rest, ok := errors.AsType[*RestError](err); ok {
		return rest.Wait
	}
	return 0
}
