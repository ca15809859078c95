package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/scp"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// Options configures a [Server]. BaseURL is required.
type Options struct {
	// BaseURL is the URL of the site, such as https://example.com/. Pages with other
	// URLs are not published.
	BaseURL string
	// Title is the title of the site. If empty, it is the title of the home page.
	Title string
	// Host is the static host of [Build]: github, gitlab, netlify, cloudflare, vercel, s3, nginx,
	// caddy or plain. If empty, Build guesses it from the domain of BaseURL; if that fails, it is
	// plain, which needs no configuration files.
	Host string
	// Next handles requests for paths other than those of machine documents. Next gets unchanged
	// paths. If nil, these requests get 404.
	Next http.Handler

	// Store stores the pages. In a persistent store, such as one from store/all, dates and tokens
	// stay valid between runs. If nil, the pages are in memory: documents contain only dates from
	// the source (SCP, which requires a date, uses 1970), and no tokens or deltas. The caller must
	// close the store after the server.
	Store store.Store
	// Artifacts stores large documents. If nil, they are in memory.
	Artifacts artifact.Store

	// Public serves the site as the public sees it. A page is published only if Public responds
	// with 200 and HTML. For a page of a folder, the response must equal the file. The server
	// checks each version of a page once. It also checks all pages at intervals of at least five
	// minutes, in New and Reload, and after Changed without URLs. Public gets the same kind of
	// requests as the handler of [Handler]. If nil, all pages are public.
	Public http.Handler
	// Visibility hides pages from all protocols. The zero value hides accounts, carts, logins and
	// administration.
	Visibility millrace.Visibility
	// Policy is the published usage policy. If nil, none is published.
	Policy *millrace.Policy
	// RequireKey requires a key of Store.Keys for content. SCP does not support keys and is
	// disabled.
	RequireKey bool
	// Rate is the maximum number of content requests per second for each key or address. Bursts may
	// have twice as many. If zero, there is no limit.
	Rate float64
	// Proxies are the addresses of proxies whose X-Forwarded-For is trusted.
	Proxies []netip.Prefix
	// Sections are the path prefixes whose pages get separate collections. If nil, they are the
	// first segments of all paths.
	Sections []string
	// Also lists protocols to publish that are off by default, because their specification is not
	// final: "tct-03".
	Also []string
	// Contact is the published URL or e-mail address for operators of bots. If empty, none
	// is published.
	Contact string

	// Logger receives errors. If nil, they are discarded.
	Logger *slog.Logger
}

// Server publishes a site. It is an [http.Handler], safe for concurrent use.
type Server struct {
	source millrace.Source
	log    *slog.Logger
	dir    string // folder of the search index
	counts *gateway.Metrics
	server *serving.Server
	wake   chan struct{} // signals that the source may have changed
	named  chan []string // URLs of pages that have changed

	mu      sync.Mutex // serializes Reload and Close
	o       Options
	closed  bool
	closers []func() error
}

// New returns a server that publishes a source. The server reads the source, and serves documents
// once the first edition is built; see [Server.Ready]. It reads the source again every five
// minutes, and after [Server.Changed]. If the source has a method Watch(ctx, changed func()) error,
// like a folder, the server also reads it whenever Watch calls changed. The server uses the values
// of ctx, but not its cancellation. Stop it with [Server.Close]. If an option is invalid, the error
// is ErrInvalid.
func New(ctx context.Context, source millrace.Source, o *Options) (*Server, error) {
	s, first, err := newServer(ctx, source, o, false)
	if err == nil {
		s.server = serving.NewServer(context.WithoutCancel(ctx), first, &gateway.ServerOptions{Logger: s.log})
	}
	return s, err
}

// newServer returns a server and its first service, which is not started yet.
func newServer(ctx context.Context, source millrace.Source, o *Options, static bool) (*Server, *serving.Service, error) {
	if o == nil {
		o = new(Options)
	}
	s := &Server{source: source, log: o.Logger, o: *o, counts: gateway.NewMetrics(), wake: make(chan struct{}, 1), named: make(chan []string, 16)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	first, err := s.open(ctx, static)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("publish: %w", err), s.release())
	}
	return s, first, nil
}

// base returns the canonical base URL, which ends with "/".
func (o *Options) base() (string, error) {
	base, err := canon.URL(o.BaseURL)
	if err != nil {
		return "", fmt.Errorf("%w: BaseURL %q: %w", millrace.ErrInvalid, o.BaseURL, err)
	}
	return strings.TrimSuffix(base, "/") + "/", nil
}

// open opens the resources of the server, which Close releases, and returns its first service.
func (s *Server) open(ctx context.Context, static bool) (_ *serving.Service, err error) {
	if !static {
		if s.dir, err = os.MkdirTemp("", "millrace-publish-"); err != nil {
			return nil, err
		}
		s.closers = append(s.closers, func() error { return os.RemoveAll(s.dir) })
	}
	if s.o.Store == nil {
		if s.o.Store, err = stores.Open(ctx, stores.Memory, nil); err != nil {
			return nil, err
		}
		s.closers = append(s.closers, s.o.Store.Close)
	}
	if s.o.Artifacts == nil {
		s.o.Artifacts = artifactmemory.New(nil)
	}
	return s.prepare(ctx, &s.o, static)
}

// prepare returns a service with the options. It does not start the service.
func (s *Server) prepare(ctx context.Context, o *Options, static bool) (_ *serving.Service, err error) {
	base, err := o.base()
	if err != nil {
		return nil, err
	}
	if o.Policy != nil {
		if err := o.Policy.Validate(); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
	}
	v := serving.New(s.log)
	defer func() {
		if err != nil {
			err = errors.Join(err, v.Close())
		}
	}()
	site, err := o.Store.Site(ctx, base, base)
	if err != nil {
		return nil, err
	}
	origin := &ingest.Origin{
		Name: base, From: "program", Title: base, SiteTitle: o.Title, Base: base, Store: o.Store, Source: s.source, Logger: s.log,
	}
	if err := s.connect(ctx, origin, site, o, v); err != nil {
		return nil, err
	}
	so := &serving.Options{
		Origin: origin, Site: site, Config: store.Config{Base: base, Visibility: o.Visibility}, Artifacts: o.Artifacts,
		Publisher: protocol.PublisherOptions{Policy: o.Policy, Contact: o.Contact, Also: o.Also, Static: static, Own: []any{&scp.PublisherOptions{Sections: o.Sections}}},
		Closed:    func(string) bool { return o.RequireKey },
	}
	if s.dir != "" {
		so.Index = filepath.Join(s.dir, "site")
	}
	if err := v.Open(ctx, so); err != nil {
		return nil, err
	}
	if o.Public != nil {
		if err := s.republish(ctx, site, v); err != nil {
			return nil, err
		}
	}
	v.Task(func(ctx context.Context) error { return s.update(ctx, origin, site, v) })
	table, err := bots.New(&bots.Options{Logger: s.log})
	if err != nil {
		return nil, err
	}
	var next http.Handler
	if o.Next != nil {
		if next, err = proxy.NewHandler(base, o.Next); err != nil {
			return nil, err
		}
	}
	return v, v.Answer(&gateway.Options{
		Elements: static && s.sendsNoLinks(base), Metrics: s.counts,
		Origin: next, Access: access.Options{Keys: o.Store.Keys(), Rate: o.Rate, Proxies: o.Proxies, Bots: table},
	})
}

// watcher is an optional interface of sources such as origin/folder. Watch calls changed when pages
// may have changed, until the context ends.
type watcher interface {
	Watch(ctx context.Context, changed func()) error
}

// recheckInterval is the minimum time between two periodic checks of all pages. If a check takes
// longer than a hundredth of this, the interval is a hundred times the duration of the check.
const recheckInterval = 5 * time.Minute

// watch calls changed at once, and after each possible change of the source. It calls recheck at
// intervals, and before the whole source is read again. recheck reports whether the source has
// changed; it may be nil.
func (s *Server) watch(ctx context.Context, changed func(), recheck func(context.Context) bool) error {
	var watchEnded <-chan error
	if n, ok := s.source.(watcher); ok {
		ended := make(chan error, 1)
		watchEnded = ended
		go func() { ended <- n.Watch(ctx, changed) }()
	}
	changed()
	var due <-chan time.Time
	if recheck == nil {
		recheck = func(context.Context) bool { return false }
	} else {
		due = time.After(recheckInterval)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watchEnded:
			if err != nil && ctx.Err() == nil {
				return err
			}
			watchEnded = nil
		case <-s.wake:
			recheck(ctx)
			changed()
		case <-due:
			began := time.Now()
			if recheck(ctx) {
				changed()
			}
			due = time.After(max(recheckInterval, 100*time.Since(began)))
		}
	}
}

// ServeHTTP serves machine documents, and passes other requests to Options.Next. Until the first
// edition is built, requests for machine documents get 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.server.ServeHTTP(w, r) }

// Ready waits for the first edition. If the edition cannot be built, it returns the error.
func (s *Server) Ready(ctx context.Context) error {
	if err := s.server.Ready(ctx); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// WriteMetrics writes metrics in the text format of Prometheus: counts of requests, and the state
// of the edition and of its source. Without Options.Next, the server also serves them at /metrics to
// clients in private networks.
func (s *Server) WriteMetrics(w io.Writer) error { return s.server.Now().Gateway.WriteMetrics(w) }

// Changed reports that the pages with the given URLs are new, changed or deleted. The server
// reads them soon. Without URLs, or if many URLs wait, it reads the whole source again.
func (s *Server) Changed(urls ...string) {
	if len(urls) > 0 {
		select {
		case s.named <- slices.Clone(urls):
			return
		default: // too many pages to fetch one by one
		}
	}
	select {
	case s.wake <- struct{}{}:
	default: // a full scan is already due
	}
}

// update fetches changed pages from the source, until the context ends.
func (s *Server) update(ctx context.Context, origin *ingest.Origin, site store.Site, v *serving.Service) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case urls := <-s.named:
			if _, err := origin.Update(ctx, site, v.Server, urls, false); err != nil && ctx.Err() == nil {
				s.log.Warn("could not update pages", "err", err)
			}
		}
	}
}

// Reload switches to other options. The server uses the old options until an edition with the new
// options is built. After an error, the old options stay in use. Reload ignores Store and
// Artifacts.
func (s *Server) Reload(ctx context.Context, o *Options) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("publish: %w: the server is closed", millrace.ErrUnavailable)
	}
	other := *o
	other.Store, other.Artifacts = s.o.Store, s.o.Artifacts
	next, err := s.prepare(ctx, &other, false)
	if err == nil {
		err = <-s.server.Replace(ctx, next)
	}
	if err != nil {
		return fmt.Errorf("publish: reload: %w", err)
	}
	s.o = other
	return nil
}

// Close stops the server. The caller must stop sending requests first.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.server.Close(), s.release())
}

// release closes the resources that the server has opened, in reverse order.
func (s *Server) release() error {
	var all []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		all = append(all, s.closers[i]())
	}
	return errors.Join(all...)
}
