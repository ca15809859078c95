package fetch

import (
	"net/http"
	"net/url"
	"strings"
)

// WithKeys returns a copy of client that sends API keys to the sites that issued them. key returns
// the key for an origin, such as "https://example.com" (lower case, with a port that is not the
// scheme's default), or "".
//
// The key is sent as a Bearer token (RFC 6750) only to that origin, and only if no earlier redirect
// came from another origin. A site that redirects chooses the target, and must not be able to use
// another site's key. If key is nil, WithKeys returns client itself.
func WithKeys(client *http.Client, key func(origin string) string) *http.Client {
	if key == nil {
		return client
	}
	c := *client
	c.Transport = keyed{client.Transport, key}
	return &c
}

// keyed adds the keys to requests. The requests that a [Client] itself sends for robots.txt get no
// key.
type keyed struct {
	next http.RoundTripper // if nil, http.DefaultTransport
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
		resp.Request = req // the response must not contain the key
	}
	return resp, err
}

// stayed reports whether a request and all requests that redirected to it have the same
// origin.
func stayed(req *http.Request) bool {
	here := origin(req.URL)
	for r := req; r.Response != nil && r.Response.Request != nil; {
		if r = r.Response.Request; origin(r.URL) != here {
			return false
		}
	}
	return true
}

// asciiOrigin returns the ASCII serialization of the origin of u (RFC 6454, section 6.2).
func asciiOrigin(u *url.URL) string {
	o := origin(u)
	for scheme, port := range map[string]string{"http://": ":80", "https://": ":443"} {
		if rest, ok := strings.CutSuffix(o, port); ok && strings.HasPrefix(o, scheme) {
			return rest
		}
	}
	return o
}
