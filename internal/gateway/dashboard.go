package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/reply"
	"github.com/millrace/millrace/internal/sites"
)

// mount returns the percent-encoded path of the dashboard, without a trailing "/".
func mount(at string) (string, error) {
	p, err := basepath.Of(at)
	switch {
	case err != nil:
		return "", fmt.Errorf("dashboard: %w", err)
	case !strings.HasPrefix(at, "/") || p == "" || path.Clean(p) != p || strings.ContainsAny(at, "?#"):
		return "", fmt.Errorf("dashboard at %q: %w; use a path such as /dashboard", at, millrace.ErrInvalid)
	}
	// The path must be literal, because links and cookies contain it, and snippets for web servers
	// use it in a pattern.
	if i := strings.IndexFunc(at, special); i >= 0 {
		return "", fmt.Errorf("dashboard at %q: %w; use only letters, digits and -._~", at, millrace.ErrInvalid)
	}
	for _, taken := range []string{"/healthz", "/readyz", metricsPath, sites.RobotsPath, "/.well-known"} {
		if p == taken || strings.HasPrefix(p, taken+"/") {
			return "", fmt.Errorf("dashboard at %q: %w: %s is reserved", at, millrace.ErrInvalid, taken)
		}
	}
	return p, nil
}

// special reports whether a character may have a special meaning in a path or pattern.
func special(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-._~/", c)
}

// covered returns an error if the dashboard path covers the whole site or the
// handler of a protocol.
func (g *Gateway) covered() error {
	for _, base := range []string{g.base, g.endpointBase} {
		if strings.HasPrefix(base+"/", g.mount+"/") {
			return fmt.Errorf("dashboard at %q: %w: the path covers the whole site at %s/", g.mount, millrace.ErrInvalid, base)
		}
	}
	if !g.serves {
		return nil
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r := &http.Request{Method: method, URL: &url.URL{Path: g.mount}, Header: http.Header{}}
		if inner := basepath.Under(r, g.endpointBase); inner != nil {
			if s, _, proto := g.handlerOf(inner); s != nil {
				return fmt.Errorf("dashboard at %q: %w: %s has a handler at this path", g.mount, millrace.ErrInvalid, proto.Name)
			}
		}
	}
	return nil
}

// HiddenPath returns the path of a published document or page that the dashboard hides, or "" if none.
func (g *Gateway) HiddenPath(ctx context.Context) (string, error) {
	if g.mount == "" || g.server == nil || g.server.Current() == nil {
		return "", nil
	}
	ed := g.server.Current()
	hides := func(p string) bool { return p == g.mount || strings.HasPrefix(p, g.mount+"/") }
	for _, p := range slices.Concat(ed.Large(), ed.ArtifactPaths()) {
		if p = g.endpointBase + p; hides(p) {
			return p, nil
		}
	}
	for _, p := range []string{g.mount, g.mount + "/"} {
		r := &http.Request{Method: http.MethodHead, URL: &url.URL{Path: p}, Header: http.Header{}}
		if inner := basepath.Under(r.WithContext(ctx), g.endpointBase); inner != nil {
			if there, err := g.server.Serve(unread{}, inner); there || err != nil {
				return p, err
			}
		}
	}
	in, ok := strings.CutPrefix(g.mount, g.base)
	if site := ed.View.Site(); ok && canon.Origin(site.Base) == canon.Origin(site.EndpointBase) {
		last := len(in) - 1
		// Check the first URL at or after the path, and the first one at or after the path with "/",
		// which may be below the path.
		for _, before := range []string{in[:last] + string(in[last]-1), in + "."} {
			for page, err := range ed.View.Scan(ctx, millrace.Scan{After: canon.Absolute(site.Base, before+"\x7f"), Limit: 1}) {
				if err != nil {
					return "", err
				}
				if p := g.base + canon.Relative(site.Base, page.URL); hides(p) {
					return p, nil
				}
			}
		}
	}
	return "", nil
}

// unread is a response writer that discards everything.
type unread struct{}

func (unread) Header() http.Header         { return http.Header{} }
func (unread) Write(b []byte) (int, error) { return len(b), nil }
func (unread) WriteHeader(int)             {}

// dashboard serves the owner's dashboard. Its responses are private and never
// cached or indexed.
func (g *Gateway) dashboard(w *response, r *http.Request) (bool, error) {
	inner := basepath.Under(r, g.mount)
	if inner == nil && r.URL.EscapedPath() != g.mount {
		return false, nil
	}
	w.silent = true
	if err := w.Enter(); err != nil {
		return false, err
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	switch {
	case r.ContentLength > maxBody:
		reply.Error(w, r, http.StatusRequestEntityTooLarge, &errLarge.Err)
	case inner == nil:
		h.Set("Location", g.mount+"/")
		reply.Text(w, r, http.StatusFound, "")
	case !clean(inner.URL.Path):
		reply.NotFound(w, r)
	default:
		inner.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if inner.URL.Path == "/login" { // clients without a session may request this page
			if err := w.WaitTurn(); err != nil {
				return false, err
			}
			inner.Body = &turnBody{inner.Body, w}
		}
		inner.RemoteAddr = netip.AddrPortFrom(w.Address(), 0).String() // the client's address, even behind a proxy
		g.o.Dashboard.ServeHTTP(w, inner)
	}
	return true, nil
}

// clean reports whether a path has no empty, "." or ".." segments. With such segments, a handler
// that cleans paths could serve files outside of its folder.
func clean(p string) bool {
	return path.Clean(p) == p || path.Clean(p)+"/" == p
}
