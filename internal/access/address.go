package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// Address returns the client address of the request, see [ClientAddress].
func (q *Request) Address() netip.Addr {
	if q.located {
		return q.address
	}
	q.located = true
	q.address = ClientAddress(q.r, q.guard.proxies)
	if a := ParseAddress(q.r.RemoteAddr); !trusts(q.guard.proxies, a) {
		q.suspect()
	}
	return q.address
}

// ClientAddress returns the client address of a request. If the connection comes from a trusted
// proxy, it reads X-Forwarded-For from its end, up to the first address that is not a trusted
// proxy.
func ClientAddress(r *http.Request, proxies []netip.Prefix) netip.Addr {
	from := ParseAddress(r.RemoteAddr)
	if !trusts(proxies, from) {
		return from
	}
	fields := r.Header["X-Forwarded-For"]
	for _, field := range slices.Backward(fields) {
		for more := true; more; {
			var hop string
			if i := strings.LastIndexByte(field, ','); i >= 0 {
				field, hop = field[:i], field[i+1:]
			} else {
				hop, more = field, false
			}
			next := ParseAddress(strings.TrimSpace(hop))
			if !next.IsValid() {
				return from
			}
			if from = next; !trusts(proxies, next) {
				return next
			}
		}
	}
	return from
}

// suspect logs once that a proxy may be missing from the list of trusted proxies: an untrusted
// loopback or private address sent X-Forwarded-For. Behind such a proxy, all clients have one
// address, so bots cannot be verified by address.
func (q *Request) suspect() {
	if (q.address.IsLoopback() || q.address.IsPrivate()) && q.r.Header["X-Forwarded-For"] != nil && !q.guard.suspected.Swap(true) {
		q.guard.log.Warn("ignored X-Forwarded-For from an untrusted address; if it is your proxy, add it to proxies", "address", q.address)
	}
}

// Trusted reports whether an address belongs to a trusted proxy.
func (g *Guard) Trusted(a netip.Addr) bool { return trusts(g.proxies, a) }

func trusts(proxies []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ParseAddress parses an IP address with an optional port. It drops the zone. If s is invalid, the
// result is the zero Addr.
func ParseAddress(s string) netip.Addr {
	// Check the form first, because the parser's errors are expensive to create.
	if strings.Count(s, ":") == 1 || strings.HasPrefix(s, "[") && !strings.HasSuffix(s, "]") {
		a, _ := netip.ParseAddrPort(s) // the zero value is invalid
		return a.Addr().Unmap().WithZone("")
	}
	a, _ := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone("")
}

// Host returns the client address for a log, or "-" if it is unknown.
func (q *Request) Host() string {
	if q.guard.proxies != nil {
		if a := q.Address(); a.IsValid() {
			return a.String()
		}
	}
	host, _, err := net.SplitHostPort(q.r.RemoteAddr)
	if err != nil {
		return "-"
	}
	return host
}

// ParseNetworks parses addresses and networks, such as "10.0.0.0/8". A network must not contain
// all addresses. An error wraps [millrace.ErrInvalid].
func ParseNetworks(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if a, aerr := netip.ParseAddr(s); aerr == nil && a.Zone() == "" {
			a = a.Unmap()
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q: %w: not an address or network, such as 10.0.0.0/8", s, millrace.ErrInvalid)
		case p.Addr().Is4In6():
			return nil, fmt.Errorf("%q: %w: an IPv4-mapped network; write it as an IPv4 network", s, millrace.ErrInvalid)
		case p.Bits() == 0:
			return nil, fmt.Errorf("%q: %w: contains all addresses", s, millrace.ErrInvalid)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
