package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/mcp"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

type mcpCommand struct {
	common
	embedding
	Store      string  `required:"" placeholder:"FILE" help:"Mirror that pull has written, or the store of a site that is served; what is pulled meanwhile is seen."`
	Listen     string  `placeholder:"ADDRESS" help:"Answer by HTTP at this address, such as 127.0.0.1:8081, under /mcp (default: on standard input and output, as clients start it)."`
	RequireKey bool    `help:"With --listen: answer only those who have a key that may read (see millrace help keys)."`
	Rate       float64 `placeholder:"N" help:"With --listen: most requests a second from one key or address, with bursts of twice as many (default: no limit)."`
}

// mcpReport is what `millrace mcp --listen --json` prints once it is ready.
type mcpReport struct {
	URL string `json:"url"`
}

// mcpRefresh is the time between two looks for what is to be indexed; a search
// that needs it does not wait for that.
const mcpRefresh = 10 * time.Minute

// Run answers until its client, or its context, ends.
func (c *mcpCommand) Run(ctx context.Context, p *process) (err error) {
	p.start(&c.common)
	p.limitMemory()
	if c.JSON && c.Listen == "" {
		return usageError("--json: standard output has the protocol, and nothing else; it goes with --listen")
	}
	door := doors{RequireKey: c.RequireKey, Rate: c.Rate}
	if err := door.validate(); err != nil {
		return err
	}
	embedder, err := c.embedder(-1)
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.Store); err != nil {
		return fmt.Errorf("store %s: %w: write one with millrace pull URL --store %s", c.Store, millrace.ErrNotFound, c.Store)
	}
	lib := &mirrorLibrary{embedder: embedder, sites: make(map[string]*sqlite.Site), turn: make(chan struct{}, 1)}
	if lib.store, lib.fixed, err = p.openToRead(ctx, c.Store); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.store.Close()) }()

	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	ready := func() { tasks.Go(func() { lib.refresh(ctx, p) }) }
	o := &mcp.Options{Version: buildVersion(), Logger: p.log}
	if c.Listen != "" {
		return c.listen(ctx, p, lib, o, &door, ready)
	}
	ready()
	return mcp.New(lib, o).Run(ctx, p.stdin, p.stdout)
}

// listen answers by HTTP. Everything about HTTP is the gateway's: keys, limits
// and times.
func (c *mcpCommand) listen(ctx context.Context, p *process, lib *mirrorLibrary, o *mcp.Options, door *doors, ready func()) error {
	ln, err := listen(ctx, "--listen", c.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	if a, ok := ln.Addr().(*net.TCPAddr); !c.RequireKey && (!ok || !a.IP.IsLoopback()) {
		return usageError(fmt.Sprintf("--listen %s: whoever reaches this address could read the whole mirror: add --require-key, or publish a site of it with millrace serve", c.Listen))
	}
	// With a key nobody gets in by a browser that is led astray.
	o.Local = !c.RequireKey
	gateO := &gateway.Options{Log: p.log, Service: mcp.New(lib, o), ServiceGuarded: c.RequireKey}
	if err := door.hold(ctx, p, lib.store.Keys(), gateO); err != nil {
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
	return g.Run(ctx, ln, &gateway.ServerOptions{Log: p.log})
}

// mirrorLibrary is what agents read of a store.
type mirrorLibrary struct {
	store    *sqlite.Store
	embedder store.Embedder
	fixed    bool          // nothing can be written, an index neither
	turn     chan struct{} // holds a token while an index is made

	mu    sync.Mutex
	sites map[string]*sqlite.Site // with what their searches keep
}

// keptSites is how many sites are kept open.
const keptSites = 100

// Names implements [mcp.Library].
func (l *mirrorLibrary) Names(ctx context.Context) ([]string, error) { return l.store.Sites(ctx) }

// Site implements [mcp.Library].
func (l *mirrorLibrary) Site(ctx context.Context, name string) (*mcp.Site, error) {
	site, v, err := l.head(ctx, name)
	if err != nil {
		return nil, err
	}
	out := &mcp.Site{Name: name, View: v}
	terms, err := siteTerms(ctx, l.store.State(), site)
	if err != nil {
		return nil, err
	}
	for _, t := range terms {
		out.Terms = append(out.Terms, mcp.Terms{Document: t.URL, Policy: t.Policy})
	}
	return out, nil
}

// head gives a site, and a view of its present state.
func (l *mirrorLibrary) head(ctx context.Context, name string) (*sqlite.Site, millrace.View, error) {
	l.mu.Lock()
	site := l.sites[name]
	l.mu.Unlock()
	if site != nil {
		v, err := site.Head(ctx)
		if !errors.Is(err, millrace.ErrConflict) && !errors.Is(err, millrace.ErrNotFound) {
			return site, v, err
		}
		// It has another configuration by now.
	}
	site, err := l.store.Kept(ctx, name, l.embedder)
	if err != nil {
		return nil, nil, err
	}
	v, err := site.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sites) >= keptSites {
		clear(l.sites)
	}
	l.sites[name] = site
	return site, v, nil
}

// Index implements [mcp.Indexer].
func (l *mirrorLibrary) Index(ctx context.Context, name string, progress func(done, total int)) error {
	if l.fixed {
		return fmt.Errorf("index of %s: %w: the store cannot be written", name, millrace.ErrForbidden)
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	site, _, err := l.head(ctx, name)
	if err != nil {
		return err
	}
	return site.Index(ctx, progress)
}

// refresh makes indexes, and learns from them, before anybody has to wait for
// it: at once, and then whenever a site has changed for a while.
func (l *mirrorLibrary) refresh(ctx context.Context, p *process) {
	if l.fixed {
		return
	}
	seen := make(map[string]uint64)
	for {
		names, err := l.store.Sites(ctx)
		for _, name := range names {
			if ctx.Err() != nil {
				return
			}
			site, v, err := l.head(ctx, name)
			if err != nil || v.Site().Seq == seen[name] {
				continue // one that was never complete will be, or not
			}
			seen[name] = v.Site().Seq
			if err := l.learn(ctx, p, site, name); err != nil && ctx.Err() == nil {
				p.log.Warn("searches do with the index as it is", "site", name, "error", err)
			}
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("sites of the store", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(mcpRefresh):
		}
	}
}

// learn brings the index of a site up to date, and what is learned from it.
func (l *mirrorLibrary) learn(ctx context.Context, p *process, site *sqlite.Site, name string) error {
	bar := p.progress("indexing " + name)
	err := l.Index(ctx, name, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	bar = p.progress("learning from " + name)
	bar.of("passages")
	defer bar.end()
	return site.Fit(ctx, bar.show)
}

// agents are the flags of a server that agents may ask by the Model Context
// Protocol.
type agents struct {
	NoMCP bool `name:"no-mcp" help:"Do not answer agents by the Model Context Protocol under /mcp."`
}

// answer adds to a gateway what answers agents: the site as it is published,
// to those who may read the content of the protocols.
func (c *agents) answer(p *process, policy *millrace.Policy, doors *doors, o *gateway.Options) {
	if c.NoMCP {
		return
	}
	mo := &mcp.Options{Version: buildVersion(), Logger: p.log}
	if policy != nil {
		mo.Terms = []mcp.Terms{{Policy: policy}}
	}
	o.ServiceName = strings.TrimPrefix(mcp.Path, "/")
	o.Service, o.ServiceGuarded = mcp.New(nil, mo), doors.closed(o.ServiceName)
}
