package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
)

// RedirectError is the error for a redirect that is not followed. It wraps [millrace.ErrInvalid].
type RedirectError struct {
	From, To string // absolute URLs, without credentials
	Code     string // code for [millrace.ErrorCode], such as "redirect-loop"
	Reason   string
}

// Error returns "redirect from URL to URL not followed: reason".
func (e *RedirectError) Error() string {
	to := e.To
	if to == e.From {
		to = "itself"
	}
	return fmt.Sprintf("redirect from %s to %s not followed: %s", e.From, to, e.Reason)
}

// ErrorCode returns Code.
func (e *RedirectError) ErrorCode() string { return e.Code }

// Unwrap returns [millrace.ErrInvalid].
func (e *RedirectError) Unwrap() error { return millrace.ErrInvalid }

// exists reports whether the target may exist, although the client did not request it, because the
// redirect is not safe.
func (e *RedirectError) exists() bool { return e.Code == noDowngrade }

const noDowngrade = "redirect-downgrade"

// NoRedirects returns a copy of client that follows no redirect. The caller receives the response
// itself, and [RedirectTarget] returns its target. The transport still applies address checks,
// robots.txt and the host's queue.
func NoRedirects(client *http.Client) *http.Client {
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// RedirectTarget returns the URL that a response redirects to (RFC 9110, section 15.4). It returns
// nil if resp is not a 301, 302, 303, 307 or 308 with a Location. If [Client.HTTP] would not follow
// the redirect, such as one from https to http, the error is a [*RedirectError].
func RedirectTarget(resp *http.Response) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, nil
	}
	from := resp.Request.URL
	to, err := from.Parse(location)
	if err != nil {
		return nil, &RedirectError{From: cleanURL(from), To: "(no URL)", Code: "redirect-target", Reason: "invalid Location header"}
	}
	if err := checkHop(from, to); err != nil {
		return nil, err
	}
	return to, nil
}

// checkHop returns an error if a redirect between from and to is not allowed.
func checkHop(from, to *url.URL) error {
	var code, reason string
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		code, reason = "redirect-target", "not an http or https URL"
	case to.User != nil:
		code, reason = "redirect-target", "the target has a user name or password"
	case from.Scheme == "https" && to.Scheme == "http":
		code, reason = noDowngrade, "downgrade from https to http"
	default:
		return nil
	}
	return &RedirectError{From: cleanURL(from), To: cleanURL(to), Code: code, Reason: reason}
}

// checkRedirect implements [http.Client.CheckRedirect] for at most limit redirects. The
// headers of req are those of the first request, copied at every hop.
func checkRedirect(limit int, req *http.Request, via []*http.Request) error {
	last := via[len(via)-1].URL
	refuse := func(code, reason string) error {
		return &RedirectError{From: cleanURL(last), To: cleanURL(req.URL), Code: code, Reason: reason}
	}
	if len(via) > limit {
		return refuse("redirect-limit", fmt.Sprintf("more than %d redirects", limit))
	}
	if err := checkHop(last, req.URL); err != nil {
		return err
	}
	first := origin(via[0].URL)
	away := origin(req.URL) != first
	for _, r := range via {
		away = away || origin(r.URL) != first
		// Without cookies, the same request gets the same response again.
		if r.Method == req.Method && cleanURL(r.URL) == cleanURL(req.URL) {
			return refuse("redirect-loop", "redirect loop")
		}
	}
	// After a redirect to another origin, no further request contains the key, not even one to the
	// first origin, because the other origin has chosen the target.
	if away {
		for _, k := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
			req.Header.Del(k)
		}
	}
	req.Header.Del("Referer")
	return nil
}

// origin returns scheme, host and port of u (RFC 6454, section 4).
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// unwrapURL removes the [url.Error] of an [http.Client], which repeats the raw Location header,
// including credentials. It also replaces the client's error for an invalid Location, which repeats
// the header as well.
func unwrapURL(err error, from *url.URL) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if strings.HasPrefix(err.Error(), "failed to parse Location header") {
		return &RedirectError{From: cleanURL(from), To: "(no URL)", Code: "redirect-target", Reason: "invalid Location header"}
	}
	return err
}
