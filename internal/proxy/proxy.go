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

// Options configure a [Proxy]. The zero value works.
type Options struct {
	// Base is the base URL of the site: its path is put before that of the
	// requests that the proxy gets by itself, its scheme is what a trusted proxy
	// in front is taken to have been asked by. "" = the root, by http.
	Base string
	// Hosts are the names that the site goes by, with their ports if these are not
	// the usual ones; requests for others are refused (421), since who asks would
	// choose what the site's server takes for its own name. nil = any.
	Hosts []string
	// Timeout is how long the site's server may take to begin an answer, else
	// the client gets 504; 0 = 1 min. How long the rest takes is not limited.
	Timeout time.Duration
	// ClientTimeout is how long a client may take for each piece of an answer, and
	// between two pieces of what it sends; 0 = 1 min.
	ClientTimeout time.Duration
	// MaxOpen is how many requests pass at once, others get 503, or 429 who has
	// many; 0 = 4096.
	MaxOpen int
	// Proxies are the addresses whose X-Forwarded fields are trusted and passed
	// on; nil if none.
	Proxies []netip.Prefix
	// Transport sends the requests; nil = what [fetch.Upstream] makes.
	Transport http.RoundTripper
	// Log receives an entry when the site's server stops answering and when it
	// answers again; nil = slog.Default().
	Log *slog.Logger
}

// Proxy passes requests on to the site's own server, and its answers back as
// they come: methods, bodies, codings, ranges, cookies, trailers, interim
// answers and WebSockets. A path goes there exactly as it has come,
// however it is spelled. As [Options.Origin] it stands in front of the whole
// host, and [Options.Base] only says which of its paths are pages.
type Proxy struct {
	target        *url.URL
	base          string
	scheme        string
	hosts         []string
	clientTimeout time.Duration
	proxies       []netip.Prefix
	loop          string // this proxy in CDN-Loop (RFC 8586)
	log           *slog.Logger
	reverse       httputil.ReverseProxy
	slots         *access.Slots
	failing       atomic.Bool
	loggedAt      atomic.Int64 // when failures were last told of, in seconds
	idle          func()
}

// New returns a proxy of the server at a URL without a path, such as
// http://127.0.0.1:8000. The error is [millrace.ErrInvalid].
func New(target string, o *Options) (*Proxy, error) {
	if o == nil {
		o = new(Options)
	}
	at, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("origin: %w: %w", millrace.ErrInvalid, err)
	}
	if at.Path != "" && at.Path != "/" || at.RawQuery != "" || at.Fragment != "" {
		return nil, fmt.Errorf("origin %s: %w: paths go to it as they come, so that it has none itself", at.Redacted(), millrace.ErrInvalid)
	}
	base, err := url.Parse(o.Base)
	if err != nil {
		return nil, fmt.Errorf("base URL: %w: %w", millrace.ErrInvalid, err)
	}
	p := &Proxy{
		target: at, base: strings.TrimRight(base.EscapedPath(), "/"), scheme: cmp.Or(base.Scheme, "http"),
		clientTimeout: cmp.Or(o.ClientTimeout, time.Minute), proxies: o.Proxies, loop: "millrace;id=" + rand.Text()[:12],
		log: o.Log, slots: access.NewSlots(cmp.Or(o.MaxOpen, 4096), nil),
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	for _, h := range o.Hosts {
		p.hosts = append(p.hosts, authority(h))
	}
	transport := o.Transport
	if transport == nil {
		uo := &fetch.UpstreamOptions{Timeout: o.Timeout}
		if _, err := netip.ParseAddr(at.Hostname()); err == nil && len(p.hosts) > 0 {
			uo.ServerName = (&url.URL{Host: p.hosts[0]}).Hostname() // an address has no certificate
		}
		t, err := fetch.Upstream(at, uo)
		if err != nil {
			return nil, fmt.Errorf("origin: %w", err)
		}
		transport, p.idle = t, t.CloseIdleConnections
	}
	p.reverse = httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: transport, ModifyResponse: p.modify, ErrorHandler: p.trouble,
		BufferPool: &buffers{}, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	return p, nil
}

// Close ends the connections to the site's server that no request uses.
func (p *Proxy) Close() {
	if p.idle != nil {
		p.idle()
	}
}

// ServeHTTP passes a request on whose path is relative to the base.
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

// Errors of requests that are not passed on.
var (
	errHost    = &millrace.RequestError{Status: http.StatusMisdirectedRequest, Text: "this is not the server of that host"}
	errTunnel  = &millrace.RequestError{Status: http.StatusNotImplemented, Text: "this method is not passed on"}
	errTarget  = &millrace.RequestError{Status: http.StatusBadRequest, Text: "the request's target is no path"}
	errLoop    = &millrace.RequestError{Status: http.StatusLoopDetected, Text: "the request has been here before: this server stands in front of itself"}
	errPassing = &millrace.RequestError{Status: http.StatusServiceUnavailable, Text: "too many requests at once"}
	errOpen    = &millrace.RequestError{Status: http.StatusTooManyRequests, Text: "too many requests of one client at once"}
	errDown    = &millrace.RequestError{Status: http.StatusBadGateway, Text: "the site's own server does not answer"}
	errSlow    = &millrace.RequestError{Status: http.StatusGatewayTimeout, Text: "the site's own server did not answer in time"}
	errBroken  = &millrace.RequestError{Status: http.StatusBadRequest, Text: "the request's body is broken"}
	errUpload  = &millrace.RequestError{Status: http.StatusRequestTimeout, Text: "the request's body did not come in time"}
)

// Misdirected returns the error of a request for a host that the site does not go
// by, nil if it does.
func (p *Proxy) Misdirected(r *http.Request) *millrace.RequestError {
	if p.hosts == nil || slices.Contains(p.hosts, r.Host) || slices.Contains(p.hosts, authority(r.Host)) {
		return nil
	}
	return errHost
}

// authority returns a host and port as they are compared.
func authority(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":80", ":443"} {
		if rest, ok := strings.CutSuffix(host, port); ok && !strings.HasSuffix(rest, ":") {
			host = rest
		}
	}
	return strings.TrimSuffix(host, ".")
}

// refused returns the error of a request that is no site's to answer, nil for
// others.
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

// Pass passes a request on as it has come.
func (p *Proxy) Pass(w http.ResponseWriter, r *http.Request) {
	if said := cmp.Or(p.Misdirected(r), p.refused(r)); said != nil {
		reply.Error(w, r, said.Status, said)
		return
	}
	end, err := p.slots.Enter(access.ClientAt(access.Sender(r, p.proxies)))
	if err != nil {
		said := errPassing
		if errors.Is(err, access.ErrCrowded) {
			said = errOpen
		}
		w.Header().Set("Retry-After", "5")
		reply.Error(w, r, said.Status, said)
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
		// Drop the upgrade to HTTP/2: requests on the upgraded connection would
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

// trouble answers for a server that has not.
func (p *Proxy) trouble(w http.ResponseWriter, r *http.Request, err error) {
	to, _ := w.(*deadlineWriter)
	switch {
	case to != nil && to.late():
		w.Header().Set("Connection", "close")
		reply.Error(w, r, errUpload.Status, errUpload)
		return
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the client is gone
	case to != nil && to.broken(): // which is no fault of the site's server
		w.Header().Set("Connection", "close")
		reply.Error(w, r, errBroken.Status, errBroken)
		return
	}
	said := errDown
	if fetch.IsTimeout(err) {
		said = errSlow
	}
	p.logFailure(r, err)
	w.Header().Set("Retry-After", "10")
	reply.Error(w, r, said.Status, said)
}

// logInterval is how many seconds lie between two lines about a server that fails.
const logInterval = 30

// logFailure logs that the server fails, now and then.
func (p *Proxy) logFailure(r *http.Request, err error) {
	p.failing.Store(true)
	now := time.Now().Unix()
	if last := p.loggedAt.Load(); now-last >= logInterval && p.loggedAt.CompareAndSwap(last, now) {
		p.log.Warn("the site's own server does not answer", "origin", p.target.Host, "path", access.Redact(r.URL.Path), "err", err)
	}
}

// buffers are what answers are copied through. As long as few pass at once, they
// are large: each piece costs a read and a write, and most pages are one.
type buffers struct {
	large, small sync.Pool
	out          atomic.Int64 // large ones in use
}

const (
	largeBuffer  = 128 << 10
	smallBuffer  = 32 << 10
	largeBuffers = 64 // in use at most
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
