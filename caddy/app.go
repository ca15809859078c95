package caddy

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() { caddy.RegisterModule(new(App)) }

const appID = "millrace"

// App starts the publications of all handlers of a configuration. It has no options of its own.
type App struct {
	ctx      caddy.Context
	handlers []*Handler
	started  sync.Once
}

// release allows the handlers to respond to requests.
func (a *App) release() {
	for _, h := range a.handlers {
		close(h.started)
	}
}

// CaddyModule implements [caddy.Module].
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: appID, New: func() caddy.Module { return new(App) }}
}

// Provision implements [caddy.Provisioner].
func (a *App) Provision(ctx caddy.Context) error {
	a.ctx = ctx
	return nil
}

// Start attaches each handler to a publication. If the previous configuration has a publication
// with the same site, source and store, Start uses it. Otherwise, it starts a new one.
func (a *App) Start() error {
	app, err := a.ctx.App("http")
	if err != nil {
		return err
	}
	defer a.started.Do(a.release)
	places := placesOf(app.(*caddyhttp.App))
	for _, h := range a.handlers {
		at, ok := places[h]
		if !ok {
			return errors.New("millrace: no route of a site contains the directive")
		}
		if err := h.start(at); err != nil {
			return fmt.Errorf("millrace: %w", err)
		}
	}
	// Handlers for http and https, for example, can share a publication.
	registered := make(map[*site]bool)
	for _, h := range a.handlers {
		if registered[h.site] {
			continue
		}
		registered[h.site] = true
		if err := h.site.register(a.ctx.GetMetricsRegistry()); err != nil {
			return err
		}
	}
	return nil
}

// Stop implements [caddy.App]. It does nothing, because the next configuration may use the same
// publications. Cleanup detaches the handlers.
func (*App) Stop() error { return nil }

// Cleanup detaches the handlers.
func (a *App) Cleanup() error {
	a.started.Do(a.release)
	var all []error
	for _, h := range a.handlers {
		if h.site != nil {
			all = append(all, h.site.detach(h))
		}
	}
	return errors.Join(all...)
}

// place is the position of a handler in the configuration.
type place struct {
	server *caddyhttp.Server
	scheme string
	name   string // first host of the routes that lead to the handler; "" = any
	host   string // name with the port, unless that is the default
}

// base returns the URL of the site at the position, or an error if its hosts are not known.
func (p *place) base() (string, error) {
	if p.name == "" {
		return "", errors.New("the site has no host name; set base_url")
	}
	return p.scheme + "://" + p.host + "/", nil
}

// placesOf returns the positions of the handlers in an app.
func placesOf(app *caddyhttp.App) map[*Handler]*place {
	found := make(map[*Handler]*place)
	for _, srv := range app.Servers {
		at := &place{server: srv, scheme: "http"}
		if len(srv.TLSConnPolicies) > 0 {
			at.scheme = "https"
		}
		f := finder{named: srv.NamedRoutes, found: found, invoked: make(map[string]bool)}
		f.routes(srv.Routes, at, portOf(srv, at.scheme))
	}
	return found
}

// portOf returns a server's port with a leading colon, or "" for the default port of the scheme.
func portOf(srv *caddyhttp.Server, scheme string) string {
	for _, l := range srv.Listen {
		if addr, err := caddy.ParseNetworkAddress(l); err == nil && addr.StartPort > 0 {
			if addr.StartPort == 80 && scheme == "http" || addr.StartPort == 443 && scheme == "https" {
				return ""
			}
			return fmt.Sprintf(":%d", addr.StartPort)
		}
	}
	return ""
}

// finder finds the handlers of a server.
type finder struct {
	named   map[string]*caddyhttp.Route
	invoked map[string]bool
	found   map[*Handler]*place
}

// routes finds the handlers in a list of routes.
func (f *finder) routes(list caddyhttp.RouteList, at *place, port string) {
	for _, r := range list {
		here := at
		for _, name := range hostsOf(&r) {
			if !strings.ContainsAny(name, "*{") {
				inner := *at
				inner.name, inner.host = name, name+port
				if strings.Contains(name, ":") && net.ParseIP(name) != nil {
					inner.host = "[" + name + "]" + port
				}
				here = &inner
				break
			}
		}
		f.handlers(r.Handlers, here, port)
	}
}

// handlers finds the millrace handlers in the list of a route's handlers, and in its subroutes.
func (f *finder) handlers(list []caddyhttp.MiddlewareHandler, at *place, port string) {
	for _, m := range list {
		switch m := m.(type) {
		case *Handler:
			if f.found[m] == nil {
				f.found[m] = at
			}
		case *caddyhttp.Subroute:
			f.routes(m.Routes, at, port)
		case *caddyhttp.Invoke:
			if r := f.named[m.Name]; r != nil && !f.invoked[m.Name] {
				f.invoked[m.Name] = true
				f.handlers(r.Handlers, at, port)
			}
		}
	}
}

// hostsOf returns the host names that a route matches.
func hostsOf(r *caddyhttp.Route) (names []string) {
	for _, set := range r.MatcherSets {
		for _, m := range set {
			switch m := m.(type) {
			case caddyhttp.MatchHost:
				names = append(names, m...)
			case *caddyhttp.MatchHost:
				names = append(names, *m...)
			}
		}
	}
	return names
}

// Interface guards.
var (
	_ caddy.App                   = (*App)(nil)
	_ caddy.Provisioner           = (*App)(nil)
	_ caddy.CleanerUpper          = (*App)(nil)
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
