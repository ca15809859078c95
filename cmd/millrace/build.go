package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/mirror"
	origins "github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/store"
)

type buildCommand struct {
	common
	remote
	crawling
	correcting
	publishing
	Source    string   `arg:"" help:"What to build of: the URL of a live site, a folder of HTML or Markdown, or a mirror FILE."`
	Out       string   `required:"" placeholder:"DIR" help:"Folder to write to: what --base-url names. It is made if need be."`
	BaseURL   string   `required:"" name:"base-url" placeholder:"URL" help:"Where the folder is going to be served."`
	HeadersOf string   `name:"headers-for" enum:",netlify,cloudflare" default:"" placeholder:"HOST" help:"Make the _headers file for netlify, which takes more rules, or for cloudflare, whose rules say more (default: one for both)."`
	Force     bool     `help:"Write to a folder that no build has made, and replace files in it."`
	As        string   `enum:",${origins},mirror" default:"" placeholder:"KIND" help:"How to read the source, if detection fails: ${origins} or mirror."`
	Store     string   `placeholder:"FILE" help:"Store of the source (default: a file under the user's state folder, named after it)."`
	Site      string   `placeholder:"URL" help:"Which site of a mirror that holds several."`
	Bots      []string `placeholder:"FILE" help:"More bots that robots.txt refuses what the policy does, one a line: token, operator, purpose (default: those that are built in)." hidden:""`
	// RequireKey comes from a configuration that serve has too.
	RequireKey bool `hidden:""`
}

// buildReport is what `millrace build --json` prints.
type buildReport struct {
	Site string `json:"site"`
	URL  string `json:"url"`
	As   string `json:"as"`
	// FilesURL is where collections are fetched from, if that is elsewhere:
	// what lies in the folder under /scp belongs there.
	FilesURL string        `json:"files_url,omitempty"`
	Out      string        `json:"out"`
	Pages    int           `json:"pages"`
	Skipped  []mirror.Skip `json:"skipped"` // of the source
	static.Report
	Hosts   []hostReport `json:"hosts"`
	Seconds float64      `json:"seconds"`
	Error   string       `json:"error,omitempty"`
	Code    string       `json:"code,omitempty"` // of the error
}

// Run builds once.
func (c *buildCommand) Run(ctx context.Context, p *process) error {
	p.start(&c.common)
	start := time.Now()
	p.limitMemory()
	s := &serveCommand{
		common: c.common, remote: c.remote, crawling: c.crawling, correcting: c.correcting, publishing: c.publishing,
		Source: c.Source, Listen: "nowhere", BaseURL: c.BaseURL, As: c.As, Store: c.Store, Site: c.Site,
	}
	kind, err := s.kind()
	if err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	if c.RequireKey {
		return usageError("--require-key: a host of files asks nobody for a key, so all of this would be public; build it with --require-key=false if it may be")
	}
	if c.BaseURL == "" {
		return usageError("--base-url: name the address where the folder is going to be served")
	}
	docs, err := s.docs(nil)
	if err != nil {
		return err
	}
	if err := c.apart(kind); err != nil {
		return err
	}
	r := &buildReport{URL: docs, As: kind, Out: c.Out, Skipped: []mirror.Skip{}, Hosts: []hostReport{}, Report: static.NewReport()}
	if s.SCP.FilesURL != strings.TrimSuffix(docs, "/") {
		r.FilesURL = s.SCP.FilesURL
	}
	err = c.build(ctx, p, s, p.newSource(kind, docs, ingest.Rules(c.correcting)), r)
	r.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	if _, usage := errors.AsType[usageError](err); err != nil && (usage || !c.JSON || ctx.Err() != nil) {
		return err
	}
	if err != nil {
		r.Error, r.Code = err.Error(), millrace.ErrorCode(err)
	}
	if err := p.report(r, func(w io.Writer) error { return printBuild(w, r) }); err != nil {
		return err
	}
	if err != nil {
		return errReported
	}
	return nil
}

// apart refuses a folder to write to that is a part of what is read.
func (c *buildCommand) apart(kind string) error {
	if way := origins.ByName(kind); way == nil || !way.Folder {
		return nil
	}
	from, to := realPath(c.Source), realPath(c.Out)
	switch {
	case from == to:
		return usageError(fmt.Sprintf("--out %s: it is the source itself", c.Out))
	case exposed(from, to):
		return usageError(fmt.Sprintf("--out %s: it is in the folder that is read, so that the next build would read it too", c.Out))
	case exposed(to, from):
		return usageError(fmt.Sprintf("--out %s: the folder that is read is in it", c.Out))
	}
	return nil
}

// realPath gives the path of what may not be there yet, without links as far
// as it is.
func realPath(name string) string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	for dir, rest := abs, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(dir) == dir {
			return abs
		}
	}
}

// build takes one look at the source, publishes it, and writes the folder.
func (c *buildCommand) build(ctx context.Context, p *process, s *serveCommand, o *source, r *buildReport) (err error) {
	if err := o.open(ctx, s, p); err != nil {
		return err
	}
	if exposed(realPath(c.Out), o.path) {
		return usageError(fmt.Sprintf("--store %s: it is in the folder that is built, so that everybody could read what is hidden; keep it elsewhere", o.path))
	}
	// Whether the folder can be had is known before a site is read for an hour.
	var g http.Handler
	b, err := static.Open(c.Out, r.URL, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.ServeHTTP(w, r) }), &static.Options{Force: c.Force, HeadersFor: c.HeadersOf})
	if errors.Is(err, millrace.ErrInvalid) {
		return usageError(err.Error() + "; --force writes to it all the same")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	conf, err := s.configure(o.Base, r.URL)
	if err != nil {
		return err
	}
	defer func() {
		if o.Store != nil {
			err = errors.Join(err, o.Store.Close())
		}
	}()
	site, err := o.site(ctx, p)
	if err != nil {
		return err
	}
	publication, err := site.Publication(ctx, conf)
	if err != nil {
		return err
	}
	if err := s.declare(ctx, p, o.Store.State(), o.Name); err != nil {
		return err
	}
	published, key, err := s.files()
	if err != nil {
		return err
	}
	if err := o.connect(ctx, s, p, site); err != nil {
		return err
	}
	if o.close != nil {
		defer func() { err = errors.Join(err, o.close()) }()
	}
	path, remove, err := besides(o.path)
	if err != nil {
		return err
	}
	if remove != nil {
		defer func() { err = errors.Join(err, remove()) }()
	}
	from := edition.Source{Store: o.Store, Site: site, Publication: publication}
	artifacts, err := artifactdir.Open(path + "-files")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, artifacts.Close()) }()
	press := edition.NewPress(from, published, artifacts, &edition.Options{Key: key, Version: buildVersion(), Log: p.log, Progress: p.refreshing("refreshing " + o.Title)})
	if err := o.once(ctx, p, site, r); err != nil {
		return err
	}
	if _, err := press.Publish(ctx); err != nil {
		return err
	}
	now := press.Current().View.Site()
	r.Site, r.As, r.Pages = now.Base, o.Kind, now.Pages
	gate, err := c.handler(p, s, o, press, r)
	if err != nil {
		return err
	}
	g = gate
	if err := c.write(ctx, p, o, gate, press, published, b); err != nil {
		return err
	}
	r.Report = b.Report
	bar := p.progress("checking hosts")
	defer bar.End()
	bar.Count("hosts")
	r.Hosts, err = askHosts(ctx, b, r.URL, r.FilesURL, bar.Show)
	return err
}

// once reads the source once, also while another process reads it again and
// again: what that one has stored so far need not be all.
func (o *source) once(ctx context.Context, p *process, site store.Site, r *buildReport) error {
	if o.Source == nil {
		return nil
	}
	held := false
	err := lease.Hold(ctx, o.Store.Leases(), o.Lease(), func(ctx context.Context, l store.Lease) error {
		held = true
		return o.read(ctx, p, site.Fenced(l), r)
	})
	if !held && errors.Is(err, millrace.ErrConflict) {
		return o.read(ctx, p, site, r)
	}
	return err
}

func (o *source) read(ctx context.Context, p *process, site store.Site, r *buildReport) error {
	report, err := o.Sync(ctx, site)
	if err != nil && o.Fallback != nil && o.Fallback(err) {
		report, err = o.Sync(ctx, site)
	}
	if err != nil {
		return err
	}
	r.Skipped = append(r.Skipped, report.Skipped...)
	if report.SkippedN > 0 && report.Added+report.Updated+report.Unchanged == 0 {
		return ingest.NoneRead(report.SkippedN)
	}
	if report.Doubted > 0 {
		p.log.Warn("pages are suddenly missing from the source; they are kept until the next build finds the same", "pages", report.Doubted)
	}
	return nil
}

// handler gives what serve would answer with.
func (c *buildCommand) handler(p *process, s *serveCommand, o *source, press *edition.Press, r *buildReport) (_ *gateway.Gateway, err error) {
	gateO := &gateway.Options{Base: o.Base, Docs: r.URL, Log: p.log}
	s.speak(gateO)
	if gateO.Access.Bots, err = bots.New(&bots.Options{Files: c.Bots, Log: p.log}); err != nil {
		return nil, err
	}
	if o.Files != nil {
		// A file that cannot be read is left out, and the report says so.
		if gateO.Origin, err = proxy.NewFiles(o.Files, o.Base, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
	}
	return gateway.New(press, gateO)
}

// write makes the folder of the edition.
func (c *buildCommand) write(
	ctx context.Context, p *process, o *source, gate *gateway.Gateway, press *edition.Press, published []edition.Room, b *static.Build,
) error {
	bar := p.progress("writing " + c.Out)
	defer bar.End()
	own, err := c.own(ctx, o, gate, b)
	if err != nil {
		return err
	}
	bar.Count("files")
	return serving.Write(ctx, press, published, own, b, bar.Show)
}

// own reserves the names of the site's own files, and gives the files. A site
// whose pages are elsewhere has a page here that leads to the documents; if they
// are on the same host, what is composed would replace its own.
func (c *buildCommand) own(ctx context.Context, o *source, gate *gateway.Gateway, b *static.Build) ([]static.Item, error) {
	base, err := url.Parse(o.Base)
	if err != nil {
		return nil, err
	}
	home := static.Item{Path: "/", Name: "index.html", Ask: strings.TrimSuffix(base.EscapedPath(), "/") + "/"}
	if o.Files == nil {
		b.Reserve(home)
		items := []static.Item{home}
		if at, err := url.Parse(c.BaseURL); err == nil && at.Host != base.Host {
			items = composed(ctx, gate, b, items) // the host has none of them
		}
		return items, nil
	}
	root, err := os.OpenRoot(c.Source)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var items []static.Item
	for e := range siteFiles(ctx, root) {
		if e.Err != nil && !regular(root, e.File) {
			b.Report.Leave(e.URL, e.Err)
			continue
		}
		it := static.Item{Path: e.URL, Name: e.File}
		if strings.HasSuffix(it.Path, "/") {
			it.Name = path.Join(path.Dir(it.Name), "index.html") // the only name that every host knows
		}
		if b.Reserve(it) {
			items = append(items, it)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	has := func(path string) bool {
		return slices.ContainsFunc(items, func(it static.Item) bool { return it.Path == path })
	}
	if !has("/") {
		b.Reserve(home)
		items = append(items, home)
	}
	return composed(ctx, gate, b, items), nil
}
