package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
)

// RedirectError is a redirect that is not followed. It is a
// [millrace.ErrInvalid].
type RedirectError struct {
	From, To string // absolute URLs, without credentials
	Reason   string
}

// Error gives "redirect from URL to URL not followed: reason".
func (e *RedirectError) Error() string {
	return fmt.Sprintf("redirect from %s to %s not followed: %s", e.From, e.To, e.Reason)
}

// Unwrap gives [millrace.ErrInvalid].
func (e *RedirectError) Unwrap() error { return millrace.ErrInvalid }

// checkRedirect is an [http.Client.CheckRedirect]. The headers of req are
// those of the first request, copied anew at every hop.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	last := via[len(via)-1].URL
	refuse := func(reason string) error {
		return &RedirectError{From: cleanURL(last), To: cleanURL(req.URL), Reason: reason}
	}
	switch {
	case len(via) > max(c.maxRedirects, 0):
		return refuse(fmt.Sprintf("more than %d redirects", max(c.maxRedirects, 0)))
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return refuse("not an http or https URL")
	case req.URL.User != nil:
		return refuse("the target has a user name or password")
	case last.Scheme == "https" && req.URL.Scheme == "http":
		return refuse("it leaves https for http")
	}
	first := origin(via[0].URL)
	away := origin(req.URL) != first
	for _, r := range via {
		away = away || origin(r.URL) != first
		// Without cookies the same request gets the same answer again.
		if r.Method == req.Method && cleanURL(r.URL) == cleanURL(req.URL) {
			return refuse("it is a loop")
		}
	}
	// Another origin stays another one for good: it chose where the chain
	// goes next, even when that is back to the first.
	if away {
		for _, k := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
			req.Header.Del(k)
		}
	}
	req.Header.Del("Referer")
	return nil
}

// origin is scheme, host and port (RFC 6454, section 4).
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// unwrapURL takes the [url.Error] of an [http.Client] off: it repeats the
// Location header as it came, credentials included.
func unwrapURL(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}
