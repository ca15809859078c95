package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

type serveCommand struct {
	common
	remote
	crawling
	learning
	publishing
	embedding
	doors
	agents
	Source    string `arg:"" help:"What to publish: the URL of a live site, a folder of HTML or Markdown, or a mirror FILE."`
	Listen    string `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address to listen on (default: ${default})."`
	BaseURL   string `name:"base-url" placeholder:"URL" help:"Where the machine documents live, and the pages of a folder (default: the listen address)."`
	As        string `enum:",crawl,wordpress,markdown,folder,mirror" default:"" placeholder:"KIND" help:"How to read the source, when a look does not tell: crawl, wordpress, markdown, folder or mirror."`
	Store     string `placeholder:"FILE" help:"Store of the source (default: a file under the user's state folder, named after it)."`
	Site      string `placeholder:"URL" help:"Which site of a mirror that holds several."`
	AccessLog string `placeholder:"FILE" help:"Write a line per request there; - is standard error."`
}

// serveReport is what `millrace serve --json` prints once it is ready.
type serveReport struct {
	Site    string        `json:"site"`
	URL     string        `json:"url"`
	As      string        `json:"as,omitempty"` // how the source was read for it; "" when it is an earlier edition
	Pages   int           `json:"pages"`
	Skipped []mirror.Skip `json:"skipped"`
	Seconds float64       `json:"seconds"`
}

const (
	rescan  = 5 * time.Minute  // a look at the whole source, should a watch have missed something
	soonest = time.Minute      // between two looks at a live site
	peek    = 5 * time.Second  // a look at a mirror that others write
	retry   = time.Minute      // after a look that has failed
	recheck = 30 * time.Second // the second look at a folder that is not believed
	doubt   = 10 * time.Minute // the second look at a live site that is not believed
	upkeep  = time.Hour        // between two compactions
	refit   = 10 * time.Second // between two looks whether there is something to learn
	keep    = time.Hour        // how long what is superseded may still be read
	horizon = 30 * 24 * time.Hour
)

// Run serves until its context ends.
func (c *serveCommand) Run(ctx context.Context, p *process) (err error) {
	p.start(&c.common)
	start := time.Now()
	p.limitMemory()
	kind, err := c.kind()
	if err != nil {
		return err
	}
	if err := c.validate(); err != nil {
		return err
	}
	if err := c.agree(p.policy); err != nil {
		return err
	}
	embedder, err := c.embedder(0)
	if err != nil {
		return err
	}
	ln, err := gateway.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	p.log.Info("listening", "address", ln.Addr())
	docs, err := c.docs(ln.Addr())
	if err != nil {
		return err
	}
	o := origin{kind: kind, base: docs, learning: c.learning}
	if err := o.open(ctx, c, p); err != nil {
		return err
	}
	if o.store == nil {
		if o.store, err = sqlite.Open(ctx, o.path, &sqlite.Options{Logger: p.log}); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, o.store.Close()) }()

	conf := store.Config{Base: o.base, Docs: docs, Visibility: c.visibility(), Embedder: embedder}
	c.configure(&conf, false)
	site, err := o.store.Site(ctx, o.name, conf)
	if err != nil {
		return err
	}
	if err := c.declare(ctx, p, site); err != nil {
		return err
	}
	published, key := c.guarded(&conf, &c.doors)
	po := &edition.Options{Key: key, Log: p.log}
	gateO := &gateway.Options{Base: o.base, Docs: docs, Log: p.log, Streams: p.listening()}
	if err := o.connect(ctx, c, p, site); err != nil {
		return err
	}
	if o.close != nil {
		defer func() { err = errors.Join(err, o.close()) }()
	}
	if o.folder != nil {
		if gateO.Origin, err = gateway.NewFiles(o.folder, o.base, p.log); err != nil {
			return err
		}
	}
	press, err := edition.NewPress(site, published, o.path+"-files", po)
	if err != nil {
		return err
	}
	accessLog, closeLog, err := c.accessLog(p)
	if err != nil {
		return err
	}
	defer closeLog()
	gateO.AccessLog = accessLog
	if err := c.hold(ctx, p, o.store, gateO); err != nil {
		return err
	}
	c.answer(p, c.policy, &c.doors, gateO)
	gateO.Update = func(ctx context.Context, urls []string, gone bool) (millrace.Tally, error) {
		return o.update(ctx, p, site, press, urls, gone)
	}
	g, err := gateway.New(press, gateO)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var tasks sync.WaitGroup
	task := func(f func(context.Context) error) {
		tasks.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	task(func(ctx context.Context) error { return g.Run(ctx, ln) })
	task(func(ctx context.Context) error { return o.ingest(ctx, p, site, press) })
	task(func(ctx context.Context) error { return upkeeping(ctx, p, site) })
	task(func(ctx context.Context) error { return fitting(ctx, p, site, press) })
	task(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-press.Ready():
		}
		fmt.Fprintf(p.stderr, "ready %s\n", docs)
		if !c.JSON {
			return nil
		}
		now := press.Current().View.Site()
		r := serveReport{Site: now.Base, URL: docs, Pages: now.Pages, Skipped: []mirror.Skip{}, Seconds: time.Since(start).Seconds()}
		if l := o.last.Load(); l != nil {
			r.As, r.Skipped = l.as, append(r.Skipped, l.report.Skipped...)
		}
		return p.report(r, nil)
	})
	tasks.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// validate refuses values that would be taken for something else.
func (c *serveCommand) validate() error {
	if c.Listen == "" {
		return usageError("--listen: name an address, such as 127.0.0.1:8080; :8080 is every address of this machine")
	}
	_, err := c.rules(nil)
	return errors.Join(c.remote.validate(), c.crawling.validate(), c.publishing.validate(), c.doors.validate(), err)
}

// docs gives the base URL of the machine documents.
func (c *serveCommand) docs(addr net.Addr) (string, error) {
	if c.BaseURL == "" {
		host, port, err := net.SplitHostPort(addr.String())
		if err != nil {
			return "", err
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return "http://" + net.JoinHostPort(host, port) + "/", nil
	}
	u, err := canon.URL(c.BaseURL)
	if err != nil {
		return "", usageError("--base-url: " + err.Error())
	}
	if strings.Contains(u, "?") {
		return "", usageError("--base-url: a base has no query: " + u)
	}
	return strings.TrimSuffix(u, "/") + "/", nil
}

func (c *serveCommand) accessLog(p *process) (io.Writer, func(), error) {
	switch c.AccessLog {
	case "":
		return nil, func() {}, nil
	case "-":
		return p.stderr, func() {}, nil
	}
	f, err := os.OpenFile(c.AccessLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("access log: %w", err)
	}
	return f, func() {
		if err := f.Close(); err != nil {
			p.log.Error("access log", "error", err)
		}
	}, nil
}

// fitting learns from what is published how its words are used, or has it
// embedded, so that a search finds by meaning, too. Until it is done, and when it
// fails, searches compare words.
func fitting(ctx context.Context, p *process, site store.Site, press *edition.Press) error {
	select {
	case <-ctx.Done():
		return nil
	case <-press.Ready():
	}
	var seq uint64
	told := false
	for {
		wait := refit
		if now := press.Current().View.Site().Seq; now != seq {
			start := time.Now()
			err := site.Fit(ctx, nil)
			switch {
			case ctx.Err() != nil:
				return nil //nolint:nilerr // stopping is no failure
			case err == nil:
				seq, told = now, false
			case !told:
				told = true
				p.log.Warn("searches compare words only", "error", err)
			}
			wait = max(refit, 20*time.Since(start))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// upkeeping compacts the store now and then.
func upkeeping(ctx context.Context, p *process, site store.Site) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(upkeep):
		}
		if err := site.Compact(ctx, keep, horizon); err != nil && ctx.Err() == nil {
			p.log.Error("compacting the store", "error", err)
		}
	}
}
