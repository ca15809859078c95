package main

import (
	"context"
	"errors"
	"net"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/dashboard"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/internal/tree"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// plan is a validated configuration of serve.
type plan struct {
	c        *serveCommand
	p        *process
	kind     string // kind of the source
	embedder index.Embedder
	out      string // folder to write. If empty, serve.
	host     string // static host that will serve the folder out
	compact  bool   // publish each page in one form
}

// plan validates the flags and the policy without opening anything.
func (c *serveCommand) plan(p *process) (*plan, error) {
	given := c.Source
	kind, err := c.kind()
	if err != nil {
		return nil, err
	}
	if c.Source != given {
		p.log.Info("reading the built site; --as markdown reads its sources", "source", c.Source)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := c.checkPolicy(p.policy); err != nil {
		return nil, err
	}
	if err := c.checkNotifications(p.policy); err != nil {
		return nil, err
	}
	embedder, err := c.embedder(0)
	if err != nil {
		return nil, err
	}
	return &plan{c: c, p: p, kind: kind, embedder: embedder}, nil
}

// inherited contains the state that a new configuration inherits from the old one.
type inherited struct {
	metrics  *gateway.Metrics
	sessions *dashboard.Sessions     // logins. If nil, there is no dashboard yet.
	checks   *dashboard.CheckResults // results of the checker, for the dashboard
	agents   *webauth.Verifier       // verifies signatures. If nil, they are not verified.
}

// service is a site with one configuration: it reads, publishes and serves the site.
type service struct {
	*serving.Service
	inherited
	c            *serveCommand
	p            *process
	endpointBase string // base URL of the machine documents
	source       *source
	site         store.Site
}

// prepare creates a service from a plan. It does not start the service, and does not affect the
// running service. was is the running service, whose store the new one shares, or nil.
func (l *plan) prepare(ctx context.Context, at net.Addr, was *service) (_ *service, err error) {
	c, p := l.c, l.p
	s := &service{Service: serving.New(p.log), c: c, p: p}
	if s.endpointBase, err = c.endpointBase(at); err != nil {
		return nil, err
	}
	if err := c.checkEndpointBase(s.endpointBase); err != nil {
		return nil, err
	}
	o := p.newSource(l.kind, s.endpointBase, ingest.Rules(c.extractFlags))
	o.SiteTitle = c.SiteTitle
	s.source = o
	if was != nil {
		s.inherited = was.inherited
		if was.c.PrivateAgents != c.PrivateAgents {
			s.agents = nil
		}
		o.Store = was.source.Store
		if last := was.source.Last(); last != nil {
			o.SetLastScan(last)
			if o.Kind == ingest.Live {
				o.Kind = last.Kind // the result of the last probe of the site
			}
		}
	} else {
		s.metrics, s.checks = gateway.NewMetrics(), dashboard.NewCheckResults()
	}
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, s.Close())
		if was == nil && o.Store != nil {
			err = errors.Join(err, o.Store.Close())
		}
	}()
	if err := o.open(ctx, c, p); err != nil {
		return nil, err
	}
	s.OnClose(o.close)
	if l.out != "" && !stores.IsPostgres(o.path) && tree.Exposes(l.out, o.path) {
		return nil, usageError("--store " + o.path + ": the store is inside the published folder, where clients could read hidden pages; move it elsewhere")
	}
	if l.out == "" {
		if err := c.reachable(s.endpointBase, o); err != nil {
			return nil, err
		}
	}
	so := &serving.Options{Origin: &o.Origin, Embedder: l.embedder, Edition: edition.Options{Version: buildVersion()}}
	if so.Config, err = c.configure(o.Base, s.endpointBase); err != nil {
		return nil, err
	}
	if s.site, err = o.site(ctx, p); err != nil {
		return nil, err
	}
	so.Site, so.AccessLog = s.site, c.AccessLog
	if so.Events, err = c.events(ctx, o); err != nil {
		return nil, err
	}
	if so.Exporters, err = s.exporters(); err != nil {
		return nil, err
	}
	policy, err := ingest.DatedPolicy(ctx, o.Store.State(), o.Name, p.policy, p.log)
	if err != nil {
		return nil, err
	}
	so.Publisher, so.Closed = c.publisher(policy, l.out != "", l.compact, l.embedder != nil), c.needsKey
	if err := o.connect(ctx, c, p, s.site); err != nil {
		return nil, err
	}
	so.Edition.Progress = p.refreshing("refreshing "+o.Title, "pages")
	if so.Edition.Signer, err = c.signer(s.endpointBase); err != nil {
		return nil, err
	}
	path, remove, err := p.companionPath(o.path)
	if err != nil {
		return nil, err
	}
	s.OnClose(remove)
	artifacts, err := p.openArtifacts(ctx, c.Artifacts, path, o.Store)
	if err != nil {
		return nil, err
	}
	s.OnClose(artifacts.Close)
	so.Artifacts = artifacts
	if l.out == "" {
		so.Index = path
	}
	g := &gateway.Options{Access: access.Options{Streams: p.memory().Streams()}, RobotsLines: c.robotsLines()}
	if stores.IsPostgres(o.path) {
		g.Access.MaxWork = 8 // independent of the number of processors, because requests mostly wait for the database
	}
	g.Elements = l.out != "" && !static.SendsLinks(l.host)
	if so.Push, err = s.pusher(ctx, g); err != nil {
		return nil, err
	}
	if err := s.Open(ctx, so); err != nil {
		return nil, err
	}
	return s, s.createGateway(ctx, so, g)
}

// createGateway creates the gateway.
func (s *service) createGateway(ctx context.Context, so *serving.Options, g *gateway.Options) (err error) {
	c, p, o := s.c, s.p, s.source
	front, err := c.pass(p, o.Base, s.endpointBase, o.Files != nil)
	if err != nil {
		return err
	}
	if front != nil {
		g.Origin = front
		s.OnClose(func() error { front.Close(); return nil })
	}
	requestLog, closeLog, err := c.requestLog(p)
	if err != nil {
		return err
	}
	s.OnClose(closeLog)
	g.RequestLog = requestLog
	g.Place = c.place()
	if err := c.apply(ctx, p, o.Store.Keys(), g); err != nil {
		return err
	}
	if g.Directory, err = c.directory(s.endpointBase); err != nil {
		return err
	}
	if s.agents, err = c.verifier(p, &c.fetchFlags, g, s.agents, s.Replicas.Now, c.authorities(o.Base, s.endpointBase)...); err != nil {
		return err
	}
	if agents := s.agents; agents != nil {
		s.Task(func(ctx context.Context) error { agents.Share(ctx, o.Store.State(), s.endpointBase, p.log); return nil })
	}
	c.answer(p, so.Publisher.Policy, &c.accessFlags, g)
	if c.metered() {
		g.Metrics, g.MetricsOptions.From = s.metrics, c.readers
	}
	if err := s.board(ctx, so, g); err != nil {
		return err
	}
	return s.Answer(g)
}
