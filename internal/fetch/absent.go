package fetch

import (
	"errors"
	"net/http"
)

// Absent reports whether a request error means that an optional document with rules for clients,
// such as robots.txt, is unavailable in the sense of RFC 9309, section 2.3.1.3. This is the case
// for a 4xx response other than 429, a URL that robots.txt disallows, and a redirect without a
// usable target. A document is not absent if it is temporarily unavailable, or if this client
// refuses to fetch it.
func Absent(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code >= 400 && status.Code < 500 && status.Code != http.StatusTooManyRequests
	}
	if _, ok := errors.AsType[*RobotsError](err); ok {
		return true
	}
	away, ok := errors.AsType[*RedirectError](err)
	return ok && !away.exists()
}
