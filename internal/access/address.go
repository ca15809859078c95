package access

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Address returns the address that the request comes from, as [Sender] does.
func (q *Request) Address() netip.Addr {
	if q.located {
		return q.address
	}
	q.located = true
	q.address = Sender(q.r, q.guard.proxies)
	if a := ParseAddress(q.r.RemoteAddr); !trusts(q.guard.proxies, a) {
		q.suspect()
	}
	return q.address
}

// Sender returns the address that a request comes from. X-Forwarded-For counts as far
// as it was written by proxies: from its end.
func Sender(r *http.Request, proxies []netip.Prefix) netip.Addr {
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

// suspect logs once what looks like a proxy that is not trusted: behind it all
// clients are one, and no bot comes from its own address.
func (q *Request) suspect() {
	if (q.address.IsLoopback() || q.address.IsPrivate()) && q.r.Header["X-Forwarded-For"] != nil && !q.guard.suspected.Swap(true) {
		q.guard.log.Warn("requests come with X-Forwarded-For from an address that is not believed; if it is a proxy of yours, name it under proxies", "address", q.address)
	}
}

// Trusted reports whether an address is that of a proxy whose X-Forwarded-For is
// believed.
func (g *Guard) Trusted(a netip.Addr) bool { return trusts(g.proxies, a) }

func trusts(proxies []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ParseAddress reads an IP address, which may have a port. A zone, which may be any
// text, is left out.
func ParseAddress(s string) netip.Addr {
	// Recognise a port by its form: an error of the parser costs more.
	if strings.Count(s, ":") == 1 || strings.HasPrefix(s, "[") && !strings.HasSuffix(s, "]") {
		a, _ := netip.ParseAddrPort(s) // the zero value is no address
		return a.Addr().Unmap().WithZone("")
	}
	a, _ := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone("")
}

// Host returns the address that a request comes from, for a log; "-" if it has none.
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
