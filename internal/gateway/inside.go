package gateway

import (
	"context"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// inside marks the context of the owner's own requests.
type inside struct{}

// Inside gives a handler for requests that the site's owner makes in this
// process: they are answered as others are, but no limit of requests for
// content counts them. Where a key is needed, key is one that may read, which
// nobody else has, and which holds as long as this gateway; "" = there are no
// keys here.
func (g *Gateway) Inside() (h http.Handler, key string) {
	if g.guard.keys != nil {
		own := &store.Key{Name: "the owner, in this process", Scopes: []millrace.Scope{millrace.ScopeRead}}
		key, own.Hash = store.NewKey()
		g.guard.keys.own.Store(own)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.answer(w, r.WithContext(context.WithValue(r.Context(), inside{}, true)), true)
	}), key
}

// isInside reports whether a request is the owner's own.
func isInside(ctx context.Context) bool { return ctx.Value(inside{}) != nil }
