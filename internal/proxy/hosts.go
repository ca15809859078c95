package proxy

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Hosts returns the host names of a site: the hosts of its base URLs, with and without www, and
// those in more.
func Hosts(more []string, bases ...string) []string {
	var out []string
	add := func(h string) {
		if h != "" && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	for _, base := range bases {
		u, err := url.Parse(base)
		if err != nil {
			continue
		}
		add(u.Host)
		if _, err := netip.ParseAddr(u.Hostname()); err == nil {
			continue
		}
		if apex, ok := strings.CutPrefix(u.Host, "www."); ok {
			add(apex)
		} else if strings.Contains(u.Hostname(), ".") {
			add("www." + u.Host)
		}
	}
	for _, h := range more {
		add(strings.ToLower(h))
	}
	return out
}
