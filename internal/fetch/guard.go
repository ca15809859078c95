package fetch

import (
	"context"
	"fmt"
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

// AddressError refuses to connect to an address that is not public. It is a
// [millrace.ErrForbidden].
type AddressError struct {
	Addr  netip.Addr // the address of the connection, after DNS
	Class string     // what it is, such as "loopback"
}

// Error returns "refused: 127.0.0.1 is a loopback address; pass --allow-private
// to allow it", without the advice where nothing allows it.
func (e *AddressError) Error() string {
	if forbidden(e.Addr) {
		return fmt.Sprintf("refused: %s is a %s address", e.Addr, e.Class)
	}
	return fmt.Sprintf("refused: %s is a %s address; pass --allow-private to allow it", e.Addr, e.Class)
}

// ErrorCode returns "address-" and the class.
func (e *AddressError) ErrorCode() string { return "address-" + strings.ToLower(e.Class) }

// Unwrap returns [millrace.ErrForbidden].
func (e *AddressError) Unwrap() error { return millrace.ErrForbidden }

// azurePlatform answers metadata requests on Azure, from a public range.
var azurePlatform = netip.MustParsePrefix("168.63.129.16/32")

// metadata lists the addresses at which clouds tell a machine its secrets.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // most of them
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	azurePlatform.Addr(),
}

// forbidden reports whether an address is refused even where private ones are
// allowed: no site is there, and a redirect must not lead there.
func forbidden(ip netip.Addr) bool {
	if ssrf.IPv6NAT64Prefix.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip.IsLinkLocalUnicast() || ip.IsMulticast() || slices.Contains(metadata, ip)
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// guardedDial checks each address just before the system connects to it. A
// nil resolver is the system's.
func guardedDial(allowPrivate bool, r *net.Resolver) dialFunc {
	g := newGuard(allowPrivate)
	d := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second, Resolver: r}
	d.Control = func(_, addr string, _ syscall.RawConn) error { return g.check(addr) }
	return d.DialContext
}

// hookedDial guards a dial function of the caller as far as it deals in IP
// addresses: the one asked for and the one at the other end.
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

type guard struct {
	rules        *ssrf.Guardian
	allowPrivate bool
}

func newGuard(allowPrivate bool) guard {
	return guard{ssrf.New(ssrf.WithDeniedV4Prefixes(azurePlatform)), allowPrivate}
}

// check takes "ip:port", with any port. An IPv4-mapped address counts as the IPv4 address
// that the system would connect to.
func (g guard) check(addr string) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fmt.Errorf("refused: %q is not an address and a port: %w", addr, millrace.Coded("bad-address", millrace.ErrForbidden))
	}
	ip := ap.Addr().Unmap().WithZone("") // with a zone it is in no prefix and in no list
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

// checkURL refuses what cannot or must not be fetched. Credentials in a URL
// end up in logs, referrers and stores.
func checkURL(u *url.URL) error {
	switch {
	case u == nil:
		return fmt.Errorf("no URL: %w", millrace.Coded("bad-url", millrace.ErrInvalid))
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("scheme %q is not http or https: %w", u.Scheme, millrace.Coded("bad-scheme", millrace.ErrInvalid))
	case u.User != nil:
		return fmt.Errorf("%s: a URL with a user name or password is not fetched: %w", cleanURL(u), millrace.Coded("url-credentials", millrace.ErrInvalid))
	case u.Hostname() == "":
		return fmt.Errorf("%q has no host: %w", cleanURL(u), millrace.Coded("bad-url", millrace.ErrInvalid))
	}
	return nil
}

// loopbackName tells from a host name alone whether it means this machine
// (RFC 6761, section 6.3).
func loopbackName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
