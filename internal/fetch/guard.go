package fetch

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"github.com/millrace/millrace"
)

// AddressError is the error for a refused connection to an address that is not public. It wraps
// [millrace.ErrForbidden].
type AddressError struct {
	Addr  netip.Addr // the address of the connection, after DNS
	Class string     // kind of address, such as "loopback"
}

// Error returns "refused: loopback address 127.0.0.1; --allow-private allows it (in Go, the option
// AllowPrivate)", without the advice for addresses that are always refused.
func (e *AddressError) Error() string {
	if forbidden(e.Addr) {
		return fmt.Sprintf("refused: %s address %s", e.Class, e.Addr)
	}
	return fmt.Sprintf("refused: %s address %s; --allow-private allows it (in Go, the option AllowPrivate)", e.Class, e.Addr)
}

// ErrorCode returns "address-" and the class in lower case.
func (e *AddressError) ErrorCode() string { return "address-" + strings.ToLower(e.Class) }

// Unwrap returns [millrace.ErrForbidden].
func (e *AddressError) Unwrap() error { return millrace.ErrForbidden }

// azurePlatform is the public address from which Azure serves metadata.
var azurePlatform = netip.MustParsePrefix("168.63.129.16/32")

// metadata lists the addresses of cloud metadata services, which return secrets of the
// machine.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // most clouds
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	azurePlatform.Addr(),
}

// forbidden reports whether an address is refused even if private addresses are allowed. No
// site has such an address, and a redirect must not reach it.
func forbidden(ip netip.Addr) bool {
	if ssrf.IPv6NAT64Prefix.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip.IsLinkLocalUnicast() || ip.IsMulticast() || slices.Contains(metadata, ip)
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// guardedDial returns a dial function that checks each address just before the system
// connects. If r is nil, the system's resolver is used.
func guardedDial(allowPrivate bool, r *net.Resolver) dialFunc {
	g := newGuard(allowPrivate)
	d := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second, Resolver: r}
	d.Control = func(_, addr string, _ syscall.RawConn) error { return g.check(addr) }
	return d.DialContext
}

// hookedDial returns a function that calls dial and checks two addresses: the requested one, if it
// is an IP address, and the remote address of the connection.
func hookedDial(allowPrivate bool, dial dialFunc) dialFunc {
	g := newGuard(allowPrivate)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if _, err := netip.ParseAddrPort(addr); err == nil {
			if err := g.check(addr); err != nil {
				return nil, err
			}
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			if err := g.check(tcp.String()); err != nil {
				_ = conn.Close()
				return nil, err
			}
		}
		return conn, nil
	}
}

// resolvedDial returns a function that calls dial with each address of a host until a connection
// succeeds.
func resolvedDial(resolve func(context.Context, string) iter.Seq2[netip.Addr, error], dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		var first error
		for a, err := range resolve(ctx, host) {
			var conn net.Conn
			if err == nil {
				conn, err = dial(ctx, network, net.JoinHostPort(a.String(), port))
			}
			if err == nil {
				return conn, nil
			}
			first = cmp.Or(first, err)
		}
		return nil, cmp.Or[error](first, &net.DNSError{Err: "no address", Name: host, IsNotFound: true})
	}
}

type guard struct {
	rules        *ssrf.Guardian
	allowPrivate bool
}

func newGuard(allowPrivate bool) guard {
	return guard{ssrf.New(ssrf.WithDeniedV4Prefixes(azurePlatform)), allowPrivate}
}

// check returns an error if addr, "ip:port", is refused. It checks an IPv4-mapped address as
// the IPv4 address that the system would connect to.
func (g guard) check(addr string) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fmt.Errorf("refused: invalid address %q, want IP:PORT: %w", addr, millrace.Coded("bad-address", millrace.ErrForbidden))
	}
	ip := ap.Addr().Unmap().WithZone("") // an address with a zone matches no prefix and no list
	if g.rules.SafeAddr(ip) == nil || g.allowPrivate && !forbidden(ip) {
		return nil
	}
	return &AddressError{Addr: ip, Class: class(ip)}
}

func class(ip netip.Addr) string {
	switch {
	case ip.IsLoopback():
		return "loopback"
	case ip.IsUnspecified():
		return "unspecified"
	case slices.Contains(metadata, ip):
		return "metadata"
	case ip.IsLinkLocalUnicast():
		return "link-local"
	case ip.IsPrivate():
		return "private"
	case ip.IsMulticast():
		return "multicast"
	case ssrf.IPv6NAT64Prefix.Contains(ip):
		return "NAT64"
	}
	return "special"
}

// checkURL returns an error for a URL that must not be fetched. Credentials in a URL would
// reach logs, referrers and stores.
func checkURL(u *url.URL) error {
	switch {
	case u == nil:
		return fmt.Errorf("missing URL: %w", millrace.Coded("bad-url", millrace.ErrInvalid))
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("invalid scheme %q, want http or https: %w", u.Scheme, millrace.Coded("bad-scheme", millrace.ErrInvalid))
	case u.User != nil:
		return fmt.Errorf("%s: URL with a user name or password: %w", cleanURL(u), millrace.Coded("url-credentials", millrace.ErrInvalid))
	case u.Hostname() == "":
		return fmt.Errorf("URL %q without a host: %w", cleanURL(u), millrace.Coded("bad-url", millrace.ErrInvalid))
	}
	return nil
}

// IsLoopback reports whether a host name or address without a port is this machine, by its text
// alone (RFC 6761, section 6.3).
func IsLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
