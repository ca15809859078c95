package gateway

import (
	"net/http"
)

// Inside gives a handler for requests that the site's owner makes in this
// process: they are answered as others are, but no limit of requests for
// content counts them. Where a key is needed, key is one that may read, which
// nobody else has, and which holds as long as this gateway; "" = there are no
// keys here.
func (g *Gateway) Inside() (h http.Handler, key string) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.answer(w, r, true)
	}), g.guard.OwnKey()
}
