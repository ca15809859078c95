package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/sites"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/internal/tree"
	"github.com/millrace/millrace/mirror"
	origins "github.com/millrace/millrace/origin/all"
)

type buildCommand struct {
	commonFlags
	fetchFlags
	crawlFlags
	extractFlags
	publishFlags
	Source   string   `arg:"" optional:"" help:"Source: the URL of a live site, a folder of HTML or Markdown, or a mirror FILE (default: the key source of millrace.yaml)."`
	Out      string   `required:"" placeholder:"DIR" help:"Folder to write to. It is created if necessary."`
	BaseURL  string   `required:"" name:"base-url" placeholder:"URL" help:"URL that will serve the folder."`
	Host     string   `enum:",${hosts}" default:"" placeholder:"HOST" help:"Write the files that this host reads: ${hosts} (default: detected from the domain of --base-url or the files of the source, else plain, for a host without such files)."`
	Complete bool     `help:"Write every protocol in every form, as serve publishes them (default: only the Markdown of each page, one collection of the site, and lists). --also adds individual protocols."`
	Verbose  bool     `help:"List the rules of the specifications that the host cannot meet."`
	Force    bool     `help:"Write to a folder that build did not create, and replace files in it."`
	As       string   `enum:",${origins},mirror" default:"" placeholder:"KIND" help:"How to read the source, if detection fails: ${origins} or mirror."`
	Store    string   `placeholder:"FILE|URL" help:"Store of the source: a file, or postgres://USER@HOST/DATABASE (default: a file in the user's state folder, named after the source)."`
	Site     string   `placeholder:"URL" help:"Site to publish, if the mirror has several."`
	Bots     []string `placeholder:"FILE" help:"Files with additional bots, one per line: token, operator, purpose (default: the built-in bots). The policy in robots.txt also applies to them." hidden:""`
	// RequireKey may be set by a configuration file that serve also uses. If it is set, build fails.
	RequireKey bool `help:"Not supported, because a static host does not check keys. build refuses to run if the configuration requires a key." hidden:""`
}

// Run builds the folder once.
func (c *buildCommand) Run(ctx context.Context, p *process) error {
	start := time.Now()
	p.memory().Limit()
	s := &serveCommand{
		commonFlags: c.commonFlags, fetchFlags: c.fetchFlags, crawlFlags: c.crawlFlags, extractFlags: c.extractFlags, publishFlags: c.publishFlags,
		accessFlags: accessFlags{botRuleFlags: botRuleFlags{botFlags: botFlags{Bots: c.Bots}}}, frontFlags: frontFlags{Place: sites.Standalone, HeadElements: true}, metricsFlags: metricsFlags{Metrics: []string{"off"}}, mcpFlags: mcpFlags{NoMCP: true},
		Source: c.Source, Listen: "nowhere", BaseURL: c.BaseURL, As: c.As, Store: c.Store, Site: c.Site,
	}
	plan, err := s.plan(p)
	if err != nil {
		return err
	}
	given := c.Source
	c.Source = s.Source // may be a built folder inside the given folder
	if c.RequireKey {
		return usageError("--require-key: a static host does not check keys, so all pages would be public; use --require-key=false to publish them")
	}
	if c.BaseURL == "" {
		return usageError("--base-url is required; name the URL where the folder will be served")
	}
	endpointBase, err := s.endpointBase(nil)
	if err != nil {
		return err
	}
	if err := c.checkOverlap(plan.kind); err != nil {
		return err
	}
	r := &serving.BuildReport{URL: endpointBase, As: plan.kind, Out: c.Out, Skipped: []mirror.Skip{}, Report: static.NewReport()}
	if s.SCP.FilesURL != strings.TrimSuffix(endpointBase, "/") {
		r.FilesURL = s.SCP.FilesURL
	}
	plan.out, plan.compact = c.Out, !c.Complete
	plan.host = cmp.Or(c.Host, static.GuessHost(endpointBase, os.DirFS(given)))
	err = c.build(ctx, p, plan, r)
	r.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	if _, usage := errors.AsType[usageError](err); err != nil && (usage || !c.JSON || ctx.Err() != nil) {
		return err
	}
	if err != nil {
		r.Error, r.Code = err.Error(), millrace.ErrorCode(err)
	}
	if err := p.report(r, func(w *bytes.Buffer) { _ = r.WriteText(w, c.Verbose) }); err != nil {
		return err
	}
	if err != nil {
		return errReported
	}
	return nil
}

// checkOverlap rejects an output folder that overlaps the source.
func (c *buildCommand) checkOverlap(kind string) error {
	if way := origins.ByName(kind); way == nil || !way.Folder {
		return nil
	}
	from, to := tree.Real(c.Source), tree.Real(c.Out)
	switch {
	case from == to:
		return usageError(fmt.Sprintf("--out %s: this is the source", c.Out))
	case tree.Exposes(from, to):
		return usageError(fmt.Sprintf("--out %s: the folder is inside the source, so the next build would read it", c.Out))
	case tree.Exposes(to, from):
		return usageError(fmt.Sprintf("--out %s: the source is inside this folder", c.Out))
	}
	return nil
}

// build scans the source once, publishes it, and writes the folder.
func (c *buildCommand) build(ctx context.Context, p *process, plan *plan, r *serving.BuildReport) (err error) {
	s, err := plan.prepare(ctx, nil, nil)
	if err != nil {
		return err
	}
	o := s.source
	defer func() { err = errors.Join(err, s.Close(), o.Store.Close()) }()
	// Open the folder first, so that an error is reported before the site is read, which may take
	// an hour.
	b, err := static.Open(c.Out, r.URL, s.Gateway, &static.Options{Force: c.Force, Host: plan.host})
	if errors.Is(err, millrace.ErrInvalid) {
		return usageError(err.Error() + "; use --force to write to it")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	write := p.refreshing("writing "+c.Out, "files")
	defer write(0, 0)
	bo := &serving.BuildOptions{Progress: write}
	if o.Files != nil {
		bo.Folder = c.Source
	}
	if err = s.Build(ctx, b, r, bo); err != nil {
		return err
	}
	write(0, 0)
	defer p.progress("checking the host").End()
	r.Host, err = serving.AskHost(ctx, b, r.URL, r.FilesURL, s.Protocols)
	return err
}
