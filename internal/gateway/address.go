package gateway

import (
	"net/netip"
	"slices"
	"strings"
)

// client gives the address that a request comes from. X-Forwarded-For counts
// as far as proxies have written it that are trusted: from its end.
func (w *response) client() netip.Addr {
	if w.located {
		return w.address
	}
	w.located = true
	w.address = address(w.r.RemoteAddr)
	if w.g.o.Proxies == nil || !w.g.trusted(w.address) {
		w.suspect()
		return w.address
	}
	fields := w.r.Header["X-Forwarded-For"]
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
				return w.address
			}
			if w.address = next; !w.g.trusted(next) {
				return next
			}
		}
	}
	return w.address
}

// suspect tells once of what looks like a proxy that nobody has named: behind
// it all clients are one, and no bot comes from its own address.
func (w *response) suspect() {
	if (w.address.IsLoopback() || w.address.IsPrivate()) && w.r.Header["X-Forwarded-For"] != nil && !w.g.suspected.Swap(true) {
		w.g.log.Warn("requests come with X-Forwarded-For from an address that is not believed; if it is a proxy of yours, name it under proxies", "address", w.address)
	}
}

func (g *Gateway) trusted(a netip.Addr) bool {
	return slices.ContainsFunc(g.o.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
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
