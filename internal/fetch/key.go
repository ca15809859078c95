package fetch

import (
	"net/http"
	"net/url"
	"strings"
)

// WithKeys returns a copy of client that shows keys to the sites that have
// given them: key says which one an origin, such as "https://example.com"
// (lower case, with a port that is not the scheme's own), has given, "" for
// none. It goes as a Bearer token (RFC 6750) with requests to that origin
// alone, and only as long as no redirect on the way was of another one: a site
// that redirects decides what is asked for, and must not do so with somebody
// else's key. nil keys give the client itself.
func WithKeys(client *http.Client, key func(origin string) string) *http.Client {
	if key == nil {
		return client
	}
	c := *client
	c.Transport = keyed{client.Transport, key}
	return &c
}

// keyed adds the keys. Requests for robots.txt are none of its.
type keyed struct {
	next http.RoundTripper // nil = http.DefaultTransport
	key  func(origin string) string
}

func (k keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	next := k.next
	if next == nil {
		next = http.DefaultTransport
	}
	key := ""
	if req.Header.Get("Authorization") == "" && stayed(req) {
		key = k.key(asciiOrigin(req.URL))
	}
	if key == "" {
		return next.RoundTrip(req)
	}
	out := req.Clone(req.Context()) // a RoundTripper must not change its request
	out.Header.Set("Authorization", "Bearer "+key)
	resp, err := next.RoundTrip(out)
	if resp != nil {
		resp.Request = req // so that the key goes nowhere from here
	}
	return resp, err
}

// stayed reports whether a request, and all whose redirects have led to it,
// are of one origin.
func stayed(req *http.Request) bool {
	here := origin(req.URL)
	for r := req; r.Response != nil && r.Response.Request != nil; {
		if r = r.Response.Request; origin(r.URL) != here {
			return false
		}
	}
	return true
}

// asciiOrigin is an origin as people write it (RFC 6454, section 6.2).
func asciiOrigin(u *url.URL) string {
	o := origin(u)
	for scheme, port := range map[string]string{"http://": ":80", "https://": ":443"} {
		if rest, ok := strings.CutSuffix(o, port); ok && strings.HasPrefix(o, scheme) {
			return rest
		}
	}
	return o
}
