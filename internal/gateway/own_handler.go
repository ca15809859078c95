package gateway

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/millrace/millrace/internal/access"
)

// OwnHandler returns a handler for the owner's own requests in this process. They do not count against
// rate limits. If the site needs keys, key is a private key with the scope read, which is valid as
// long as the gateway exists. Otherwise, key is "".
func (g *Gateway) OwnHandler() (h http.Handler, key string) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.answer(w, r, true)
	}), g.guard.OwnKey()
}

// ownerField is the header field of the owner's own requests over the network.
const ownerField = "Millrace-Owner"

// OwnRequests returns a function that adds a mark to the header of requests over the network. Until
// release is called, marked requests are treated like those of OwnHandler. Keep that time short,
// because intermediate servers can read the mark.
func (g *Gateway) OwnRequests() (mark func(http.Header), release func()) {
	token := rand.Text()
	g.tokens.Store(token, true)
	return func(h http.Header) { h.Set(ownerField, token) }, func() { g.tokens.Delete(token) }
}

// marked reports whether a request has a valid mark of OwnRequests. It removes the mark, so that no
// other server receives it.
func (g *Gateway) marked(r *http.Request) bool {
	values := r.Header[ownerField]
	if values == nil {
		return false
	}
	r.Header.Del(ownerField)
	_, ok := g.tokens.Load(values[0])
	return ok
}

// fromNearby reports whether a millrace client on this machine or in its private network sent a
// request. Such requests count as the owner's and are not recorded. Behind an untrusted proxy, no
// client counts as nearby, because all have the proxy's address.
func (w *response) fromNearby(r *http.Request) bool {
	if !strings.HasPrefix(r.UserAgent(), "millrace/") || r.Header["X-Forwarded-For"] != nil && !w.g.guard.Trusted(access.ParseAddress(r.RemoteAddr)) {
		return false
	}
	a := w.Address()
	return a.IsLoopback() || a.IsPrivate()
}
