package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/push"
)

const pushLimit = 30 * time.Second // for one request to a hub or a search engine

// subscribing are the flags of a watch that hubs can reach.
type subscribing struct {
	Callback       string `placeholder:"URL" help:"Subscribe to the hubs of sites that have them (WebSub), to pull when something has changed: where hubs reach --callback-listen, such as by a proxy that passes this URL and what is below it (default: no subscriptions)."`
	CallbackListen string `default:"127.0.0.1:8081" placeholder:"ADDRESS" help:"With --callback: address to listen on for hubs (default: ${default})."`
}

// subscriber gives what subscribes, and what hubs connect to; nil = nobody is
// subscribed to.
func (c *watchCommand) subscriber(ctx context.Context, p *process) (*push.Subscriber, net.Listener, error) {
	if c.Callback == "" {
		return nil, nil, nil
	}
	// A hub is asked for what it is there for, which is no crawling.
	client := fetch.New(&fetch.Options{
		AllowPrivate: c.AllowPrivate, UserAgent: c.UserAgent, Contact: c.Contact, IgnoreRobots: true, Delay: -1, Timeout: pushLimit, Logger: p.log, Dial: p.dial,
	})
	s, err := push.NewSubscriber(client.HTTP(), c.Callback, &push.SubscriberOptions{Logger: p.log})
	if err != nil {
		return nil, nil, usageError("--callback: " + err.Error())
	}
	u, err := url.Parse(c.Callback)
	if err != nil {
		return nil, nil, usageError("--callback: " + err.Error())
	}
	if ip := net.ParseIP(u.Hostname()); !c.AllowPrivate && (u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsUnspecified())) {
		return nil, nil, usageError(fmt.Sprintf("--callback: no hub reaches %s: name the URL by which others reach this machine", u.Host))
	}
	ln, err := listen(ctx, "--callback-listen", c.CallbackListen)
	return s, ln, err
}

// answerHubs answers hubs until the context ends.
func answerHubs(ctx context.Context, p *process, s *push.Subscriber, ln net.Listener) error {
	g, err := gateway.New(nil, &gateway.Options{Log: p.log, Service: s})
	if err != nil {
		_ = ln.Close()
		return err
	}
	p.log.Info("listening for hubs", "address", ln.Addr())
	return g.Run(ctx, ln, &gateway.ServerOptions{Log: p.log})
}
