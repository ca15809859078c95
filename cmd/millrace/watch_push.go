package main

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/gateway"
)

// subscribing holds the WebSub flags of watch.
type subscribing struct {
	Callback       string `placeholder:"URL" help:"Public URL of --callback-listen, for WebSub subscriptions to the hubs of sites (default: no subscriptions). A proxy must pass this URL and everything below it."`
	CallbackListen string `default:"127.0.0.1:8081" placeholder:"ADDRESS" help:"With --callback: address to listen on for hubs (default: ${default})."`
}

// subscriber returns the subscriber and the listener for hubs. Both are nil if WebSub is off.
func (c *watchCommand) subscriber(ctx context.Context, a *agent.Agent) (*agent.Subscriber, net.Listener, error) {
	if c.Callback == "" {
		return nil, nil, nil
	}
	s, err := a.NewSubscriber(c.Callback)
	if err != nil {
		return nil, nil, usageError("--callback: " + err.Error())
	}
	u, err := url.Parse(c.Callback)
	if err != nil {
		return nil, nil, usageError("--callback: " + err.Error())
	}
	if ip := net.ParseIP(u.Hostname()); !c.AllowPrivate && (u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsUnspecified())) {
		return nil, nil, usageError(fmt.Sprintf("--callback: hubs cannot reach %s; use the public URL of this machine", u.Host))
	}
	ln, err := listen(ctx, "--callback-listen", c.CallbackListen)
	return s, ln, err
}

// answerHubs serves requests of hubs until the context ends.
func answerHubs(ctx context.Context, p *process, s *agent.Subscriber, ln net.Listener) error {
	g, err := gateway.New(nil, &gateway.Options{Logger: p.log, Service: s})
	if err != nil {
		_ = ln.Close()
		return err
	}
	p.log.Info("listening for hubs", "address", ln.Addr())
	return g.Run(ctx, ln, &gateway.ServerOptions{Logger: p.log})
}
