package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/mcp"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
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
	st, err := p.openToRead(ctx, c.Store)
	if err != nil {
		return err
	}
	lib := newMirrorLibrary(st, c.Store, &index.Options{Logger: p.log, Embedder: embedder})
	defer func() { err = errors.Join(err, lib.close(), st.Close()) }()

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
	store   store.Store
	path    string
	options *index.Options
	turn    chan struct{} // holds a token while an index is made

	mu      sync.Mutex
	indexes map[string]*index.Index // by site
}

func newMirrorLibrary(st store.Store, path string, o *index.Options) *mirrorLibrary {
	return &mirrorLibrary{store: st, path: path, options: o, turn: make(chan struct{}, 1), indexes: make(map[string]*index.Index)}
}

// close closes the indexes; the library opens them again when it needs them.
func (l *mirrorLibrary) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, x := range l.indexes {
		errs = append(errs, x.Close())
	}
	clear(l.indexes)
	return errors.Join(errs...)
}

// openIndexes is how many indexes are kept open.
const openIndexes = 100

// Names implements [mcp.Library].
func (l *mirrorLibrary) Names(ctx context.Context) ([]string, error) {
	return ingest.SiteNames(ctx, l.store)
}

// Site implements [mcp.Library].
func (l *mirrorLibrary) Site(ctx context.Context, name string) (*mcp.Site, error) {
	site, v, err := ingest.Head(ctx, l.store, name)
	if err != nil {
		return nil, err
	}
	x, err := l.index(ctx, name)
	if err != nil {
		return nil, err
	}
	out := &mcp.Site{Name: name, View: x.View(v)}
	said, err := ingest.SiteTerms(ctx, l.store.State(), site)
	if err != nil {
		return nil, err
	}
	out.Terms = said.Terms
	return out, nil
}

// index opens the index of a site.
func (l *mirrorLibrary) index(ctx context.Context, name string) (*index.Index, error) {
	l.mu.Lock()
	x, n := l.indexes[name], len(l.indexes)
	l.mu.Unlock()
	if x != nil {
		return x, nil
	}
	if n >= openIndexes {
		if err := l.close(); err != nil {
			return nil, err
		}
	}
	x, err := index.Open(ctx, index.File(l.path, name), l.options)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.indexes[name]; other != nil {
		return other, x.Close()
	}
	l.indexes[name] = x
	return x, nil
}

// Index implements [mcp.Indexer].
func (l *mirrorLibrary) Index(ctx context.Context, name string, progress func(done, total int)) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	_, v, err := ingest.Head(ctx, l.store, name)
	if err != nil {
		return err
	}
	x, err := l.index(ctx, name)
	if err != nil {
		return err
	}
	return x.Update(ctx, v, progress)
}

// refresh updates the indexes, and learns from them, before a search needs it:
// at once, and then whenever a site has changed for a while.
func (l *mirrorLibrary) refresh(ctx context.Context, p *process) {
	seen := make(map[string]uint64)
	for {
		names, err := ingest.SiteNames(ctx, l.store)
		for _, name := range names {
			if ctx.Err() != nil {
				return
			}
			_, v, err := ingest.Head(ctx, l.store, name)
			if err != nil || v.Site().Seq == seen[name] {
				continue // one that was never complete will be, or not
			}
			seen[name] = v.Site().Seq
			if err := l.learn(ctx, p, name); err != nil && ctx.Err() == nil {
				p.log.Warn("index is out of date; searching it as is", "site", name, "err", err)
			}
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("sites of the store", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(mcpRefresh):
		}
	}
}

// learn brings the index of a site up to date, and what is learned from it.
func (l *mirrorLibrary) learn(ctx context.Context, p *process, name string) error {
	bar := p.progress("indexing " + name)
	err := l.Index(ctx, name, bar.Show)
	bar.End()
	if err != nil {
		return err
	}
	x, err := l.index(ctx, name)
	if err != nil {
		return err
	}
	bar = p.progress("learning from " + name)
	bar.Count("passages")
	defer bar.End()
	return x.Fit(ctx, bar.Show)
}

// agents are the flags of a server that agents may ask by the Model Context
// Protocol.
type agents struct {
	NoMCP bool `name:"no-mcp" help:"Do not answer agents by the Model Context Protocol under /mcp." hidden:""`
}

// answer adds to a gateway what answers agents: the site as it is published,
// to those who may read the content of the protocols.
func (c *agents) answer(p *process, policy *millrace.Policy, doors *doors, o *gateway.Options) {
	if c.NoMCP {
		return
	}
	mo := &mcp.Options{Version: buildVersion(), Logger: p.log}
	if policy != nil {
		mo.Terms = []protocol.Terms{{Policy: policy}}
	}
	o.ServiceName = strings.TrimPrefix(mcp.Path, "/")
	o.Service, o.ServiceGuarded = mcp.New(nil, mo), doors.closed(o.ServiceName)
}
