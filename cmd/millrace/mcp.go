package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/library"
	"github.com/millrace/millrace/internal/mcp"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

type mcpCommand struct {
	commonFlags
	fetchFlags
	embedFlags
	URL        []string  `arg:"" optional:"" name:"url" help:"Sites to mirror, and to keep up to date while the server runs."`
	Store      string    `placeholder:"FILE|URL" help:"Mirror that pull has written, or the store of a published site (default: a file in the user's state folder, named after the first site). Changes are visible at once."`
	Label      siteLabel `placeholder:"LABEL" help:"Offer only the sites of the store with this label (see millrace sites add)."`
	MaxPages   int       `placeholder:"N" default:"1000" help:"Maximum pages to request from a site at once; the next refresh continues (default: ${default}; 0 is no limit)."`
	Fetch      *bool     `negatable:"" help:"Offer tools that read any page of the web and add sites (default: only over standard input and output)."`
	Listen     string    `placeholder:"ADDRESS" help:"Serve HTTP on this address under /mcp, such as 127.0.0.1:8081 (default: standard input and output)."`
	RequireKey bool      `help:"With --listen: require a key with the scope read (see millrace help keys)."`
	Rate       float64   `placeholder:"N" help:"With --listen: maximum requests per second from one key or address; bursts may be twice as large (default: no limit)."`
}

// mcpReport is the report of `millrace mcp --listen --json` when the server is ready.
type mcpReport struct {
	URL string `json:"url"` // URL of the endpoint
}

// Run serves until the client closes the connection or the context ends.
func (c *mcpCommand) Run(ctx context.Context, p *process) (err error) {
	p.memory().Limit()
	if c.JSON && c.Listen == "" {
		return usageError("--json: only valid with --listen; without it, standard output carries the protocol")
	}
	access := accessFlags{RequireKey: c.RequireKey, Rate: c.Rate}
	if err := access.validate(); err != nil {
		return err
	}
	embedder, err := c.embedder(-1)
	if err != nil {
		return err
	}
	for i, u := range c.URL {
		c.URL[i] = ingest.Source(u)
		if _, err := siteRoot(c.URL[i]); err != nil {
			return err
		}
	}
	st, dsn, writable, err := c.open(ctx, p)
	if err != nil {
		return err
	}
	path, _, err := p.companionPath(dsn)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	lib := library.New(st, path, &library.Options{Label: string(c.Label), Logger: p.log, Embedder: embedder, Progress: p.steps()})
	defer func() { err = errors.Join(err, lib.Close(), st.Close()) }()
	if err := ingest.CheckLabel(ctx, st.Fleet(), string(c.Label)); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	o := &mcp.Options{Version: buildVersion(), Logger: p.log}
	ready := func() { tasks.Go(func() { lib.Follow(ctx) }) }
	if writable {
		a, err := agent.New(st, &agent.Options{
			MaxPages: c.MaxPages, UserAgent: c.UserAgent, Contact: c.Contact, Delay: c.clientOptions(p, nil).Delay,
			AllowPrivate: c.AllowPrivate, Dial: p.dial, Logger: p.log,
		})
		if err != nil {
			return err
		}
		web := library.NewWeb(a, p.log)
		defer web.Close()
		for _, u := range c.URL {
			tasks.Go(func() { _, _, _ = web.Add(ctx, u) }) // Add logs its errors
		}
		if c.fetch() {
			o.Web = web
		}
	}
	if c.Listen != "" {
		return c.listen(ctx, p, st, lib, o, &access, ready)
	}
	ready()
	return mcp.New(lib, o).Run(ctx, p.stdin, p.stdout)
}

// fetch reports whether clients may read any page and add sites.
func (c *mcpCommand) fetch() bool {
	if c.Fetch != nil {
		return *c.Fetch
	}
	return c.Listen == ""
}

// open opens the store, and returns its DSN and whether it can be written. If the command line
// names a store but no site, the store must exist, and may be read-only.
func (c *mcpCommand) open(ctx context.Context, p *process) (st store.Store, dsn string, writable bool, err error) {
	if dsn = c.Store; dsn == "" {
		root := "mcp"
		if len(c.URL) > 0 {
			root, err = siteRoot(c.URL[0])
		}
		if err == nil {
			dsn, err = p.mirrorPath(root)
		}
		if err != nil {
			return nil, "", false, err
		}
	} else if len(c.URL) == 0 {
		st, writable, err = p.openExisting(ctx, dsn)
		return st, dsn, writable, err
	}
	st, err = p.openStore(ctx, dsn)
	return st, dsn, true, err
}

// listen serves over HTTP. The gateway handles keys, limits and timeouts.
func (c *mcpCommand) listen(ctx context.Context, p *process, st store.Store, lib *library.Library, o *mcp.Options, access *accessFlags, ready func()) error {
	ln, err := listen(ctx, "--listen", c.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	if a, ok := ln.Addr().(*net.TCPAddr); !c.RequireKey && (!ok || !a.IP.IsLoopback()) {
		return usageError(fmt.Sprintf("--listen %s: all clients that reach this address could read the whole mirror; add --require-key, or publish one of its sites with millrace serve", c.Listen))
	}
	// A server that requires a key needs no protection against DNS rebinding.
	o.Local = !c.RequireKey
	gateO := &gateway.Options{Logger: p.log, Service: mcp.New(lib, o), ServiceGuarded: c.RequireKey}
	if err := access.apply(ctx, p, st.Keys(), gateO); err != nil {
		return err
	}
	g, err := gateway.New(nil, gateO)
	if err != nil {
		return err
	}
	url := "http://" + ln.Addr().String() + mcp.Path
	ready()
	fmt.Fprintf(p.stderr, "ready %s\n", url)
	if c.JSON {
		if err := p.report(mcpReport{url}, nil); err != nil {
			return err
		}
	}
	return g.Run(ctx, ln, &gateway.ServerOptions{Logger: p.log})
}

// mcpFlags holds the flags of a server with an MCP endpoint.
type mcpFlags struct {
	NoMCP bool `name:"no-mcp" help:"Do not serve the Model Context Protocol under /mcp." hidden:""`
}

// answer adds the MCP endpoint for the published site to a gateway. The endpoint has the same
// access rules as the content of the protocols.
func (c *mcpFlags) answer(p *process, policy *millrace.Policy, access *accessFlags, o *gateway.Options) {
	if c.NoMCP {
		return
	}
	mo := &mcp.Options{Version: buildVersion(), Logger: p.log}
	if policy != nil {
		mo.Terms = []protocol.Terms{{Policy: policy}}
	}
	o.ServiceVersion = mo.Version
	o.ServiceName = strings.TrimPrefix(mcp.Path, "/")
	o.Service, o.ServiceGuarded = mcp.New(nil, mo), access.needsKey(o.ServiceName)
}
