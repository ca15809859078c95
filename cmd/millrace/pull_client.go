package main

import (
	"context"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

// siteClient makes a client that looks at no signatures, see sealedClient.
func (c *pullCommand) siteClient(p *process, st store.State) *fetch.Client {
	return c.sealedClient(p, st, nil)
}

// sealedClient makes the client of one site. All of a command share the queues of
// hosts, so that they are as polite, and as many requests run at once, as if
// there were one. Nobody looks at signatures if check is nil.
func (c *pullCommand) sealedClient(p *process, st store.State, check *webauth.Seal) *fetch.Client {
	c.sharing.Do(func() { c.shared = c.client(p, nil) })
	var robots fetch.RobotsMemory
	if !c.IgnorePolicy {
		robots = robotsMemory{st}
	}
	o := c.clientOptions(p, robots)
	o.Beside, o.MaxReceived = c.shared, int64(c.MaxBytes)
	c.sign(o)
	if check != nil {
		o.Check = check.Check
	}
	return fetch.New(o)
}

// mirrored opens a site of a mirror, which keeps what the site made public:
// nothing is hidden a second time.
func mirrored(ctx context.Context, st *sqlite.Store, name string) (store.Site, error) {
	site, err := st.Site(ctx, name, mirrorConfig(name))
	if err != nil {
		return nil, err
	}
	return site, site.Derive(ctx, nil)
}

// mirrorConfig is what a site of a mirror is pulled under, by every command.
func mirrorConfig(name string) store.Config {
	return store.Config{Base: name, Visibility: millrace.Visibility{Exclude: []string{}}}
}
