// Package basepath handles paths below base URLs.
package basepath

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
)

// Of returns the percent-encoded path of a base URL without a "/" at its end.
// An error wraps [millrace.ErrInvalid].
func Of(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("base URL: %w: %w", millrace.ErrInvalid, err)
	}
	return strings.TrimRight(u.EscapedPath(), "/"), nil
}

// Under returns the request with its path relative to a prefix, or nil if the path is not below the
// prefix. The prefix is percent-encoded and does not end in "/".
func Under(r *http.Request, prefix string) *http.Request {
	if prefix == "" {
		return r
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !ok || !strings.HasPrefix(rest, "/") {
		return nil
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return nil
	}
	inner, target := *r, *r.URL
	target.Path, target.RawPath = path, ""
	if target.EscapedPath() != rest {
		target.RawPath = rest
	}
	inner.URL = &target
	return &inner
}
