package fetch

import (
	"errors"
	"net/http"
)

// Absent reports whether an error of a request says that a document which a
// site may have, and which would bind its readers, is not there for this one, in
// the sense that RFC 9309, section 2.3.1.3, has for robots.txt: the answer is
// 4xx other than 429, robots.txt keeps readers away from it, or a redirect leads
// nowhere. What is out of reach for now, or refused by this side, is not absent.
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
