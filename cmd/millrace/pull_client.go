package main

import (
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/store"
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
		robots = ingest.Robots{State: st}
	}
	o := c.clientOptions(p, robots)
	o.Beside, o.MaxReceived = c.shared, int64(c.MaxBytes)
	c.sign(o)
	if check != nil {
		o.Check = check.Check
	}
	return fetch.New(o)
}
