package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace"
)

// Fixed time limits. They catch a server that has gone away; [Options.Timeout]
// catches one that is merely slow.
const (
	connectTimeout   = 10 * time.Second
	tlsTimeout       = 10 * time.Second
	firstByteTimeout = 30 * time.Second
	bodyIdleTimeout  = 30 * time.Second
	keepIdle         = 90 * time.Second
)

// maxHeader limits the header of a response in bytes.
const maxHeader = 64 << 10

// Options changes a [Client]. The zero value is right for strangers' sites.
type Options struct {
	// AllowPrivate allows loopback and private addresses. False refuses them
	// with an [*AddressError]; link-local addresses and those of a cloud's
	// metadata are refused in any case.
	AllowPrivate bool
	// UserAgent names the client; "" is millrace/VERSION (+URL; Contact).
	UserAgent string
	// Contact is an address or URL for the owners of sites, shown in the
	// default UserAgent; "" shows none.
	Contact string
	// Delay is the least time between the starts of two requests to one host
	// name, whatever the port. 0 is none to a loopback host and 250 ms to any
	// other; a negative value is none. A longer Crawl-delay in robots.txt,
	// unless that is ignored, is kept all the same.
	Delay time.Duration
	// Concurrency limits the requests in flight to one host name; 0 is 16. One
	// is in flight until its body has been read to the end or closed. To all
	// hosts together 256 are.
	Concurrency int
	// SharedQueues is a client whose queues this one shares: gaps, what a host asks
	// for, and how many requests run at once count for both together. Delay and
	// Concurrency are those of Beside then. nil is queues of its own.
	SharedQueues *Client
	// MaxReceived limits what the client receives in all, headers and bodies,
	// in bytes, as [Stats.Received] counts them. Once it is reached, requests end
	// with a [*SpentError], and so do bodies that are being read after as much
	// again, at most 1 MiB. 0 is no limit.
	MaxReceived int64
	// MaxBody limits a body in bytes, coded and decoded; 0 is 100 MiB.
	MaxBody int64
	// MaxRatio limits decoded to coded bytes once a body has decoded to more
	// than 1 MiB; 0 is 100.
	MaxRatio int64
	// Timeout limits one request from its start to the last byte of its
	// body; 0 is one minute. A redirect or a retry is a request of its own.
	Timeout time.Duration
	// MaxRedirects limits the redirects of one request; 0 is 10, a negative
	// value refuses every redirect.
	MaxRedirects int
	// IgnoreRobots fetches what robots.txt disallows, and does not ask for it.
	IgnoreRobots bool
	// Robots remembers robots.txt files across processes; nil remembers them
	// as long as the client lives.
	Robots RobotsMemory
	// Behind says where origins are, such as "https://example.com", whose
	// server this program knows because it stands in front of it: requests for
	// them go there, with the origin's own name as their Host. Only the scheme,
	// host and port of that URL count; the address may be private. nil is none.
	Behind map[string]*url.URL
	// Dial connects in place of the network, for networks in memory; nil is
	// the network. Literal addresses and those of the connections that it
	// returns are checked like any other.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Sign adds to each request what says whose it is, just before it is sent,
	// redirects and those for robots.txt included. An error keeps it from being
	// sent. nil = nothing. It must be safe for concurrent use.
	Sign func(*http.Request) error
	// Check looks at each response before its body is read; its error takes the
	// response's place. If the body then turns out to be other bytes than those
	// of its Content-Digest, broken is called, unless it is nil. nil if none.
	// It must be safe for concurrent use, and not ask this client for anything.
	Check func(*http.Response) (broken func(), err error)
	// Rand returns numbers in [0, 1) for the jitter of [Do]; nil is math/rand.
	// It must be safe for concurrent use.
	Rand func() float64
	// Logger gets a debug line per response and retry; nil logs nothing.
	Logger *slog.Logger
}

// Client is a guarded [http.RoundTripper] that is safe for concurrent use.
// Protocols use it through [Client.HTTP], which adds the redirect policy.
type Client struct {
	transport    *http.Transport
	behind       map[string]*behind
	userAgent    string
	token        string // what robots.txt calls it
	ignoreRobots bool
	memory       RobotsMemory
	robots       robotsCache
	timeout      time.Duration
	maxRedirects int
	limits       limits
	pace         *pacer
	rand         func() float64
	log          *slog.Logger
	stats        counters
	maxReceived  int64 // 0: no limit
	asked        limitsOf
	sign         func(*http.Request) error
	check        func(*http.Response) (func(), error)
}

// New returns a client; nil options are the zero value.
func New(o *Options) *Client {
	if o == nil {
		o = new(Options)
	}
	c := &Client{
		userAgent:    o.UserAgent,
		ignoreRobots: o.IgnoreRobots,
		memory:       o.Robots,
		timeout:      cmp.Or(o.Timeout, time.Minute),
		maxRedirects: max(0, cmp.Or(o.MaxRedirects, 10)),
		limits:       limits{body: o.MaxBody, ratio: o.MaxRatio}.orDefault(),
		rand:         o.Rand,
		log:          o.Logger,
		sign:         o.Sign,
		check:        o.Check,
	}
	if c.userAgent == "" {
		c.userAgent = defaultUserAgent(o.Contact)
	}
	c.token = productToken(c.userAgent)
	if c.rand == nil {
		c.rand = rand.Float64
	}
	c.maxReceived = max(0, o.MaxReceived)
	if c.pace = newPacer(o.Delay, o.Concurrency, c.rand); o.SharedQueues != nil {
		c.pace = o.SharedQueues.pace
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	dial := guardedDial(o.AllowPrivate, nil)
	if o.Dial != nil {
		dial = hookedDial(o.AllowPrivate, o.Dial)
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

// HTTP returns an [http.Client] over c: its redirect policy, no cookies.
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

// RoundTrip does one request: it asks robots.txt, waits for the host's turn,
// adds User-Agent and Accept-Encoding where they are absent, and bounds the
// answer. The body
// of the response is as it came over the wire, still coded. Reading it fails
// with a [*BodyError] when it is too long, too slow or cut short.
//
// Errors are [millrace.ErrInvalid] for a URL that cannot be fetched,
// [millrace.ErrForbidden] with an [*AddressError] for a refused address or a
// [*RobotsError] for what robots.txt disallows, and [millrace.ErrUnavailable]
// for the network and for a robots.txt that cannot be had; a cancelled context
// gives its own error.
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
	return c.exchange(req, delay, lim, timeout)
}

type download struct {
	limit   int64
	timeout time.Duration
	idle    time.Duration // longest time without a byte; 0 = bodyIdleTimeout
}

// Download returns a context whose requests are for a file: its body may have
// up to limit bytes, whatever MaxBody says, and may take as long as timeout if
// that is more than [Options.Timeout]; it then ends when less than 60 KiB come
// in a minute. Somebody who keeps bodies in memory has no use for it.
func Download(ctx context.Context, limit int64, timeout time.Duration) context.Context {
	return context.WithValue(ctx, download{}, download{limit: limit, timeout: timeout})
}

// Stream returns a context whose requests are for a body that grows for as long
// as somebody reads it, such as one of server-sent events: it may take any
// time, has at most limit bytes, and is broken off when none has come for as
// long as idle. It is in flight all the while.
func Stream(ctx context.Context, limit int64, idle time.Duration) context.Context {
	return context.WithValue(ctx, download{}, download{limit: limit, timeout: math.MaxInt64, idle: idle})
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// exchange does a request that robots.txt has nothing against. delay is the
// gap to the next one that it asks for.
func (c *Client) exchange(req *http.Request, delay time.Duration, lim limits, timeout time.Duration) (*http.Response, error) {
	ctx := req.Context()
	err := cmp.Or(checkURL(req.URL), c.spent())
	var turn *pass
	if err == nil {
		asked := c.asked.of(req.URL.Hostname())
		turn, err = c.pace.start(ctx, req.URL.Hostname(), max(delay, asked.Gap))
		if err == nil && asked.Take != nil {
			if err = asked.Take(ctx); err != nil {
				turn.done(unknown)
			}
		}
	}
	if err != nil {
		closeBody(req)
		return nil, err
	}

	turn.repeated = ctx.Value(repeated{}) != nil
	began := time.Now()
	// Who forgets to close a body blocks its host for no longer than this.
	watch := startWatch(ctx, timeout, func() { turn.done(unknown) })
	if d, ok := ctx.Value(download{}).(download); ok && d.idle > 0 {
		watch.idleTimeout = d.idle
	}
	out := req.WithContext(watch.ctx)
	out.Header = req.Header.Clone()
	c.setHeader(out.Header)
	if c.sign != nil {
		if err := c.sign(out); err != nil {
			closeBody(req)
			watch.stop()
			turn.done(unknown)
			return nil, err
		}
	}
	c.stats.ask(out.Header)
	resp, err := c.send(out)
	if err != nil {
		err = watch.explain(err)
		watch.stop()
		turn.done(outcomeOfErr(err))
		c.stats.failed.Add(1)
		return nil, err
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
		wait := turn.report(went, after)
		c.log.DebugContext(ctx, "host is paused", "host", req.URL.Hostname(), "retry_in", wait)
	}
	// The response belongs to the caller's request, not to our copy.
	resp.Request = req
	if resp.Body == nil || resp.Body == http.NoBody {
		resp.Body = http.NoBody
		watch.stop()
		turn.done(went)
		return c.checked(resp)
	}
	body := &wireBody{
		body: resp.Body, watch: watch, turn: turn, limits: lim, count: &c.stats.body, spent: c.over,
		url: cleanURL(req.URL), want: resp.ContentLength,
	}
	d, isFile := ctx.Value(download{}).(download)
	body.paced = isFile && d.timeout < math.MaxInt64 // and no stream
	if isHTML(resp) {
		body.onComplete = func(content int64) { c.stats.page(header+body.n, content) }
	}
	resp.Body = body
	return c.checked(resp)
}

// checked returns a response that no limit or check refuses.
func (c *Client) checked(resp *http.Response) (*http.Response, error) {
	if c.check == nil {
		return resp, nil
	}
	broken, err := c.check(resp)
	if err != nil {
		_ = resp.Body.Close() // it is not read
		return nil, err
	}
	if b, ok := resp.Body.(*wireBody); ok {
		b.broken = broken
	} else if broken != nil {
		resp.Body = emptyBody{resp.Body, broken}
	}
	return resp, nil
}

// outcomeOfErr judges a request without a response.
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
		// A range of a coded body cannot be decoded from its middle.
		h.Set("Accept-Encoding", "identity")
		if h.Get("Range") == "" {
			h.Set("Accept-Encoding", "zstd, br, gzip")
		}
	}
}

const (
	home    = "github.com/millrace/millrace"
	product = "millrace" // what robots.txt calls a client of ours
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

// cleanURL is a URL fit for logs and errors: without credentials or fragment.
func cleanURL(u *url.URL) string {
	v := *u
	v.User, v.Fragment, v.RawFragment = nil, "", ""
	return v.String()
}
