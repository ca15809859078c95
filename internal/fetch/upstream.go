package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/millrace/millrace"
)

// UpstreamOptions configure [Upstream]. The zero value is valid.
type UpstreamOptions struct {
	// ServerName is the name in the certificate of an https server. If empty, the host of its
	// URL.
	ServerName string
	// Timeout limits the wait for a response header. If zero, one minute.
	Timeout time.Duration
	// Dial replaces network connections. If nil, the network is used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Upstream returns a transport that always connects to the server of one URL, even if a request
// names another one. The owner of a site has configured this server, so its address may be
// private, but not link-local and not that of a cloud metadata service. The transport applies no
// robots.txt, queues or limits, because the requests come from the site's own visitors.
// [IsTimeout] distinguishes a slow server from an unreachable one. The error is
// [millrace.ErrInvalid] if the URL names no server.
func Upstream(at *url.URL, o *UpstreamOptions) (*http.Transport, error) {
	if err := checkURL(at); err != nil {
		return nil, err
	}
	if o == nil {
		o = new(UpstreamOptions)
	}
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	addr := net.JoinHostPort(at.Hostname(), port)
	g := newGuard(true)
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	dialer.Control = func(_, addr string, _ syscall.RawConn) error { return g.check(addr) }
	dial := dialer.DialContext
	if o.Dial != nil {
		dial = hookedDial(true, o.Dial)
	}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, addr) },
		TLSClientConfig:        &tls.Config{ServerName: cmp.Or(o.ServerName, at.Hostname()), MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  cmp.Or(o.Timeout, time.Minute),
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        keepIdle,
		MaxIdleConnsPerHost:    256,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true, // pass coded bodies on unchanged
		ForceAttemptHTTP2:      true,
		// With a small buffer, only a little of the body is read with the header. This little is
		// then sent together with the next part, which is large.
		ReadBufferSize: 2 << 10,
	}, nil
}

// IsTimeout reports whether a request failed because its server took too long.
func IsTimeout(err error) bool {
	slow, ok := errors.AsType[net.Error](err)
	return ok && slow.Timeout()
}

// behind is the server of an origin in [Options.Behind].
type behind struct {
	at        *url.URL
	transport *http.Transport
}

// newBehind returns the transports of [Options.Behind]. If a URL names no server, requests for
// its origin are refused.
func newBehind(o *Options) map[string]*behind {
	all := make(map[string]*behind, len(o.Behind))
	for name, at := range o.Behind {
		b := &behind{at: at}
		site, err := url.Parse(name)
		if err != nil {
			continue
		}
		uo := &UpstreamOptions{Timeout: firstByteTimeout, Dial: o.Dial}
		if _, err := netip.ParseAddr(at.Hostname()); err == nil {
			uo.ServerName = site.Hostname() // the certificate names the site, not the address
		}
		if b.transport, err = Upstream(at, uo); err == nil {
			b.transport.MaxResponseHeaderBytes = maxHeader
		}
		all[origin(site)] = b
	}
	return all
}

// send sends a request to the server of its origin. It may change out, but not the URL to which out
// points, because that belongs to the caller.
func (c *Client) send(out *http.Request) (*http.Response, error) {
	if len(c.behind) == 0 {
		return c.transport.RoundTrip(out)
	}
	b := c.behind[origin(out.URL)]
	switch {
	case b == nil:
		return c.transport.RoundTrip(out)
	case b.transport == nil:
		return nil, fmt.Errorf("%s: no server configured: %w", origin(out.URL), millrace.Coded("no-upstream", millrace.ErrInvalid))
	}
	u := *out.URL
	u.Scheme, u.Host = b.at.Scheme, b.at.Host
	out.Host = cmp.Or(out.Host, out.URL.Host)
	out.Header.Set("X-Forwarded-Proto", out.URL.Scheme)
	out.Header.Set("X-Forwarded-Host", out.Host)
	out.URL = &u
	return b.transport.RoundTrip(out)
}
