package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/sites"
	origins "github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// Options configure the probe of a site. The zero value is valid.
type Options struct {
	File     string         // path of the new configuration
	Private  bool           // allow a site at a private address
	Logger   *slog.Logger   // If nil, nothing is logged.
	Progress func(done int) // called with the number of requests. If nil, it is not called.
}

// longWait is the Crawl-delay above which the probe logs a warning that reading will be slow.
const longWait = 3 * time.Second

// Probe probes a site over the network.
func Probe(ctx context.Context, client *http.Client, at string, o *Options) (*Report, error) {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	robots, err := fetch.RobotsOf(ctx, client, u)
	if err != nil {
		return nil, err
	}
	if wait := robots.CrawlDelay(); wait > longWait {
		log.Warn("robots.txt requires a long delay between requests; reading the site will be slow", "gap", wait)
	}
	// Fetch robots.txt first, because the client may pause the host after failures during the
	// probe.
	text, err := robotsText(ctx, client, at)
	if err != nil {
		return nil, err
	}
	site, err := discover.Probe(ctx, client, at, &discover.Options{
		Protocols: all.Protocols(), Reader: &protocol.ReaderOptions{}, IgnorePolicy: true, Logger: log, Progress: o.Progress,
	})
	if err != nil {
		return nil, err
	}
	if site.Moved != "" {
		return nil, millrace.Coded("site-moved", fmt.Errorf("%s redirects to %s; run init for that address", at, site.Moved))
	}
	r := &Report{
		Source: at, Site: at, Place: sites.Alongside, Listen: defaultListen, Dashboard: dashboardPath, File: o.File, Generator: site.Observed.Generator, Server: site.Observed.Server, Pages: -1,
		Has: []string{}, Hides: []Hidden{}, Reasons: []string{}, Purposes: map[millrace.Purpose]bool{},
	}
	r.private = o.Private && isPrivate(ctx, r.host())
	return r, r.inspect(ctx, client, site, text)
}

// inspect adds the results of the probe to the report. text is the site's robots.txt.
func (r *Report) inspect(ctx context.Context, client *http.Client, site *discover.SiteReport, text []byte) error {
	for _, w := range site.Ways {
		switch {
		case w.Protocol != discover.Web && w.Offer != nil:
			r.Has = append(r.Has, w.Protocol)
		case w.Protocol == discover.Web && w.Offer != nil:
			r.Pages = w.Offer.Pages
		}
	}
	for _, way := range origins.Origins(false) {
		if r.As = way.Name; way.Detect == nil {
			break
		}
		home, err := way.Detect(ctx, client, r.Site)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && home == r.Site {
			break
		}
	}
	if way := origins.ByName(r.As); way.Detect == nil {
		if web := site.Way(discover.Web); web == nil || !web.Open() {
			why, code := "no site found at this address", "not-found"
			if web != nil && web.Reason != "" {
				why, code = web.Reason, web.Code
			}
			if code == "robots-disallow" {
				why += "; to allow millrace, add the lines \"User-agent: millrace\" and \"Allow: /\" to robots.txt"
			}
			return millrace.Coded(code, fmt.Errorf("probe %s: %s; no configuration was written", r.Site, why))
		}
	}
	u, err := url.Parse(r.Site)
	if err != nil {
		return err
	}
	robots, err := fetch.RobotsOf(ctx, client, u)
	if err != nil {
		return err
	}
	r.hidden(site.Observed, robots)
	for _, proto := range all.Published(nil) {
		r.Serves = append(r.Serves, Served{Protocol: proto.Name, Title: proto.Title, Entry: r.Site + strings.TrimPrefix(proto.Home, "/"), label: proto.Label})
	}
	if err := r.readPurposes(site, text); err != nil {
		return err
	}
	for _, name := range []string{"nginx", "caddy"} {
		if strings.Contains(strings.ToLower(r.Server), name) {
			r.Use(name)
		}
	}
	r.Next = r.follow()
	return nil
}

// isPrivate reports whether a host, or one of its addresses, is not public.
func isPrivate(ctx context.Context, host string) bool {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err == nil && slices.ContainsFunc(addresses, func(a netip.Addr) bool {
		a = a.Unmap()
		return !a.IsGlobalUnicast() || a.IsPrivate()
	})
}

// hidden counts the addresses of the site that the probe has seen, and records those that will be
// hidden.
func (r *Report) hidden(seen discover.Observed, robots *fetch.Robots) {
	known := map[string]bool{}
	for _, a := range slices.Concat(seen.Links, seen.Listed) {
		if !strings.HasPrefix(a, r.Site) || known[a] {
			continue
		}
		known[a] = true
		u, err := url.Parse(a)
		if err != nil {
			continue
		}
		r.Seen++
		if (millrace.Visibility{}).Excluded(canon.Relative(r.Site, a)) {
			r.Hides = append(r.Hides, Hidden{a, "exclude"})
		} else if line, rule := robots.Rule(u.RequestURI()); line > 0 {
			r.Hides = append(r.Hides, Hidden{a, fmt.Sprintf("robots.txt line %d: %s", line, rule)})
		}
	}
	slices.SortFunc(r.Hides, func(a, b Hidden) int { return strings.Compare(a.URL, b.URL) })
}

// readPurposes reads purposes from the site's robots.txt: from its signals, and from the crawlers
// that it blocks. Either can refuse a purpose; only signals can permit one.
func (r *Report) readPurposes(site *discover.SiteReport, text []byte) error {
	for _, s := range site.Robots.Statements {
		signals := policy.ReadSignals(s.Value)
		for _, purpose := range slices.Sorted(maps.Keys(signals)) {
			if was, there := r.Purposes[purpose]; !there || was {
				r.Purposes[purpose] = signals[purpose]
			}
			r.Reasons = append(r.Reasons, fmt.Sprintf("%s: robots.txt line %d, %s: %s", purpose, s.Line, s.Name, s.Value))
		}
	}
	table, err := bots.New(nil)
	if err != nil {
		return err
	}
	others := fetch.ParseRobots(text, "somebody-else")
	for _, purpose := range []millrace.Purpose{millrace.AITrain, millrace.AIInput, millrace.Search} {
		tokens := table.Crawlers(purpose)
		var away []string
		for _, t := range tokens {
			if others.Allowed("/") && !fetch.ParseRobots(text, t).Allowed("/") {
				away = append(away, t)
			}
		}
		// A single blocked training crawler counts as a refusal of training. Any other purpose
		// counts as refused only if all of its crawlers are blocked.
		if len(away) == 0 || purpose != millrace.AITrain && len(away) < len(tokens) {
			continue
		}
		r.Purposes[purpose] = false
		r.Reasons = append(r.Reasons, fmt.Sprintf("%s: robots.txt blocks %s", purpose, strings.Join(away, ", ")))
	}
	return nil
}

// maxRobots is the number of bytes of a robots.txt that are parsed (RFC 9309, section 2.5).
const maxRobots = 500 << 10

// robotsText returns the robots.txt of a site. If the file is absent, or its redirects are not
// followed, robotsText returns nil.
func robotsText(ctx context.Context, client *http.Client, site string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, canon.Origin(site)+"/robots.txt", nil)
	if err != nil {
		return nil, err
	}
	resp, err := fetch.Do(ctx, client, req)
	if _, ok := errors.AsType[*fetch.RedirectError](err); ok {
		return nil, nil // the file is unreachable, which does not end the probe
	}
	if err != nil {
		return nil, err
	}
	if err := fetch.CheckStatus(resp); err != nil {
		_ = resp.Body.Close()
		if errors.Is(err, millrace.ErrUnavailable) {
			return nil, err
		}
		return nil, nil //nolint:nilerr // the file is unavailable (RFC 9309, section 2.3.1.3)
	}
	b, err := fetch.ReadBeginning(resp, maxRobots)
	if err != nil {
		return nil, err
	}
	return b.Content, nil
}
