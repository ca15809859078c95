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

// KeyRequired reports whether every request for a percent-encoded path needs a key, even if no
// document exists there. This is the case if all protocols are guarded and none advertises the
// path as public. KeyRequired does no lookup, so its duration does not reveal whether a document
// exists.
func (s *Server) KeyRequired(path string) bool {
	ed := s.current.Load()
	return ed != nil && len(s.protocols) > 0 &&
		!slices.ContainsFunc(s.protocols, func(r Protocol) bool { return !r.Guarded }) &&
		!slices.ContainsFunc(ed.Advertisements, func(n millrace.Advertisement) bool { return slices.Contains(n.Public, path) })
}

// RenderError returns the header and body of an error response in the format of the protocol that
// owns the path of r, and that protocol. The path is relative to the endpoint base. proto is nil if
// no protocol renders the error.
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

// Handler returns the handler of a request, the scope that the request needs, and the
// protocol of the handler. h is nil if no protocol handles the request.
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

// HasHandlers reports whether any protocol handles requests itself.
func (s *Server) HasHandlers() bool {
	return slices.ContainsFunc(s.protocols, func(r Protocol) bool { _, is := r.Publisher.(millrace.Handler); return is })
}

// guard sets the header fields of a document that needs a key. Shared caches must not
// store it, and scripts of other origins must not read it.
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

// Private returns the Cache-Control of a response for a single client. It removes the
// directives that let shared caches store the response (RFC 9111, section 3.5).
func Private(control []string) string {
	directives := []string{"private"}
	for directive := range strings.SplitSeq(strings.Join(control, ","), ",") {
		directive = strings.TrimSpace(directive)
		name, _, _ := strings.Cut(strings.ToLower(directive), "=")
		switch strings.TrimSpace(name) {
		case "", "private", "public", "s-maxage", "proxy-revalidate":
		default:
			directives = append(directives, directive)
		}
	}
	return strings.Join(directives, ", ")
}

// varied adds Authorization to a Vary field.
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

// withoutQuery returns the request without its query. Discovery documents ignore the query, and a
// query may start costly work, which requires a key.
func withoutQuery(r *http.Request) *http.Request {
	if r.URL.RawQuery == "" {
		return r
	}
	inner, target := *r, *r.URL
	target.RawQuery, target.ForceQuery = "", false
	inner.URL = &target
	return &inner
}

// Values of the field that millrace.Document.CacheField names.
var (
	cacheHit  = []string{"HIT"}
	cacheMiss = []string{"MISS"}
)

// age is the value of the Age field. All responses within one second share it.
type age struct {
	seconds int64
	value   [1]string
}

// setCacheStatus sets the document's CacheField, which reports whether the body was
// rendered for an earlier request.
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
