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
	// Base is the base URL of the site's pages; only its path matters here:
	// requests come with it. "" = the root.
	Base string
	// Docs is the base URL of the machine documents; "" = Base.
	Docs string
	// Origin answers for the site's own pages and files; its request paths
	// are relative to Base. nil = the site has none here (a mirror).
	Origin http.Handler
	// AccessLog gets one line per request; nil = none.
	AccessLog io.Writer
	// Log receives failures; nil = slog.Default().
	Log *slog.Logger

	// Access says which requests are answered. Its Policy and Log are those
	// below and above.
	Access access.Options
	// Update does what [millrace.Live] says; nil = pages cannot be asked for
	// singly.
	Update func(ctx context.Context, urls []string, gone bool) (millrace.Counts, error)

	// Service answers requests beside the protocols of the press, and before them;
	// nil = nothing does. ServiceGuarded: it needs a key that may read. ServiceName
	// is what its protocol is called, such as "mcp".
	Service        millrace.Handler
	ServiceGuarded bool
	ServiceName    string

	// Events receives one event per response to a bot, after the response is
	// sent; nil = none. Record must not block. Clients outside Bots and the
	// site's owner cause no events. HTML is -1 for a continuation of a page
	// that comes in parts, else 0.
	Events interface{ Record(e store.Event) }

	// Policy is what the owner says about the use of the content, which answers
	// and robots.txt say too; nil = nothing. Robots.txt refuses those of Bots who
	// come for what is refused.
	Policy *millrace.Policy
	// Visibility is the rule by which the pages in the press are hidden: the
	// site's own sitemap loses them too, by their paths.
	Visibility millrace.Visibility

	// Signer signs the documents that are composed here, as the press's signs
	// those of the protocols; nil = unsigned.
	Signer edition.Signer
	// Directory answers with the keys that sign for the site's host, at the path
	// that all hosts have for them; nil = the site may have its own there.
	Directory http.Handler

	// Texts are texts at paths under Base, for everybody, such as a file that
	// proves whose the site is. They come before all else at their paths.
	Texts map[string]string

	// Metrics count the requests, and are given at /metrics to clients that are
	// near; nil = nothing is counted.
	Metrics        *Metrics
	MetricsOptions MetricsOptions

	// Dashboard answers at and below DashboardPath, a path of the host's such as
	// "/dashboard"; the paths of its requests are relative to that. It comes before
	// all else there, for every host, and nothing says that it is there; who may see
	// it, it finds out itself. It may be nil.
	Dashboard     http.Handler
	DashboardPath string
}

// maxBody is the most bytes of a request's body, which nothing reads.
const maxBody = 64 << 10

// Gateway serves a site. It is an [http.Handler].
type Gateway struct {
	press    *edition.Press
	base     string // paths without the "/" at the end
	docs     string
	origin   http.Handler
	front    *proxy.Proxy // the origin, if it is one
	mount    string       // subject the dashboard; "" if none
	log      *slog.Logger
	access   *accessLog
	guard    *access.Guard
	header   *policy.Header   // nil = the policy says nothing
	site     *sites.Documents // nil = there is no press
	pages    *proxy.Pages     // nil = there is no press
	o        Options
	serves   bool         // a protocol answers requests itself
	guarded  bool         // a protocol's content needs a key
	timed    bool         // somebody wants to know how long requests take
	measures http.Handler // subject Options.Metrics; nil = there are none
	ending   context.Context
	end      context.CancelFunc

	responses sync.Pool

	signatures chan struct{} // holds a token for each that is looked at when its request has been answered
}

// New returns a gateway of a press; nil = of the Service alone. An error wraps
// [millrace.ErrInvalid].
func New(press *edition.Press, o *Options) (*Gateway, error) {
	if o == nil {
		o = new(Options)
	}
	g := &Gateway{press: press, origin: o.Origin, log: o.Log, o: *o, signatures: make(chan struct{}, signing)}
	g.front, _ = o.Origin.(*proxy.Proxy)
	var err error
	if g.base, err = basepath.Of(o.Base); err != nil {
		return nil, err
	}
	if g.docs, err = basepath.Of(cmp.Or(o.Docs, o.Base)); err != nil {
		return nil, err
	}
	if o.Dashboard != nil {
		if g.mount, err = mount(o.DashboardPath); err != nil {
			return nil, err
		}
	}
	if g.log == nil {
		g.log = slog.Default()
	}
	if o.AccessLog != nil {
		g.access = newAccessLog(o.AccessLog)
	}
	g.ending, g.end = context.WithCancel(context.Background())
	allowed := o.Access
	allowed.Policy, allowed.Log = o.Policy, g.log
	if g.guard, err = access.New(&allowed); err != nil {
		return nil, err
	}
	var crawlers func(millrace.Purpose) []string
	if o.Access.Bots != nil {
		crawlers = o.Access.Bots.Crawlers
	}
	g.header = policy.NewHeader(o.Policy)
	if press != nil {
		so := &sites.Options{
			Base: g.base, Docs: cmp.Or(o.Docs, o.Base), Origin: o.Origin, Policy: o.Policy, Robots: policy.NewRobots(o.Policy, crawlers, g.guard.Refused()), Visibility: o.Visibility, Signer: o.Signer, Log: g.log,
		}
		if g.front != nil {
			so.Host = http.HandlerFunc(g.front.Pass)
		}
		if g.site, err = sites.New(press, so); err != nil {
			return nil, err
		}
		po := &proxy.PagesOptions{Base: o.Base, Origin: o.Origin, Welcome: welcome{g}, Home: g.homeLinks, Signed: g.guard.Signed, Log: g.log}
		if g.pages, err = proxy.NewPages(g.ending, press, po); err != nil {
			return nil, err
		}
	}
	g.serves = o.Service != nil
	if press != nil {
		g.serves, g.guarded = g.serves || press.Serves(), press.Guarded()
	}
	if g.mount != "" {
		if err := g.covered(); err != nil {
			return nil, err
		}
	}
	if o.Metrics != nil {
		g.measures = g.measured()
	}
	g.timed = g.access != nil || o.Events != nil || o.Metrics != nil
	return g, nil
}

// ServeHTTP answers one request. A panic of anything below becomes a 500.
func (g *Gateway) ServeHTTP(to http.ResponseWriter, r *http.Request) { g.answer(to, r, false) }

// answer is ServeHTTP. owned: the request is the owner's, in this process.
func (g *Gateway) answer(to http.ResponseWriter, r *http.Request, owned bool) {
	w, _ := g.responses.Get().(*response)
	if w == nil {
		w = new(response)
	}
	*w = response{ResponseWriter: to, g: g, r: r, Request: g.guard.Request(r)}
	w.Owned = owned
	if g.timed {
		w.start = time.Now()
	}
	defer func() {
		w.Leave()
		if g.access != nil {
			g.access.line(r, w.Host(), w.status, w.bytes, w.start)
		}
		if g.o.Events != nil || g.o.Metrics != nil {
			g.event(w, r)
		}
		if !w.Broken { // somebody may still hold what was broken off
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

// recovered ends a request whose handler has panicked.
func (g *Gateway) recovered(w *response, r *http.Request, cause any) {
	err, ok := cause.(error)
	aborted := ok && errors.Is(err, http.ErrAbortHandler)
	if !aborted {
		g.log.Error("panic", "path", access.Redact(r.URL.Path), "cause", cause, "stack", string(debug.Stack()))
	}
	if aborted || w.status != 0 {
		// The client is gone, or half of the response is sent: the connection
		// must not look intact.
		w.Broken = true
		panic(http.ErrAbortHandler)
	}
	clear(w.Header())
	g.refuse(w, r, http.StatusInternalServerError, nil)
}

// Run serves with one gateway, as [Server.Run] does, from beginning to end. o
// may be nil.
func (g *Gateway) Run(ctx context.Context, ln net.Listener, o *ServerOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	tend, answered := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	defer answered()
	tasks.Go(func() { g.Tend(tend) })
	tasks.Go(func() { g.Publish(ctx) })
	return NewServer(g, o).Run(ctx, ln)
}

// Publish serves the previous edition at once, and publishes at each change of
// which the press is notified, until the context ends.
func (g *Gateway) Publish(ctx context.Context) {
	if g.press == nil {
		return
	}
	err := g.press.Refresh(ctx)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) && ctx.Err() == nil {
		g.log.Warn("the previous edition cannot be served", "err", err)
	}
	g.press.Run(ctx)
}

// Tend does what there is to do beside answering, as long as there are requests
// to answer: until the context ends.
func (g *Gateway) Tend(ctx context.Context) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { g.guard.Run(ctx) })
	if g.access != nil {
		tasks.Go(func() { g.access.run(ctx) })
	}
}

// End sends those away who only listen. All others are answered as before.
func (g *Gateway) End() { g.end() }

// SiteWidePaths lists the documents that are composed and that the site need not have
// itself, by their paths under the base of pages and documents, which is one.
func (g *Gateway) SiteWidePaths(ctx context.Context) []string { return g.site.SiteWidePaths(ctx) }

// homeLinks returns the links of the home page that belong to no single protocol.
func (g *Gateway) homeLinks(ed *edition.Edition) []millrace.Link {
	if (g.base == "" || g.front != nil) && len(sites.Entries(ed)) > 0 {
		return []millrace.Link{g.site.CatalogLink()}
	}
	return nil
}
