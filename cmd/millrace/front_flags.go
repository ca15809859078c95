package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/internal/sites"
	"github.com/millrace/millrace/protocol"
)

// frontFlags holds the flags of a server in front of a site.
type frontFlags struct {
	Place         sites.Place   `enum:",alongside,front,standalone" default:"" placeholder:"PLACE" help:"Where this server runs relative to the site's own server: alongside, front or standalone (default: front with --origin, alongside if SOURCE is the URL of a site, else standalone)." hidden:""`
	HeadElements  bool          `negatable:"" default:"true" help:"The site's web server adds link elements to the head of pages (default: yes). Without them, protocols that require them are not published." hidden:""`
	Origin        string        `placeholder:"URL" help:"Run in front of the site's own server at this URL, such as http://127.0.0.1:8000 (default: no). Requests that are not for machine documents are passed to it, and the source is read from it. SOURCE is the public URL."`
	Hosts         []string      `placeholder:"NAME" help:"With --origin: additional host names of the site (default: the host of SOURCE, with and without www). Requests for other hosts get 421." hidden:""`
	OriginTimeout time.Duration `default:"1m" placeholder:"DURATION" help:"With --origin: maximum time until the server begins a response (default: ${default})." hidden:""`
}

// validate rejects invalid values.
func (c *frontFlags) validate() error {
	if c.Origin == "" {
		if len(c.Hosts) > 0 {
			return usageError("--hosts: only valid with --origin; without it, the server accepts requests for every host")
		}
		return nil
	}
	if c.OriginTimeout <= 0 {
		return usageError(fmt.Sprintf("--origin-timeout %s: must be positive, such as 1m", c.OriginTimeout))
	}
	if _, err := siteURL(c.Origin); err != nil {
		return usageError("--origin: " + err.Error())
	}
	for _, h := range c.Hosts {
		if u, err := url.Parse("http://" + h); err != nil || u.Host != h || u.Hostname() == "" {
			return usageError(fmt.Sprintf("--hosts: %q is not a host name, such as www.example.com", h))
		}
	}
	_, err := proxy.New(c.Origin, nil)
	if err != nil {
		return usageError("--" + err.Error())
	}
	return nil
}

// place returns where this server runs. It must be called after validate.
func (c *serveCommand) place() sites.Place {
	at, _ := sites.PlaceOf(c.Place, c.Source, c.Origin)
	return at
}

// front returns the public URL of the site in front of which this server runs, if SOURCE is that
// URL. It returns "" if SOURCE is not a site, or is the same as --origin.
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

// behind returns the scheme, host and port of --origin.
func (c *serveCommand) behind() string {
	u, err := siteURL(c.Origin)
	if err != nil {
		return ""
	}
	return canon.Origin(u)
}

// checkEndpointBase rejects an endpoint base that is not on the origin of the site; see front.
func (c *serveCommand) checkEndpointBase(endpointBase string) error {
	if c.Origin == "" {
		return nil
	}
	if site := c.front(); site != "" && canon.Origin(endpointBase) != canon.Origin(site) {
		return usageError(fmt.Sprintf("--base-url %s: with --origin, the documents must be on the site, %s; omit it or name a folder there", endpointBase, site))
	}
	return nil
}

// authorities returns the scheme and authority of every URL of the site: those of its bases and, in
// front of a site, of all its host names.
func (c *serveCommand) authorities(base, endpointBase string) []string {
	out := []string{canon.Origin(base), canon.Origin(endpointBase)}
	if c.Origin == "" {
		return out
	}
	scheme, _, _ := strings.Cut(base, "://")
	for _, h := range proxy.Hosts(c.Hosts, base, endpointBase) {
		out = append(out, scheme+"://"+h)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// publisher returns the options of every protocol, which depend on where this server runs.
func (c *serveCommand) publisher(policy *millrace.Policy, static, compact, embeddings bool) protocol.PublisherOptions {
	o := c.publishFlags.publisher(policy, static, compact, embeddings)
	o.NoElements = !c.HeadElements
	return o
}

// pass returns a proxy to the site's own server, or nil. In front of a site, this is the server at
// --origin. Alongside the site's server, it is that server if the pages and the documents have the
// same origin, and the source is not a folder. A standalone server has no proxy.
func (c *serveCommand) pass(p *process, base, endpointBase string, folder bool) (*proxy.Proxy, error) {
	at := c.place()
	if at == sites.Standalone || at == sites.Alongside && (folder || canon.Origin(base) != canon.Origin(endpointBase)) {
		return nil, nil
	}
	o := &proxy.Options{Base: base, Timeout: c.OriginTimeout, Proxies: c.trusted, Logger: p.log}
	if at == sites.Alongside {
		o.Alongside = true
		return proxy.New(canon.Origin(base), o)
	}
	o.Hosts = proxy.Hosts(c.Hosts, base, endpointBase)
	return proxy.New(c.Origin, o)
}

// siteOptions returns the options of the client that reads the site. In front of a site, the
// client connects to --origin, never to this server.
func (c *serveCommand) siteOptions(p *process, base string, robots fetch.RobotsMemory) *fetch.Options {
	o := c.clientOptions(p, robots)
	if c.place() == sites.Alongside {
		site := canon.Origin(base)
		o.Sign = func(r *http.Request) error {
			if canon.Origin(r.URL.String()) == site {
				proxy.MarkRead(r)
			}
			return nil
		}
	}
	behind, err := url.Parse(c.behind())
	if c.Origin == "" || err != nil {
		return o
	}
	o.Behind = make(map[string]*url.URL)
	for _, host := range proxy.Hosts(c.Hosts, base) {
		o.Behind["http://"+host] = behind
		o.Behind["https://"+host] = behind
	}
	if c.Delay == nil && fetch.IsLoopback(behind.Hostname()) {
		o.Delay = -1 // the default for hosts on this machine
	}
	return o
}
