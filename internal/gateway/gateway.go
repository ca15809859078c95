package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/internal/sites"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/store"
)

// Options configure a [Gateway]. The zero value works.
type Options struct {
	// Base is the base URL of the site's pages. Only its path is used; the paths of requests
	// include it. If empty, the root.
	Base string
	// EndpointBase is the base URL of the machine documents. If empty, Base.
	EndpointBase string
	// Origin serves the site's own pages and files, with paths relative to Base. If nil, there are
	// none (a mirror).
	Origin http.Handler
	// Place is where the gateway runs. If it is [sites.Alongside], the gateway serves [PagePath]
	// for the site's server, and Origin may be a proxy to that server.
	Place sites.Place
	// RequestLog receives one line per request. It may be nil.
	RequestLog io.Writer
	// Logger receives failures. If nil, they are discarded.
	Logger *slog.Logger

	// Healthy returns an error if the site should not get requests. If nil, the site is always
	// healthy.
	Healthy func() error
	// Status returns lines about this process for /readyz. It is called only if there is an
	// edition. It may be nil.
	Status func(ctx context.Context) []string

	// Access limits requests. New sets its Policy and Logger.
	Access access.Options
	// Update implements [millrace.Live]. If nil, single pages cannot be updated.
	Update func(ctx context.Context, urls []string, gone bool) (millrace.Counts, error)

	// Service handles requests before the protocols do. It may be nil. ServiceGuarded reports that
	// the service needs a key with the scope read. ServiceName is the name of the service's
	// protocol, such as "mcp", and also its path. ServiceVersion is its version.
	Service        millrace.Handler
	ServiceGuarded bool
	ServiceName    string
	ServiceVersion string

	// Events receives one event per response to a bot, after the response is sent. It may be nil. Record
	// must not block. Requests of the owner and of clients that are not bots cause no events. The
	// field HTML of an event is -1 for the continuation of a page, otherwise 0.
	Events interface{ Record(e store.Event) }

	// Policy is the usage policy, which responses and robots.txt declare. It may be nil. robots.txt also
	// disallows the bots for the refused purposes.
	Policy *millrace.Policy
	// RobotsLines selects the lines of robots.txt that declare the policy.
	RobotsLines policy.RobotsLines
	// Visibility decides which pages are hidden. The gateway also removes hidden pages from
	// the site's own sitemap, by path.
	Visibility millrace.Visibility

	// Signer signs the site-wide documents. If nil, they are unsigned.
	Signer edition.Signer
	// Directory serves the host's signing keys at their well-known path. If nil, the site may serve
	// its own.
	Directory http.Handler

	// Render serves the pages as simple HTML for people, if there is no Origin and no content needs
	// a key.
	Render bool

	// Elements also adds each link of a page to its head, as a link element, for servers that do not
	// send Link fields.
	Elements bool

	// Texts are public text files by their paths under Base, such as a proof of ownership.
	// They take precedence over documents, and access rules do not apply to them.
	Texts map[string]string

	// Metrics count requests and are served at /metrics to nearby clients. They may be nil.
	Metrics        *Metrics
	MetricsOptions MetricsOptions

	// Dashboard serves DashboardPath, a path of the host such as "/dashboard", and all paths below
	// it, for every host. It may be nil. The paths of its requests are relative to DashboardPath. The
	// dashboard takes precedence over everything else, and must authenticate its users.
	Dashboard     http.Handler
	DashboardPath string
}

// maxBody is the maximum size in bytes of the body of a request for documents, pages or the
// dashboard.
const maxBody = 64 << 10

// Gateway serves a site. It is an [http.Handler].
type Gateway struct {
	server       *edition.Server
	base         string // paths without the trailing "/"
	endpointBase string
	origin       http.Handler
	front        *proxy.Proxy // origin if it is a [proxy.Proxy], else nil
	mount        string       // path of the dashboard; "" if none
	log          *slog.Logger
	requests     *requestLog
	guard        *access.Guard
	header       *policy.Header   // If nil, there is no policy.
	site         *sites.Documents // If nil, there is no edition server.
	pages        *proxy.Pages     // If nil, there is no edition server.
	o            Options
	steps        []step
	serves       bool // a protocol handles requests itself
	guarded      bool // the content of a protocol needs a key
	timed        bool // the duration of requests is recorded
	ending       context.Context
	end          context.CancelFunc

	responses sync.Pool

	signatures chan struct{} // limits the signatures verified after a response
	tokens     sync.Map      // see OwnRequests
}

// New returns a gateway for a server. If server is nil, the gateway serves only the Service. An
// error wraps [millrace.ErrInvalid].
func New(server *edition.Server, o *Options) (*Gateway, error) {
	if o == nil {
		o = new(Options)
	}
	g := &Gateway{server: server, origin: o.Origin, log: o.Logger, o: *o, signatures: make(chan struct{}, signing)}
	g.front, _ = o.Origin.(*proxy.Proxy)
	var err error
	if g.base, err = basepath.Of(o.Base); err != nil {
		return nil, err
	}
	if g.endpointBase, err = basepath.Of(cmp.Or(o.EndpointBase, o.Base)); err != nil {
		return nil, err
	}
	if o.Dashboard != nil {
		if g.mount, err = mount(o.DashboardPath); err != nil {
			return nil, err
		}
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if o.RequestLog != nil {
		g.requests = newRequestLog(o.RequestLog)
	}
	g.ending, g.end = context.WithCancel(context.Background())
	allowed := o.Access
	allowed.Policy, allowed.Logger = o.Policy, g.log
	if g.guard, err = access.New(&allowed); err != nil {
		return nil, err
	}
	var crawlers func(millrace.Purpose) []string
	if o.Access.Bots != nil {
		crawlers = o.Access.Bots.Crawlers
	}
	g.header = policy.NewHeader(o.Policy)
	if server != nil {
		so := &sites.Options{
			Base: g.base, EndpointBase: cmp.Or(o.EndpointBase, o.Base), Origin: o.Origin, Policy: o.Policy, Visibility: o.Visibility, Signer: o.Signer, Logger: g.log,
		}
		so.Lines = o.RobotsLines
		if o.Service != nil {
			so.MCP = sites.MCP{Path: "/" + o.ServiceName, Version: o.ServiceVersion, Key: o.ServiceGuarded}
		}
		so.Robots = policy.NewRobots(o.Policy, &policy.RobotsOptions{Crawlers: crawlers, Refused: g.guard.RefusedBots(), Lines: o.RobotsLines})
		if g.front != nil {
			so.Host = http.HandlerFunc(g.front.Pass)
		}
		if g.site, err = sites.New(server, so); err != nil {
			return nil, err
		}
		po := &proxy.PagesOptions{Base: o.Base, Origin: o.Origin, Welcome: g.welcome, Home: g.homeLinks, Signed: g.guard.HasSignature, Elements: o.Elements, Logger: g.log}
		if o.Render && o.Origin == nil && !server.Guarded() {
			po.Origin = rendered{g}
		}
		if g.pages, err = proxy.NewPages(g.ending, server, po); err != nil {
			return nil, err
		}
	}
	g.serves = o.Service != nil
	if server != nil {
		g.serves, g.guarded = g.serves || server.HasHandlers(), server.Guarded()
	}
	if g.mount != "" {
		if err := g.covered(); err != nil {
			return nil, err
		}
	}
	g.steps = g.newSteps()
	g.timed = g.requests != nil || o.Events != nil || o.Metrics != nil
	return g, nil
}

// ServeHTTP responds to one request. A panic becomes a 500.
func (g *Gateway) ServeHTTP(to http.ResponseWriter, r *http.Request) { g.answer(to, r, false) }

// answer implements ServeHTTP. owned reports that the owner sent the request from this
// process.
func (g *Gateway) answer(to http.ResponseWriter, r *http.Request, owned bool) {
	w, _ := g.responses.Get().(*response)
	if w == nil {
		w = new(response)
	}
	*w = response{ResponseWriter: to, g: g, r: r, Request: g.guard.Request(r)}
	w.Owned = owned || g.marked(r)
	if g.timed {
		w.start = time.Now()
	}
	defer func() {
		w.Leave()
		if g.requests != nil {
			g.requests.line(r, w.Host(), w.status, w.bytes, w.start)
		}
		if g.o.Events != nil || g.o.Metrics != nil {
			g.event(w, r)
		}
		if !w.Broken { // the handler may still use a broken response
			*w = response{}
			g.responses.Put(w)
		}
	}()
	defer func() {
		if cause := recover(); cause != nil {
			g.recovered(w, r, cause)
		}
	}()
	g.route(w, r)
}

// recovered ends a request whose handler panicked.
func (g *Gateway) recovered(w *response, r *http.Request, cause any) {
	err, ok := cause.(error)
	aborted := ok && errors.Is(err, http.ErrAbortHandler)
	if !aborted {
		g.log.Error("panic", "path", access.Redact(r.URL.Path), "err", cause, "stack", string(debug.Stack()))
	}
	if aborted || w.status != 0 {
		// The client has disconnected, or a part of the response is sent. Break the connection.
		w.Broken = true
		panic(http.ErrAbortHandler)
	}
	clear(w.Header())
	g.refuse(w, r, http.StatusInternalServerError, nil)
}

// Run serves the gateway until the context ends, as [Server.Run] does. o may be
// nil.
func (g *Gateway) Run(ctx context.Context, ln net.Listener, o *ServerOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	tend, answered := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	defer answered()
	tasks.Go(func() { g.RunBackground(tend) })
	tasks.Go(func() { g.Publish(ctx) })
	return NewServer(g, o).Run(ctx, ln)
}

// Publish serves the previous edition at once. It then publishes a new edition each time the site
// changes, until the context ends.
func (g *Gateway) Publish(ctx context.Context) {
	if g.server == nil {
		return
	}
	err := g.server.Refresh(ctx)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) && ctx.Err() == nil {
		g.log.Warn("could not serve previous edition", "err", err)
	}
	g.server.Run(ctx)
}

// RunBackground runs the background work of the gateway until the context ends.
func (g *Gateway) RunBackground(ctx context.Context) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { g.guard.Run(ctx) })
	if g.requests != nil {
		tasks.Go(func() { g.requests.run(ctx) })
	}
}

// EndStreams ends all event streams. Other requests continue.
func (g *Gateway) EndStreams() { g.end() }

// SiteWidePaths returns the paths of the site-wide documents that the site itself lacks, relative
// to the common base of pages and documents.
func (g *Gateway) SiteWidePaths(ctx context.Context) []string { return g.site.SiteWidePaths(ctx) }

// homeLinks returns the site-wide links of the home page.
func (g *Gateway) homeLinks(ed *edition.Edition) []millrace.Link {
	if (g.base == "" || g.front != nil) && len(sites.Entries(ed)) > 0 {
		return g.site.CatalogLinks()
	}
	return nil
}
