package gateway

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/millrace/millrace/internal/access"
)

// Inside returns a handler for the owner's own requests in this process. They do not count
// against rate limits. If the site needs keys, key is a private key with the scope read, valid
// as long as the gateway; otherwise it is "".
func (g *Gateway) Inside() (h http.Handler, key string) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.answer(w, r, true)
	}), g.guard.OwnKey()
}

// ownerField is the header field of the owner's own requests over the network.
const ownerField = "Millrace-Owner"

// OwnRequests returns a function that marks requests over the network by header fields. Until
// release is called, marked requests are equal to those of Inside. Keep that time short, because
// servers on the way can read the mark.
func (g *Gateway) OwnRequests() (mark func(http.Header), release func()) {
	token := rand.Text()
	g.tokens.Store(token, true)
	return func(h http.Header) { h.Set(ownerField, token) }, func() { g.tokens.Delete(token) }
}

// marked reports whether a request has a mark of OwnRequests that is valid. It removes the
// mark, so no other server gets it.
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
// request: the owner's own, which is not recorded. Behind a proxy that is not trusted, every
// client has the proxy's address, so none is.
func (w *response) fromNearby(r *http.Request) bool {
	if !strings.HasPrefix(r.UserAgent(), "millrace/") || r.Header["X-Forwarded-For"] != nil && !w.g.guard.Trusted(access.ParseAddress(r.RemoteAddr)) {
		return false
	}
	a := w.Address()
	return a.IsLoopback() || a.IsPrivate()
}
