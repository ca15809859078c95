package publish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/pipenet"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/subrequest"
	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/store"
)

// Handler returns a source for [New] that reads the site served by h in this process. It reads a
// WordPress site by its REST API, and crawls other sites by their sitemaps and links. It obeys
// robots.txt. h gets requests for the host of Options.BaseURL without credentials, from the address
// 192.0.2.1, which is reserved for documentation (RFC 5737).
func Handler(h http.Handler) millrace.Source { return &handlerSource{h} }

// handlerSource is a source that is opened by the server.
type handlerSource struct{ h http.Handler }

var errClosed = fmt.Errorf("source of a handler: %w: it can be read only by publish.New", millrace.ErrUnavailable)

// Changes implements [millrace.Source].
func (*handlerSource) Changes(context.Context, millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) { yield(millrace.Change{}, errClosed) }
}

// Page implements [millrace.Source].
func (*handlerSource) Page(context.Context, millrace.Ref) (*millrace.Page, error) {
	return nil, errClosed
}

// open opens the site as the source of an origin. If the site does not respond and was never read,
// the way to read it is unknown, and the error is ErrUnavailable. The returned function closes the
// connections.
func (s *handlerSource) open(ctx context.Context, o *ingest.Origin, site store.Site, log *slog.Logger) (_ func() error, err error) {
	at, err := url.Parse(o.Base)
	if err != nil {
		return nil, err
	}
	const server = "127.0.0.1:80"
	srv := &http.Server{Handler: visitor{s.h, at}, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	l := pipenet.Serve(srv)
	client := fetch.New(&fetch.Options{
		Delay: -1, Logger: log, Behind: map[string]*url.URL{canon.Origin(o.Base): {Scheme: "http", Host: server}},
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != server {
				return nil, fmt.Errorf("connect to %s: %w: not the handler's host", addr, millrace.ErrForbidden)
			}
			return l.Dial(ctx, network, addr)
		},
	})
	closer := func() error {
		err := o.Close()
		client.CloseIdleConnections()
		return errors.Join(err, srv.Close(), l.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closer())
		}
	}()
	head, err := site.Head(ctx)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		return nil, err
	}
	if head == nil || head.Site().Pages == 0 {
		if resp := (visitor{s.h, at}).get(ctx, http.MethodGet, o.Base, 0); resp.Status >= 500 || resp.Status == 0 {
			return nil, fmt.Errorf("site responds with status %d: %w", resp.Status, millrace.ErrUnavailable)
		}
	}
	return closer, o.Open(ctx, site, "", origin.Options{Client: client.HTTP()})
}

// visitor passes requests to the handler of a site, as from a client without credentials.
type visitor struct {
	h  http.Handler
	at *url.URL // base URL of the site
}

// ServeHTTP implements [http.Handler].
func (v visitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Del("X-Forwarded-Proto")
	r.Header.Del("X-Forwarded-Host")
	if r.RemoteAddr = "192.0.2.1:1024"; v.at.Scheme == "https" {
		r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: v.at.Hostname()}
	}
	v.h.ServeHTTP(w, r)
}

// get returns the response for a URL, with no more than most bytes of its body.
func (v visitor) get(ctx context.Context, method, at string, most int) *subrequest.Response {
	r, err := http.NewRequestWithContext(ctx, method, at, http.NoBody)
	if err != nil {
		return new(subrequest.Response)
	}
	r.RequestURI, r.Host = r.URL.RequestURI(), v.at.Host
	r.URL.Scheme, r.URL.Host = "", ""
	r.Header.Set("User-Agent", "millrace")
	resp := subrequest.Do(v, r, most)
	if resp.Status == 0 { // like net/http
		resp.Status = http.StatusOK
	}
	return resp
}

// connect opens the source of the origin, and restricts it to public pages.
func (s *Server) connect(ctx context.Context, origin *ingest.Origin, site store.Site, o *Options, v *serving.Service) error {
	if h, ok := s.source.(*handlerSource); ok {
		origin.Source = nil
		closer, err := h.open(ctx, origin, site, s.log)
		if err != nil {
			return err
		}
		v.OnClose(closer)
	}
	var recheck func(ctx context.Context) bool
	limit := func() {}
	if o.Public != nil {
		p := newPublicOnly(origin, site, o.Public)
		limit = p.limit
		if err := p.load(ctx); err != nil {
			return err
		}
		if _, err := p.check(ctx); err != nil {
			return err
		}
		recheck = func(ctx context.Context) bool {
			changed, err := p.check(ctx)
			if err != nil && ctx.Err() == nil {
				s.log.Error("could not check public pages", "err", err)
			}
			return changed
		}
	}
	watch := func(ctx context.Context, changed func()) error { return s.watch(ctx, changed, recheck) }
	origin.Watch = watch
	if fallback := origin.Fallback; fallback != nil {
		origin.Fallback = func(err error) bool {
			found := fallback(err)
			if found {
				origin.Watch = watch
				limit()
			}
			return found
		}
	}
	return nil
}
