package gateway

import (
	"net/http"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/reply"
)

// fixed answers with a text that the site has besides its own files, false if
// the path names none.
func (g *Gateway) fixed(w *response, r *http.Request) bool {
	if len(g.o.Fixed) == 0 || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	inner := basepath.Under(r, g.base)
	if inner == nil {
		return false
	}
	text, ok := g.o.Fixed[inner.URL.Path]
	if ok {
		w.Of.Protocol = access.SiteProtocol
		reply.Text(w, r, http.StatusOK, text)
	}
	return ok
}
