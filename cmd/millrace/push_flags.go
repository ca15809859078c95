package main

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/protocol/all"
)

// pushFlags holds the flags of a server that notifies search engines and hubs.
type pushFlags struct {
	IndexNow    bool   `name:"indexnow" help:"Notify search engines of changed pages at once, by IndexNow (default: no). The key file is served under the base URL of the pages."`
	IndexNowKey string `name:"indexnow-key" placeholder:"KEY" help:"IndexNow key that the site already has (default: a new key, which is stored)." hidden:""`
	IndexNowURL string `name:"indexnow-url" placeholder:"URL" help:"IndexNow endpoint (default: https://api.indexnow.org/indexnow)." hidden:""`
}

// checkNotifications rejects notifications about URLs that receivers cannot fetch, and
// notifications that contradict the policy.
func (c *serveCommand) checkNotifications(policy *millrace.Policy) error {
	switch {
	case !c.IndexNow && (c.IndexNowKey != "" || c.IndexNowURL != ""):
		return usageError("--indexnow-key and --indexnow-url: only valid with --indexnow")
	case c.IndexNow && c.IndexNowKey != "" && push.CheckKey(c.IndexNowKey) != nil:
		return usageError(fmt.Sprintf("--indexnow-key: %v", push.CheckKey(c.IndexNowKey)))
	}
	for _, proto := range all.Protocols() {
		if len(c.Web.Hub) > 0 && proto.Feeds && c.needsKey(proto.Name) {
			return usageError("--hub: hubs have no key to read the feeds; add --public-protocols " + proto.Name)
		}
	}
	if c.IndexNow && policy.Refuses(millrace.Search) {
		return usageError("--indexnow: the policy forbids use for search")
	}
	return nil
}

// reachable rejects notifications about URLs that other hosts cannot reach, and about pages that
// belong to another site.
func (c *serveCommand) reachable(endpointBase string, o *source) error {
	if c.IndexNow && o.Kind == "mirror" && !c.Rehost {
		return usageError("--indexnow: pages of a mirror belong to another site, which submits its own pages")
	}
	for flag, at := range map[string]string{"--hub": endpointBase, "--indexnow": o.Base} {
		if flag == "--hub" && len(c.Web.Hub) == 0 || flag == "--indexnow" && !c.IndexNow || c.AllowPrivate {
			continue
		}
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		a, err := netip.ParseAddr(u.Hostname())
		if u.Hostname() == "localhost" || err == nil && (a.IsLoopback() || a.IsPrivate() || a.IsUnspecified() || a.IsLinkLocalUnicast()) {
			return usageError(fmt.Sprintf("%s: other hosts cannot reach %s; name the site's URL with --base-url", flag, at))
		}
	}
	return nil
}

// pusher returns the pusher that notifies hubs and search engines of editions, or nil. It adds the
// key file of IndexNow to the gateway.
func (s *service) pusher(ctx context.Context, g *gateway.Options) (*push.Pusher, error) {
	c, o := s.c, s.source
	if len(c.Web.Hub) == 0 && !c.IndexNow {
		return nil, nil //nolint:nilnil // optional
	}
	client := c.notificationClient(s.p)
	s.OnClose(func() error { client.CloseIdleConnections(); return nil })
	p := &push.Pusher{Client: client.HTTP(), Hubs: c.Web.Hub}
	if !c.IndexNow {
		return p, nil
	}
	key := c.IndexNowKey
	if key == "" {
		var err error
		if key, err = push.StoredKey(ctx, o.Store.State(), o.Name); err != nil {
			return nil, err
		}
	}
	var err error
	if p.IndexNow, err = push.NewIndexNow(c.IndexNowURL, key, o.Base); err != nil {
		return nil, usageError("--indexnow: " + err.Error())
	}
	g.Texts = map[string]string{p.IndexNow.Path(): p.IndexNow.Text()}
	s.p.log.Info("submitting changed pages by IndexNow", "url", strings.TrimSuffix(o.Base, "/")+p.IndexNow.Path())
	return p, nil
}
