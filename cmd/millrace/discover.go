package main

import (
	"bytes"
	"context"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

type discoverCommand struct {
	commonFlags
	fetchFlags
	siteKey
	listFlags
	URL          string `arg:"" name:"url" help:"Site to probe: its root or any of its pages."`
	Purpose      string `enum:"ai-input,ai-train,search" default:"ai-input" help:"Intended use of the content: ${enum}."`
	KeyFile      string `placeholder:"FILE" help:"File with the key for the site in its first line. The key is sent only to the site's own origin. Without the flag, the key is read from MILLRACE_KEY."`
	IgnorePolicy bool   `help:"Also include ways that the site's policy and robots.txt do not allow."`
}

// Run probes a site. It fails if it finds no way to read the site.
func (c *discoverCommand) Run(ctx context.Context, p *process) error {
	if err := c.listFlags.validate(); err != nil {
		return err
	}
	root, err := siteRoot(c.URL)
	if err != nil {
		return err
	}
	if err := c.load(p, c.KeyFile, c.URL); err != nil {
		return err
	}
	client := c.client(p, nil)
	if !c.IgnorePolicy {
		client = c.client(p, discardRobots{})
	}
	reader := &protocol.ReaderOptions{Key: c.keyOf}
	c.listFlags.set(reader)
	bar := p.progress("probing " + root)
	bar.Count("requests")
	start := time.Now()
	site, err := discover.Probe(ctx, client.HTTP(), root, &discover.Options{
		Protocols: all.Protocols(), Reader: reader, Purpose: millrace.Purpose(c.Purpose), IgnorePolicy: c.IgnorePolicy, Logger: p.log,
		Progress: func(n int) { bar.Show(n, n) },
	})
	bar.End()
	if err != nil {
		return err
	}
	r := agent.NewDiscovery(site, millrace.Purpose(c.Purpose))
	stats := client.Stats()
	r.Requests, r.Received = stats.Requests, stats.Received()
	r.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	if err := p.report(r, func(w *bytes.Buffer) { _ = r.WriteText(w) }); err != nil {
		return err
	}
	switch {
	case r.Inconclusive != "":
		return errInconclusive
	case r.First == "":
		return errReported
	}
	return nil
}

// discardRobots is a [fetch.RobotsMemory] that stores nothing.
type discardRobots struct{}

func (discardRobots) Load(context.Context, string) ([]byte, error) { return nil, nil }
func (discardRobots) Save(context.Context, string, []byte) error   { return nil }
