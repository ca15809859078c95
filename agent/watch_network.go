package agent

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// resolveTime limits the time to look up the addresses of a host.
const resolveTime = 10 * time.Second

// network is a network that many independent hosts share.
type network struct {
	name     string
	rate     float64 // requests a second
	prefixes []string
}

// networks are large networks of content delivery and hosting, with the address ranges that they
// publish. Other networks are detected by the number of hosts on an address.
func networks() []network {
	return []network{
		{"cloudflare", 500, []string{
			"173.245.48.0/20", "103.21.244.0/22", "103.22.200.0/22", "103.31.4.0/22", "141.101.64.0/18", "108.162.192.0/18", "190.93.240.0/20", "188.114.96.0/20",
			"197.234.240.0/22", "198.41.128.0/17", "162.158.0.0/15", "104.16.0.0/13", "104.24.0.0/14", "172.64.0.0/13", "131.0.72.0/22",
			"2400:cb00::/32", "2606:4700::/32", "2803:f800::/32", "2405:b500::/32", "2405:8100::/32", "2a06:98c0::/29", "2c0f:f248::/32",
		}},
		{"fastly", 300, []string{
			"23.235.32.0/20", "43.249.72.0/22", "103.244.50.0/24", "103.245.222.0/23", "103.245.224.0/24", "104.156.80.0/20", "140.248.64.0/18", "140.248.128.0/17",
			"146.75.0.0/17", "151.101.0.0/16", "157.52.64.0/18", "167.82.0.0/17", "172.111.64.0/18", "185.31.16.0/22", "199.27.72.0/21", "199.232.0.0/16",
			"2a04:4e40::/32", "2a04:4e42::/32",
		}},
		{"github-pages", 50, []string{"185.199.108.0/22", "2606:50c0:8000::/46"}},
		{"shopify", 100, []string{"23.227.38.0/24"}},
	}
}

// networkOf returns the network of an address. ok reports whether it is known.
func networkOf(a netip.Addr) (name string, rate float64, ok bool) {
	for _, n := range networks() {
		for _, p := range n.prefixes {
			if netip.MustParsePrefix(p).Contains(a) {
				return n.name, n.rate, true
			}
		}
	}
	return "", 0, false
}

// machine returns the name of the machine behind an address: the IPv4 address, or the IPv6 network
// of the size that providers assign to one customer.
func machine(a netip.Addr) string {
	if a = a.Unmap(); a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a.WithZone(""), 64).Masked().String()
}

// setAddress looks up the address of the host of a turn, and moves the turn to the group of that
// address. A host with several addresses keeps its address while it is one of them.
func (w *watch) setAddress(ctx context.Context, t *turn) error {
	addrs, err := w.resolve(ctx, t.Site.Host)
	if err != nil || len(addrs) == 0 {
		return ctx.Err() // the pull reports the error
	}
	var names []string
	rates := make(map[string]float64)
	for _, a := range addrs {
		name, rate, ok := networkOf(a.Unmap())
		if !ok {
			name = machine(a)
		}
		names, rates[name] = append(names, name), rate
	}
	if slices.Contains(names, t.Address) {
		return nil
	}
	slices.Sort(names)
	moved, err := w.fleet.SetAddress(ctx, t.Turn, names[0], rates[names[0]])
	if err == nil {
		t.Turn = moved
	}
	return err
}

// resolve returns the addresses of a host.
func (w *watch) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	switch {
	case w.a.o.Resolve != nil:
		return w.a.o.Resolve(ctx, host)
	case w.a.o.Dial != nil:
		return nil, nil // connections of Dial do not go to the addresses of the resolver
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
