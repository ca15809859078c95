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

// UpstreamOptions changes what [Upstream] makes. The zero value works.
type UpstreamOptions struct {
	// ServerName is whose certificate an https server has to show; "" is the
	// host of its URL.
	ServerName string
	// Timeout limits the wait for the header of an answer; 0 is one minute.
	Timeout time.Duration
	// Dial connects in place of the network; nil is the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Upstream returns a transport that connects to the server of one URL, whatever
// server a request names: somebody who runs a site has named the one behind it,
// so that it may have a private address, but no link-local one and none of a
// cloud's metadata. It knows nothing of robots.txt, queues and limits of a
// stranger's site: what passes through belongs to the site's own visitors.
// [IsTimeout] tells a slow server from one that is not there. The error is
// [millrace.ErrInvalid]: the URL names no server.
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
		DisableCompression:     true, // what is coded stays so
		ForceAttemptHTTP2:      true,
		// The piece that is read with a header is so small that it goes out with the
		// next one, which is large.
		ReadBufferSize: 2 << 10,
	}, nil
}

// IsTimeout reports whether a request has failed because its server took too
// long.
func IsTimeout(err error) bool {
	slow, ok := errors.AsType[net.Error](err)
	return ok && slow.Timeout()
}

// behind is where an origin is that the client asks somewhere else.
type behind struct {
	at        *url.URL
	transport *http.Transport
}

// newBehind returns the transports of [Options.Behind]. A URL that names no
// server gets none, so that requests for its origin are refused.
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
			uo.ServerName = site.Hostname() // an address has no certificate, the site has
		}
		if b.transport, err = Upstream(at, uo); err == nil {
			b.transport.MaxResponseHeaderBytes = maxHeader
		}
		all[origin(site)] = b
	}
	return all
}

// send sends a request to where its origin is. It may change out, but not its
// URL in place, which is the caller's.
func (c *Client) send(out *http.Request) (*http.Response, error) {
	if len(c.behind) == 0 {
		return c.transport.RoundTrip(out)
	}
	b := c.behind[origin(out.URL)]
	switch {
	case b == nil:
		return c.transport.RoundTrip(out)
	case b.transport == nil:
		return nil, fmt.Errorf("%s: there is no server to ask for it: %w", origin(out.URL), millrace.Coded("no-upstream", millrace.ErrInvalid))
	}
	u := *out.URL
	u.Scheme, u.Host = b.at.Scheme, b.at.Host
	out.Host = cmp.Or(out.Host, out.URL.Host)
	out.Header.Set("X-Forwarded-Proto", out.URL.Scheme)
	out.Header.Set("X-Forwarded-Host", out.Host)
	out.URL = &u
	return b.transport.RoundTrip(out)
}
