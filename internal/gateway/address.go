package gateway

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// client gives the address that a request comes from. X-Forwarded-For counts
// as far as proxies have written it that are trusted: from its end.
func (q *Request) client() netip.Addr {
	if q.located {
		return q.address
	}
	q.located = true
	q.address = address(q.r.RemoteAddr)
	if q.guard.proxies == nil || !q.guard.trusted(q.address) {
		q.suspect()
		return q.address
	}
	fields := q.r.Header["X-Forwarded-For"]
	for _, field := range slices.Backward(fields) {
		for more := true; more; {
			var hop string
			if i := strings.LastIndexByte(field, ','); i >= 0 {
				field, hop = field[:i], field[i+1:]
			} else {
				hop, more = field, false
			}
			next := address(strings.TrimSpace(hop))
			if !next.IsValid() {
				return q.address
			}
			if q.address = next; !q.guard.trusted(next) {
				return next
			}
		}
	}
	return q.address
}

// suspect tells once of what looks like a proxy that nobody has named: behind
// it all clients are one, and no bot comes from its own address.
func (q *Request) suspect() {
	if (q.address.IsLoopback() || q.address.IsPrivate()) && q.r.Header["X-Forwarded-For"] != nil && !q.guard.suspected.Swap(true) {
		q.guard.log.Warn("requests come with X-Forwarded-For from an address that is not believed; if it is a proxy of yours, name it under proxies", "address", q.address)
	}
}

func (g *guard) trusted(a netip.Addr) bool {
	return slices.ContainsFunc(g.proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// address reads an IP address, which may have a port. A zone, which may be any
// text, is left out.
func address(s string) netip.Addr {
	// What has a port is told by its form, since an error costs more.
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
		if a := q.client(); a.IsValid() {
			return a.String()
		}
	}
	host, _, err := net.SplitHostPort(q.r.RemoteAddr)
	if err != nil {
		return "-"
	}
	return host
}
