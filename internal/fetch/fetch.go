package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace"
)

// Fixed time limits. They detect a dead server; [Options.Timeout] detects a slow one.
const (
	connectTimeout   = 10 * time.Second
	tlsTimeout       = 10 * time.Second
	firstByteTimeout = 30 * time.Second
	bodyIdleTimeout  = 30 * time.Second
	keepIdle         = 90 * time.Second
)

// maxHeader limits the header of a response in bytes.
const maxHeader = 64 << 10

// Options configure a [Client]. The zero value is suitable for sites of third parties.
type Options struct {
	// AllowPrivate allows loopback and private addresses. If false, they are refused with an
	// [*AddressError]. Link-local addresses and cloud metadata addresses are always refused.
	AllowPrivate bool
	// UserAgent is the User-Agent of requests. If empty, it is millrace/VERSION (+URL;
	// Contact).
	UserAgent string
	// Contact is an address or URL for site owners in the default UserAgent. If empty, none is
	// sent.
	Contact string
	// Delay is the minimum time between the starts of two requests to one host name, whatever the
	// port. If zero, 250 ms, or none to a loopback host. A negative value means no delay. A longer
	// Crawl-delay in robots.txt takes precedence, unless IgnoreRobots is set.
	Delay time.Duration
	// Concurrency limits the requests in flight to one host name. If zero, 16. A request is in
	// flight until its body is read to the end or closed. The limit for all hosts together is
	// 256. With SharedQueues, Concurrency limits the requests of this client to all hosts together.
	// Gaps then also apply to all hosts together, and begin with the header of a response. If zero,
	// only the limits of SharedQueues apply.
	Concurrency int
	// Gap returns the minimum time between the starts of two requests to one host name, also with
	// SharedQueues. A longer time of Delay or robots.txt takes precedence. With SharedQueues, Gap is
	// called again when the response arrives. If nil, there is no minimum.
	Gap func(host string) time.Duration
	// SharedQueues is a client whose host queues this client shares. Gaps, Retry-After and
	// concurrency apply to both clients together, with Delay and Concurrency of SharedQueues.
	// If nil, the client has its own queues.
	SharedQueues *Client
	// MaxReceived limits the total bytes of headers and bodies that the client receives, as counted
	// by [Stats.Received]. Once it is reached, requests fail with a [*QuotaError]. Bodies in
	// transfer may then receive the same number of bytes again, up to 1 MiB, before they fail. If
	// zero, there is no limit.
	MaxReceived int64
	// MaxBody limits a body in bytes, coded and decoded. If zero, 100 MiB.
	MaxBody int64
	// MaxRatio limits the ratio of decoded to coded bytes once a body has decoded to more than
	// 1 MiB. If zero, 100.
	MaxRatio int64
	// Timeout limits one request from its start to the last byte of its body. If zero, one
	// minute. Each redirect and each retry is a request of its own.
	Timeout time.Duration
	// MaxRedirects limits the redirects of one request. If zero, 10. A negative value refuses
	// all redirects.
	MaxRedirects int
	// IgnoreRobots makes the client neither request nor obey robots.txt.
	IgnoreRobots bool
	// Robots stores robots.txt files across processes. If nil, the client caches them in
	// memory.
	Robots RobotsMemory
	// Dictionaries stores content of responses, so that later responses may be coded against it. If
	// nil, no request offers the coding.
	Dictionaries Dictionaries
	// Behind maps origins, such as "https://example.com", to the URLs of their servers. Use it for
	// origins for which this program is the reverse proxy. Requests for such an origin go to that
	// server, with the origin's name as Host. Only the scheme, host and port of the URL are used.
	// The server's address may be private.
	Behind map[string]*url.URL
	// Dial replaces network connections, for example by in-memory ones. If nil, the network is
	// used. Literal addresses and the remote addresses of the returned connections are checked
	// as usual.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Resolve yields the addresses of a host, for one connection. The client connects to the first
	// address that accepts the connection. If nil, the resolver of the system is used.
	Resolve func(ctx context.Context, host string) iter.Seq2[netip.Addr, error]
	// Start is called before each request waits for the queue of its host. If it returns an error,
	// the request is not sent. Start may block, and may be nil. It must be safe for concurrent use.
	Start func(context.Context) error
	// Sign signs each request just before it is sent, including redirects and requests for
	// robots.txt. If it returns an error, the request is not sent. It may be nil, and must be
	// safe for concurrent use.
	Sign func(*http.Request) error
	// Done is called when a request that Sign has seen has ended: it has failed, or the body of its
	// response was read or closed. For a [Stream], it is called when the response begins. It may be
	// nil, and must be safe for concurrent use.
	Done func()
	// Check verifies each response whose body has been read to its end. Its error replaces io.EOF.
	// If the body does not match its digests, the client then calls broken, unless broken is nil.
	// The request has ended, so Check may send other requests. Check may be nil, and must be safe
	// for concurrent use.
	Check func(resp *http.Response) (broken func(), err error)
	// Rand returns numbers in [0, 1) for the jitter of delays. If nil, math/rand is used. It must
	// be safe for concurrent use.
	Rand func() float64
	// Logger receives a debug record per response and retry. If nil, nothing is logged.
	Logger *slog.Logger
}

// Client is a guarded [http.RoundTripper] that is safe for concurrent use.
// Protocols use it through [Client.HTTP], which adds the redirect policy.
type Client struct {
	transport    *http.Transport
	behind       map[string]*behind
	userAgent    string
	token        string // product name for robots.txt
	ignoreRobots bool
	robotsStore  RobotsMemory
	robots       robotsCache
	timeout      time.Duration
	maxRedirects int
	limits       limits
	pace         *pacer
	rand         func() float64
	log          *slog.Logger
	stats        counters
	maxReceived  int64 // 0 if unlimited
	asked        limitsOf
	start        func(context.Context) error
	gap          func(host string) time.Duration
	own          *pacer // a queue for all requests of this client; nil if only pace limits them
	sign         func(*http.Request) error
	done         func()
	check        func(resp *http.Response) (broken func(), err error)
	dictionaries Dictionaries // nil if unused
}

// New returns a client. Nil options mean the zero value.
func New(o *Options) *Client {
	if o == nil {
		o = new(Options)
	}
	c := &Client{
		userAgent:    o.UserAgent,
		ignoreRobots: o.IgnoreRobots,
		robotsStore:  o.Robots,
		timeout:      cmp.Or(o.Timeout, time.Minute),
		maxRedirects: max(0, cmp.Or(o.MaxRedirects, 10)),
		limits:       limits{body: o.MaxBody, ratio: o.MaxRatio}.orDefault(),
		rand:         o.Rand,
		log:          o.Logger,
		start:        o.Start,
		gap:          o.Gap,
		sign:         o.Sign,
		done:         o.Done,
		check:        o.Check,
		dictionaries: o.Dictionaries,
	}
	if c.userAgent == "" {
		c.userAgent = defaultUserAgent(o.Contact)
	}
	c.token = productToken(c.userAgent)
	if c.gap == nil {
		c.gap = func(string) time.Duration { return 0 }
	}
	if c.rand == nil {
		c.rand = rand.Float64
	}
	c.maxReceived = max(0, o.MaxReceived)
	if c.pace = newPacer(o.Delay, o.Concurrency, c.rand); o.SharedQueues != nil {
		c.pace = o.SharedQueues.pace
		if o.Concurrency > 0 {
			c.own = newPacer(-1, o.Concurrency, c.rand)
		}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	dial := guardedDial(o.AllowPrivate, nil)
	if o.Dial != nil {
		dial = hookedDial(o.AllowPrivate, o.Dial)
	}
	if o.Resolve != nil {
		dial = resolvedDial(o.Resolve, dial)
	}
	c.transport = &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  firstByteTimeout,
		IdleConnTimeout:        keepIdle,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // bodies stay coded for their digests
		ForceAttemptHTTP2:      true,
	}
	c.behind = newBehind(o)
	return c
}

// HTTP returns an [http.Client] that uses c, follows redirects by c's policy and keeps no
// cookies.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		return checkRedirect(c.maxRedirects, req, via)
	}}
}

// CloseIdleConnections closes the connections that no request uses.
func (c *Client) CloseIdleConnections() {
	c.transport.CloseIdleConnections()
	for _, b := range c.behind {
		if b.transport != nil {
			b.transport.CloseIdleConnections()
		}
	}
}

// RoundTrip sends one request. It checks robots.txt, waits for the host's queue, adds User-Agent
// and Accept-Encoding if absent, and limits the response. The body of the response is still coded.
// Reading it fails with a [*BodyError] if it is too long, too slow or incomplete. A response that
// is coded against a dictionary is returned decoded and verified.
//
// Errors are [millrace.ErrInvalid] for a URL that cannot be fetched, and [millrace.ErrUnavailable]
// for network failures and a robots.txt that cannot be fetched. They are [millrace.ErrForbidden]
// with an [*AddressError] for a refused address, or with a [*RobotsError] for a disallowed URL. A
// canceled context returns its own error.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	err := checkURL(req.URL)
	var delay time.Duration
	if err == nil {
		delay, err = c.obey(req.Context(), req.URL)
	}
	if err != nil {
		closeBody(req)
		return nil, err
	}
	lim, timeout := c.limits, c.timeout
	if d, ok := req.Context().Value(download{}).(download); ok {
		lim.body, timeout = d.limit, max(timeout, d.timeout)
	}
	offer := c.offer(req)
	resp, err := c.exchange(req, delay, lim, timeout, offer)
	if err != nil {
		return nil, err
	}
	return c.decoded(req, resp, offer, func(plain *http.Request) (*http.Response, error) {
		return c.exchange(plain, delay, lim, timeout, nil)
	})
}

type download struct {
	limit   int64
	timeout time.Duration
	idle    time.Duration // longest time without a byte; if zero, bodyIdleTimeout
}

// Download returns a context for requests that fetch a large file. The body may have up to limit
// bytes, whatever MaxBody is. It may take as long as timeout or [Options.Timeout], whichever is
// longer, but fails if it receives less than 60 KiB in a minute. Do not use it for bodies that are
// held in memory.
func Download(ctx context.Context, limit int64, timeout time.Duration) context.Context {
	return context.WithValue(ctx, download{}, download{limit: limit, timeout: timeout})
}

// Stream returns a context for requests whose body grows while it is read, such as server-sent
// events. The body may take any time and has at most limit bytes. It fails if no byte arrives
// within idle. The request is in flight until the body ends.
func Stream(ctx context.Context, limit int64, idle time.Duration) context.Context {
	return context.WithValue(ctx, download{}, download{limit: limit, timeout: math.MaxInt64, idle: idle})
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// exchange sends a request that robots.txt allows. delay is the Crawl-delay.
func (c *Client) exchange(req *http.Request, delay time.Duration, lim limits, timeout time.Duration, offer *offer) (*http.Response, error) {
	ctx := req.Context()
	err := cmp.Or(checkURL(req.URL), c.spent())
	var pass *pass
	if err == nil && c.start != nil {
		err = c.start(ctx)
	}
	if err == nil {
		asked := c.asked.of(req.URL.Hostname())
		pass, err = c.pass(ctx, req.URL.Hostname(), max(delay, asked.Gap, c.gap(req.URL.Hostname())))
		if err == nil && asked.Take != nil {
			if err = asked.Take(ctx); err != nil {
				pass.done(unknown)
			}
		}
	}
	if err != nil {
		closeBody(req)
		return nil, err
	}

	pass.repeated = ctx.Value(repeated{}) != nil
	began := time.Now()
	// This limits the time for which an unclosed body blocks the queue of its host.
	watch := startWatch(ctx, timeout, func() { pass.done(unknown) })
	if d, ok := ctx.Value(download{}).(download); ok && d.idle > 0 {
		watch.idleTimeout = d.idle
	}
	out := req.WithContext(watch.ctx)
	out.Header = req.Header.Clone()
	c.setHeader(out.Header)
	offer.set(out.Header)
	pass.ended = c.done
	if c.sign != nil {
		if err := c.sign(out); err != nil {
			closeBody(req)
			watch.stop()
			pass.done(unknown)
			return nil, err
		}
	}
	resp, err := c.send(out)
	if err != nil {
		err = watch.explain(err)
	}
	if _, refused := errors.AsType[*AddressError](err); !refused {
		c.stats.ask(out.Header)
	}
	if err != nil {
		watch.stop()
		pass.done(outcomeOfErr(err))
		c.stats.failed.Add(1)
		return nil, err
	}
	d, isFile := ctx.Value(download{}).(download)
	isStream := d.timeout == math.MaxInt64
	if isStream {
		pass.end()
	}
	header := c.stats.count(resp)
	c.log.DebugContext(ctx, "fetch", "method", req.Method, "url", cleanURL(req.URL),
		"status", resp.StatusCode, "duration", time.Since(began))
	went := outcomeOf(resp.StatusCode)
	if went != fine {
		after := time.Duration(0)
		if went == failing {
			after = retryAfter(resp.Header)
		}
		wait := pass.report(went, after)
		c.log.DebugContext(ctx, "host failed; delaying its requests", "host", req.URL.Hostname(), "retry_in", wait)
	}
	// The response must refer to the caller's request, not to our copy.
	resp.Request = req
	if resp.Body == nil || resp.Body == http.NoBody {
		resp.Body = http.NoBody
		watch.stop()
		pass.done(went)
		if c.check == nil {
			return resp, nil
		}
		broken, err := c.check(resp)
		if err != nil {
			return nil, err
		}
		if broken != nil {
			resp.Body = emptyBody{resp.Body, broken}
		}
		return resp, nil
	}
	body := &wireBody{
		body: resp.Body, watch: watch, pass: pass, limits: lim, count: &c.stats.body, spent: c.over,
		url: cleanURL(req.URL), want: resp.ContentLength,
	}
	body.paced = isFile && !isStream // a stream has no minimum rate
	if isHTML(resp) {
		body.onComplete = func(content int64) { c.stats.page(header+body.n, content) }
	}
	if c.check != nil {
		received := *resp // the caller may change the response before the body ends
		received.Header = resp.Header.Clone()
		body.check = func() (func(), error) { return c.check(&received) }
	}
	resp.Body = body
	return resp, nil
}

// pass waits for the queue of the client and for the queue of a host.
func (c *Client) pass(ctx context.Context, host string, delay time.Duration) (*pass, error) {
	if c.own == nil {
		return c.pace.start(ctx, host, delay)
	}
	own, err := c.own.start(ctx, "all hosts", delay)
	if err != nil {
		return nil, err
	}
	pass, err := c.pace.start(ctx, host, delay)
	if err != nil {
		own.done(unknown)
		return nil, err
	}
	pass.own, pass.gap = own, func() time.Duration { return c.gap(host) }
	return pass, nil
}

// outcomeOfErr returns the outcome of a request without a response.
func outcomeOfErr(err error) outcome {
	if errors.Is(err, millrace.ErrUnavailable) {
		return failing
	}
	return unknown
}

func (c *Client) setHeader(h http.Header) {
	if _, ok := h["User-Agent"]; !ok {
		h.Set("User-Agent", c.userAgent)
	}
	if _, ok := h["Accept-Encoding"]; !ok {
		// A coded body cannot be decoded from its middle.
		h.Set("Accept-Encoding", "identity")
		if h.Get("Range") == "" {
			h.Set("Accept-Encoding", "zstd, br, gzip")
		}
	}
}

const (
	home    = "github.com/millrace/millrace"
	product = "millrace" // product name in User-Agent and robots.txt
)

// defaultUserAgent follows RFC 9110, section 10.1.5: a product, then a comment.
func defaultUserAgent(contact string) string {
	if contact != "" {
		contact = "; " + contact
	}
	return fmt.Sprintf("%s/%s (+https://%s%s)", product, buildVersion(), home, contact)
}

func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == home && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return "dev"
}

// cleanURL returns u without credentials and fragment, for logs and errors.
func cleanURL(u *url.URL) string {
	v := *u
	v.User, v.Fragment, v.RawFragment = nil, "", ""
	return v.String()
}
