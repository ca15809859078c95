package proxy

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/reply"
)

// maxOpen is the maximum number of concurrent requests. Other requests get 503, or 429 if their
// client has many.
const maxOpen = 4096

// Options configure a [Proxy]. The zero value works.
type Options struct {
	// Base is the base URL of the site. Its path is prepended to the paths of requests. Requests
	// from trusted proxies without X-Forwarded-Proto are treated as if they had its scheme. If
	// empty, the scheme is "http", and the path is the root.
	Base string
	// Hosts are the host names of the site, with ports that are not the default. Requests for
	// other hosts get 421, because the server may trust the name. nil = any.
	Hosts []string
	// Alongside makes the proxy read the site at its public address, from the web server that asks
	// millrace about its requests. The proxy's requests name the host of the target. [MarkRead]
	// marks them, so that the web server does not send them back.
	Alongside bool
	// Timeout is the time limit for the start of the server's response, after which the client gets
	// 504. If zero, 1 min. The rest of the response has no limit.
	Timeout time.Duration
	// ClientTimeout is the time limit of a client for each piece of a response or a request's body.
	// If zero, 1 min.
	ClientTimeout time.Duration
	// Proxies are the trusted proxies, whose X-Forwarded fields are passed on, or nil.
	Proxies []netip.Prefix
	// Transport sends the requests. If nil, [fetch.Upstream].
	Transport http.RoundTripper
	// Logger receives an entry when the server fails and when it works again. If nil, entries are
	// discarded.
	Logger *slog.Logger
}

// readField marks the requests of millrace itself to a site whose server runs alongside. Its
// value is secret, because marked requests bypass the rules for bots.
const readField = "Millrace-Read"

var readSecret = rand.Text()

// MarkRead marks a request, so that a web server alongside returns the site's own response.
func MarkRead(r *http.Request) { r.Header[readField] = []string{readSecret} }

// IsRead reports whether this process has marked a request.
func IsRead(r *http.Request) bool { return r.Header.Get(readField) == readSecret }

// Proxy passes requests to the site's own server, or to a handler in this process, and streams its
// responses. It supports all methods, bodies, codings, ranges, cookies, trailers, interim responses
// and WebSockets. Paths stay unchanged, byte for byte. As an Origin, it serves the whole host; Base
// only determines which paths are pages.
type Proxy struct {
	handler       http.Handler // serves the site in this process. If nil, the server at target.
	target        *url.URL
	base          string
	scheme        string
	hosts         []string
	alongside     bool
	clientTimeout time.Duration
	proxies       []netip.Prefix
	loop          string // name of this proxy in CDN-Loop (RFC 8586)
	log           *slog.Logger
	reverse       httputil.ReverseProxy
	slots         *access.Slots
	failing       atomic.Bool
	loggedAt      atomic.Int64 // Unix time when a failure was last logged
	idle          func()
}

// New returns a proxy of the server at a URL without a path, such as http://127.0.0.1:8000. An
// error wraps [millrace.ErrInvalid].
func New(target string, o *Options) (*Proxy, error) {
	if o == nil {
		o = new(Options)
	}
	at, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("origin: %w: %w", millrace.ErrInvalid, err)
	}
	if at.Path != "" && at.Path != "/" || at.RawQuery != "" || at.Fragment != "" {
		return nil, fmt.Errorf("origin %s: %w: the URL must not have a path", at.Redacted(), millrace.ErrInvalid)
	}
	base, err := url.Parse(o.Base)
	if err != nil {
		return nil, fmt.Errorf("base URL: %w: %w", millrace.ErrInvalid, err)
	}
	p := &Proxy{
		target: at, alongside: o.Alongside, base: strings.TrimRight(base.EscapedPath(), "/"), scheme: cmp.Or(base.Scheme, "http"),
		clientTimeout: cmp.Or(o.ClientTimeout, time.Minute), proxies: o.Proxies, loop: "millrace;id=" + rand.Text()[:12],
		log: o.Logger, slots: access.NewSlots(maxOpen, nil),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	for _, h := range o.Hosts {
		p.hosts = append(p.hosts, authority(h))
	}
	transport := o.Transport
	if transport == nil {
		uo := &fetch.UpstreamOptions{Timeout: o.Timeout}
		if _, err := netip.ParseAddr(at.Hostname()); err == nil && len(p.hosts) > 0 {
			uo.ServerName = (&url.URL{Host: p.hosts[0]}).Hostname() // the certificate names the site, not the server's address
		}
		t, err := fetch.Upstream(at, uo)
		if err != nil {
			return nil, fmt.Errorf("origin: %w", err)
		}
		transport, p.idle = t, t.CloseIdleConnections
	}
	p.reverse = httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: transport, ModifyResponse: p.modify, ErrorHandler: p.respondFailure,
		BufferPool: &buffers{}, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	return p, nil
}

// NewHandler returns a proxy of a site that a handler in this process serves. The handler gets
// the requests unchanged, with their writers and for every host. base is the base URL of the site.
func NewHandler(base string, h http.Handler) (*Proxy, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("base URL: %w: %w", millrace.ErrInvalid, err)
	}
	return &Proxy{handler: h, base: strings.TrimRight(u.EscapedPath(), "/"), hosts: []string{authority(u.Host)}}, nil
}

// InProcess reports whether a handler in this process serves the site.
func (p *Proxy) InProcess() bool { return p.handler != nil }

// Close closes idle connections to the server.
func (p *Proxy) Close() {
	if p.idle != nil {
		p.idle()
	}
}

// ServeHTTP passes on a request whose path is relative to the base.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.base != "" {
		inner, u := *r, *r.URL
		u.Path, u.RawPath = unescaped(p.base)+r.URL.Path, p.base+r.URL.EscapedPath()
		inner.URL = &u
		r = &inner
	}
	p.Pass(w, r)
}

func unescaped(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return path
	}
	return plain
}

// Errors for requests that are refused or that fail.
var (
	errHost    = &millrace.RequestError{Status: http.StatusMisdirectedRequest, Text: "this server does not serve that host"}
	errTunnel  = &millrace.RequestError{Status: http.StatusNotImplemented, Text: "method not supported"}
	errTarget  = &millrace.RequestError{Status: http.StatusBadRequest, Text: "the request target is not a path"}
	errLoop    = &millrace.RequestError{Status: http.StatusLoopDetected, Text: "request loop: this server is configured as its own origin"}
	errPassing = &millrace.RequestError{Status: http.StatusServiceUnavailable, Text: "too many concurrent requests"}
	errOpen    = &millrace.RequestError{Status: http.StatusTooManyRequests, Text: "too many concurrent requests from this client"}
	errDown    = &millrace.RequestError{Status: http.StatusBadGateway, Text: "the origin server failed"}
	errSlow    = &millrace.RequestError{Status: http.StatusGatewayTimeout, Text: "the origin server did not respond in time"}
	errBroken  = &millrace.RequestError{Status: http.StatusBadRequest, Text: "invalid request body"}
	errUpload  = &millrace.RequestError{Status: http.StatusRequestTimeout, Text: "the request body did not arrive in time"}
)

// Misdirected returns the error of a request for an unknown host, or nil.
func (p *Proxy) Misdirected(r *http.Request) *millrace.RequestError {
	if p.handler != nil || p.hosts == nil || p.names(r.Host) {
		return nil
	}
	return errHost
}

// names reports whether the site has a host name.
func (p *Proxy) names(host string) bool {
	return slices.Contains(p.hosts, host) || slices.Contains(p.hosts, authority(host))
}

// authority returns a host and port in canonical form.
func authority(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":80", ":443"} {
		if rest, ok := strings.CutSuffix(host, port); ok && !strings.HasSuffix(rest, ":") {
			host = rest
		}
	}
	return strings.TrimSuffix(host, ".")
}

// refused returns the error of a request that a proxy must not pass on, or nil.
func (p *Proxy) refused(r *http.Request) *millrace.RequestError {
	switch {
	case r.Method == http.MethodConnect, r.Method == http.MethodTrace:
		return errTunnel
	case !strings.HasPrefix(r.URL.Path, "/") && (r.URL.Path != "" || r.URL.Host == ""):
		return errTarget
	}
	for _, hops := range r.Header["Cdn-Loop"] {
		if strings.Contains(hops, p.loop) {
			return errLoop
		}
	}
	return nil
}

// Pass passes on a request with its path unchanged.
func (p *Proxy) Pass(w http.ResponseWriter, r *http.Request) {
	if p.handler != nil {
		p.handler.ServeHTTP(w, r)
		return
	}
	if reqErr := cmp.Or(p.Misdirected(r), p.refused(r)); reqErr != nil {
		reply.Error(w, r, reqErr.Status, reqErr)
		return
	}
	end, err := p.slots.Enter(access.ClientAt(access.ClientAddress(r, p.proxies)))
	if err != nil {
		passErr := errPassing
		if errors.Is(err, access.ErrTooManyStreams) {
			passErr = errOpen
		}
		w.Header().Set("Retry-After", "5")
		reply.Error(w, r, passErr.Status, passErr)
		return
	}
	defer end()
	to := newDeadlineWriter(w, r, p.clientTimeout)
	defer to.close()
	in := *r
	if r.Body != nil && r.Body != http.NoBody {
		in.Body = to.reading(r.Body)
	}
	if up := r.Header["Upgrade"]; up != nil && !(len(up) == 1 && strings.EqualFold(up[0], "websocket")) {
		// Drop all other upgrades. After an upgrade to HTTP/2, requests on the connection would
		// bypass the gateway.
		in.Header = r.Header.Clone()
		in.Header.Del("Upgrade")
		in.Header.Del("Http2-Settings")
	}
	p.reverse.ServeHTTP(to, &in)
}

func (p *Proxy) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p.proxies, func(n netip.Prefix) bool { return n.Contains(a) })
}

// respondFailure responds with an error after a failure of the server.
func (p *Proxy) respondFailure(w http.ResponseWriter, r *http.Request, err error) {
	to, _ := w.(*deadlineWriter)
	switch {
	case to != nil && to.late():
		w.Header().Set("Connection", "close")
		reply.Error(w, r, errUpload.Status, errUpload)
		return
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the client has disconnected
	case to != nil && to.broken(): // the client caused the error
		w.Header().Set("Connection", "close")
		reply.Error(w, r, errBroken.Status, errBroken)
		return
	}
	reqErr := errDown
	if fetch.IsTimeout(err) {
		reqErr = errSlow
	}
	p.logFailure(r, err)
	w.Header().Set("Retry-After", "10")
	reply.Error(w, r, reqErr.Status, reqErr)
}

// logInterval is the minimum number of seconds between two logs of failures.
const logInterval = 30

// logFailure logs a failure of the server, at intervals.
func (p *Proxy) logFailure(r *http.Request, err error) {
	p.failing.Store(true)
	now := time.Now().Unix()
	if last := p.loggedAt.Load(); now-last >= logInterval && p.loggedAt.CompareAndSwap(last, now) {
		p.log.Warn("origin server failed", "origin", p.target.Host, "path", access.Redact(r.URL.Path), "err", err)
	}
}

// buffers is a pool of buffers for copying responses. While few buffers are in use, they are
// large, so most pages need only one read and one write.
type buffers struct {
	large, small sync.Pool
	out          atomic.Int64 // number of large buffers in use
}

const (
	largeBuffer  = 128 << 10
	smallBuffer  = 32 << 10
	largeBuffers = 64 // maximum number of large buffers in use
)

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if b.out.Add(1) <= largeBuffers {
		if p, ok := b.large.Get().(*[largeBuffer]byte); ok {
			return p[:]
		}
		return new([largeBuffer]byte)[:]
	}
	b.out.Add(-1)
	if p, ok := b.small.Get().(*[smallBuffer]byte); ok {
		return p[:]
	}
	return new([smallBuffer]byte)[:]
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(p []byte) {
	if len(p) == largeBuffer {
		b.out.Add(-1)
		b.large.Put((*[largeBuffer]byte)(p))
		return
	}
	b.small.Put((*[smallBuffer]byte)(p))
}
