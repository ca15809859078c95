package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

const pushLimit = 30 * time.Second // for one request to a hub or a search engine

// pushing are the flags of a server that tells search engines.
type pushing struct {
	IndexNow    bool   `name:"indexnow" help:"Tell search engines at once which pages have changed (IndexNow); the file of the key is served under the base of the pages (default: no)."`
	IndexNowKey string `name:"indexnow-key" placeholder:"KEY" help:"Key that the site has for IndexNow already (default: one is made, and kept in the store)." hidden:""`
	IndexNowURL string `name:"indexnow-url" placeholder:"URL" help:"Who takes the changed pages, for all search engines (default: https://api.indexnow.org/indexnow)." hidden:""`
}

// sound refuses pushes that nobody could follow, and those that contradict the
// policy.
func (c *serveCommand) sound(policy *millrace.Policy) error {
	switch {
	case !c.IndexNow && (c.IndexNowKey != "" || c.IndexNowURL != ""):
		return usageError("--indexnow-key and --indexnow-url go with --indexnow")
	case c.IndexNow && c.IndexNowKey != "" && push.CheckKey(c.IndexNowKey) != nil:
		return usageError(fmt.Sprintf("--indexnow-key: %v", push.CheckKey(c.IndexNowKey)))
	}
	for _, room := range all.Protocols() {
		if len(c.Web.Hub) > 0 && room.Feeds && c.closed(room.Name) {
			return usageError("--hub: hubs have no key, and could not read the feeds: add --open " + room.Name)
		}
	}
	if c.IndexNow && policy.Refuses(millrace.Search) {
		return usageError("--indexnow: the policy forbids the use for search, so there is nothing to tell search engines")
	}
	return nil
}

// reachable refuses to tell others of what only this machine can see.
func (c *serveCommand) reachable(docs string, o *source) error {
	if c.IndexNow && o.Kind == "mirror" && !c.Rehost {
		return usageError("--indexnow: the pages of a mirror are another site's, which tells of them itself")
	}
	for flag, at := range map[string]string{"--hub": docs, "--indexnow": o.Base} {
		if flag == "--hub" && len(c.Web.Hub) == 0 || flag == "--indexnow" && !c.IndexNow || c.AllowPrivate {
			continue
		}
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		a, err := netip.ParseAddr(u.Hostname())
		if u.Hostname() == "localhost" || err == nil && (a.IsLoopback() || a.IsPrivate() || a.IsUnspecified() || a.IsLinkLocalUnicast()) {
			return usageError(fmt.Sprintf("%s: nobody else reaches %s: name the site's address with --base-url", flag, at))
		}
	}
	return nil
}

// indexNow gives who is told of changed pages, nil if nobody is. What it knows the
// site by is kept with the site.
func (c *serveCommand) indexNow(ctx context.Context, s store.State, site, base string) (*push.IndexNow, error) {
	if !c.IndexNow {
		return nil, nil
	}
	key := c.IndexNowKey
	if key == "" {
		made, err := state.Make(ctx, s, site, "indexnow/key",
			func(key []byte) bool { return push.CheckKey(string(key)) == nil },
			func() ([]byte, error) {
				key, err := push.NewKey(rand.Reader)
				return []byte(key), err
			})
		if err != nil {
			return nil, fmt.Errorf("key of IndexNow: %w", err)
		}
		key = string(made)
	}
	n, err := push.NewIndexNow(c.IndexNowURL, key, base)
	if err != nil {
		return nil, usageError("--indexnow: " + err.Error())
	}
	return n, nil
}

// prove has the gateway serve the file of the key.
func (s *service) prove(ctx context.Context, o *gateway.Options) (err error) {
	if s.indexNow, err = s.c.indexNow(ctx, s.source.Store.State(), s.source.Name, s.source.Base); err != nil || s.indexNow == nil {
		return err
	}
	o.Fixed = map[string]string{s.indexNow.Path(): s.indexNow.Text()}
	s.p.log.Info("search engines are told of changed pages", "key_file", strings.TrimSuffix(s.source.Base, "/")+s.indexNow.Path())
	return nil
}

// publishedSite is a site as its current edition shows it.
type publishedSite struct{ press *edition.Press }

// Head implements [push.Site].
func (p publishedSite) Head(context.Context) (millrace.View, error) {
	return p.press.Current().View, nil
}

// push tells others of every edition.
func (s *service) push(ctx context.Context) error {
	c := s.c
	if len(c.Web.Hub) == 0 && s.indexNow == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.Press.Ready():
	}
	client := fetch.New(&fetch.Options{
		AllowPrivate: c.AllowPrivate, UserAgent: c.UserAgent, Contact: c.Contact, IgnoreRobots: true, Delay: -1, Timeout: pushLimit, Dial: s.p.dial,
	}) // without a log: URLs that are posted to may have secrets
	defer client.CloseIdleConnections()
	p := &push.Pusher{
		Site: publishedSite{s.Press}, State: s.source.Store.State(), Leases: s.source.Store.Leases(), Name: s.docs,
		Moved: s.Press.Moved, Topics: s.topics, Client: client.HTTP(), Hubs: c.Web.Hub, IndexNow: s.indexNow, Logger: s.p.log,
	}
	p.Run(ctx)
	return nil
}

// topics gives the URLs of the documents that tell what has changed.
func (s *service) topics() (out []string) {
	for _, n := range s.Press.Current().Advertisements {
		for _, path := range n.Topics {
			out = append(out, strings.TrimSuffix(s.docs, "/")+path)
		}
	}
	return out
}
