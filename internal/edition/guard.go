package edition

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

func (s *Server) guarded(proto string) bool {
	return slices.ContainsFunc(s.protocols, func(r Protocol) bool { return r.Guarded && r.Name == proto })
}

// Guarded reports whether the content of any protocol needs a key.
func (s *Server) Guarded() bool {
	return slices.ContainsFunc(s.protocols, func(r Protocol) bool { return r.Guarded })
}

// Sealed reports whether what is at a path, percent-encoded, needs a key for
// certain, whether there is something or not: no protocol is open, and none has
// named it as public. Nothing is looked up for that, so that the time it takes
// tells nothing either.
func (s *Server) KeyRequired(path string) bool {
	ed := s.current.Load()
	return ed != nil && len(s.protocols) > 0 &&
		!slices.ContainsFunc(s.protocols, func(r Protocol) bool { return !r.Guarded }) &&
		!slices.ContainsFunc(ed.Advertisements, func(n millrace.Advertisement) bool { return slices.Contains(n.Public, path) })
}

// Refuse gives the header and body of an error's response in the form of the
// protocol that the path of r, relative to the documents' base, belongs to, and
// whose that is: nil when it belongs to none that has a form of its own.
func (s *Server) RenderError(r *http.Request, status int, err error) (header http.Header, body []byte, proto *Protocol) {
	for i := range s.protocols {
		if f, is := s.protocols[i].Publisher.(millrace.ErrorRenderer); is {
			if header, body, ok := f.RenderError(r, status, err); ok {
				return header, body, &s.protocols[i]
			}
		}
	}
	return nil, nil, nil
}

// Handler returns who answers a request itself, nil if nobody does, what the
// request is allowed by, and whose protocol it is.
func (s *Server) Handler(r *http.Request) (h millrace.Handler, scope millrace.Scope, proto *Protocol) {
	for i := range s.protocols {
		if h, is := s.protocols[i].Publisher.(millrace.Handler); is {
			if scope, ok := h.Scope(r); ok {
				return h, scope, &s.protocols[i]
			}
		}
	}
	return nil, "", nil
}

// Serves reports whether any protocol answers requests itself.
func (s *Server) HasHandlers() bool {
	return slices.ContainsFunc(s.protocols, func(r Protocol) bool { _, is := r.Publisher.(millrace.Handler); return is })
}

// guard makes the entry's header that of a document for those who have a key:
// no cache that others share may keep it, and no page of a browser reads it.
func (e *entry) guard() {
	e.guarded, e.private = true, true
	e.own, e.shape.full = slices.DeleteFunc(e.own, cors), slices.DeleteFunc(e.shape.full, cors)
	control, vary := "private", "Authorization"
	var all []field
	for _, f := range e.shape.all {
		switch {
		case f.name == "Cache-Control":
			control = Private(f.value)
		case f.name == "Vary":
			vary = varied(f.value)
		case !cors(f):
			all = append(all, f)
		}
	}
	all = append(all, field{"Cache-Control", []string{control}}, field{"Vary", []string{vary}})
	e.shape.all = all
}

// cors reports whether a field lets scripts of other origins read a response.
func cors(f field) bool { return strings.HasPrefix(f.name, "Access-Control-") }

// Private gives the Cache-Control of a response that one client alone may
// have: what would let a shared cache keep it is left out (RFC 9111, section 3.5).
func Private(control []string) string {
	kept := []string{"private"}
	for directive := range strings.SplitSeq(strings.Join(control, ","), ",") {
		directive = strings.TrimSpace(directive)
		name, _, _ := strings.Cut(strings.ToLower(directive), "=")
		switch strings.TrimSpace(name) {
		case "", "private", "public", "s-maxage", "proxy-revalidate":
		default:
			kept = append(kept, directive)
		}
	}
	return strings.Join(kept, ", ")
}

// varied adds Authorization to what a response depends on.
func varied(vary []string) string {
	joined := strings.Join(vary, ", ")
	for token := range strings.SplitSeq(joined, ",") {
		if token = strings.TrimSpace(token); token == "*" || strings.EqualFold(token, "Authorization") {
			return joined
		}
	}
	if strings.TrimSpace(joined) == "" {
		return "Authorization"
	}
	return joined + ", Authorization"
}

// withoutQuery gives the request without its query: discovery has none, and
// what a query asks for may be work that nobody does for strangers.
func withoutQuery(r *http.Request) *http.Request {
	if r.URL.RawQuery == "" {
		return r
	}
	inner, target := *r, *r.URL
	target.RawQuery, target.ForceQuery = "", false
	inner.URL = &target
	return &inner
}

// Values of a CacheField.
var (
	cacheHit  = []string{"HIT"}
	cacheMiss = []string{"MISS"}
)

// age is an Age that was written once for all responses of a second.
type age struct {
	seconds int64
	value   [1]string
}

// tell says whether the body was made for an earlier request. A document
// without a field for that costs nothing.
func (e *entry) setCacheStatus(h http.Header, r *rep, fresh bool) {
	switch {
	case e.cached == "" || r != nil && r.made == 0:
	case r == nil || fresh:
		h[e.cached] = cacheMiss
	default:
		h[e.cached] = cacheHit
		h["Age"] = r.ageAt(time.Now().Unix())
	}
}

func (r *rep) ageAt(now int64) []string {
	seconds := max(0, now-r.made)
	a := r.age.Load()
	if a == nil || a.seconds != seconds {
		a = &age{seconds, [1]string{strconv.FormatInt(seconds, 10)}}
		r.age.Store(a)
	}
	return a.value[:]
}
