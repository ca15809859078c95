package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/proxy"
)

// fronting are the flags of a server that stands in front of a site.
type fronting struct {
	Origin        string        `placeholder:"URL" help:"Run in front of the site's own server at this URL, such as http://127.0.0.1:8000 (default: no). Requests that are not for machine documents are passed to it, and the source is read from it. SOURCE is the public URL."`
	Hosts         []string      `placeholder:"NAME" help:"With --origin: more host names of the site (default: the host of SOURCE, with and without www). Requests for other hosts get 421." hidden:""`
	OriginTimeout time.Duration `default:"1m" placeholder:"DURATION" help:"With --origin: maximum time until the server begins a response (default: ${default})." hidden:""`
}

// validate refuses what cannot be passed on to.
func (c *fronting) validate() error {
	if c.Origin == "" {
		if len(c.Hosts) > 0 {
			return usageError("--hosts: requests for every host are answered; it goes with --origin")
		}
		return nil
	}
	if c.OriginTimeout <= 0 {
		return usageError(fmt.Sprintf("--origin-timeout %s: give the server some time, such as 1m", c.OriginTimeout))
	}
	if _, err := siteURL(c.Origin); err != nil {
		return usageError("--origin: " + err.Error())
	}
	for _, h := range c.Hosts {
		if u, err := url.Parse("http://" + h); err != nil || u.Host != h || u.Hostname() == "" {
			return usageError(fmt.Sprintf("--hosts: %q is no name of a host, such as www.example.com", h))
		}
	}
	_, err := proxy.New(c.Origin, nil)
	if err != nil {
		return usageError("--" + err.Error())
	}
	return nil
}

// front gives the site that is stood in front of, by the address that visitors
// know, as far as SOURCE tells: "" if it does not, because it is no site or the
// server behind.
func (c *serveCommand) front() string {
	if c.Origin == "" || !strings.Contains(c.Source, "://") {
		return ""
	}
	site, err := siteFolder(c.Source)
	if err != nil || canon.Origin(site) == c.behind() {
		return ""
	}
	return site
}

// behind gives scheme, host and port of the server behind.
func (c *serveCommand) behind() string {
	u, err := siteURL(c.Origin)
	if err != nil {
		return ""
	}
	return canon.Origin(u)
}

// together refuses documents at docs, a base URL, that are not on the site that
// this server stands in front of.
func (c *serveCommand) together(docs string) error {
	if c.Origin == "" {
		return nil
	}
	if site := c.front(); site != "" && canon.Origin(docs) != canon.Origin(site) {
		return usageError(fmt.Sprintf("--base-url %s: with --origin, the documents are on the site itself, %s: leave it out, or name a folder there", docs, site))
	}
	return nil
}

// reached gives scheme and authority of the URLs that the site is reached at:
// those of its bases, and in front of it those of all names that it goes by.
func (c *serveCommand) reached(base, docs string) []string {
	out := []string{canon.Origin(base), canon.Origin(docs)}
	if c.Origin == "" {
		return out
	}
	scheme, _, _ := strings.Cut(base, "://")
	for _, h := range proxy.Hosts(c.Hosts, base, docs) {
		out = append(out, scheme+"://"+h)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pass makes what passes requests on; nil = this server stands in front of
// nothing.
func (c *serveCommand) pass(p *process, base, docs string) (*proxy.Proxy, error) {
	if c.Origin == "" {
		return nil, nil //nolint:nilnil // it is an option
	}
	trusted, err := c.networks()
	if err != nil {
		return nil, err
	}
	return proxy.New(c.Origin, &proxy.Options{
		Base: base, Hosts: proxy.Hosts(c.Hosts, base, docs), Timeout: c.OriginTimeout, Proxies: trusted, Log: p.log,
	})
}

// siteOptions are those of the client that reads the site. In front of it, the
// server behind is asked, and never this one.
func (c *serveCommand) siteOptions(p *process, base string, robots fetch.RobotsMemory) *fetch.Options {
	o := c.clientOptions(p, robots)
	behind, err := url.Parse(c.behind())
	if c.Origin == "" || err != nil {
		return o
	}
	o.Behind = make(map[string]*url.URL)
	for _, host := range proxy.Hosts(c.Hosts, base) {
		o.Behind["http://"+host] = behind
		o.Behind["https://"+host] = behind
	}
	if c.Delay == nil && loopback(behind.Hostname()) {
		o.Delay = -1 // as of any site on this machine
	}
	return o
}
