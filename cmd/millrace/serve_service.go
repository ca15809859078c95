package main

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/dashboard"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/store"
)

// plan is a configuration of serve that is right as far as it says itself.
type plan struct {
	c        *serveCommand
	p        *process
	kind     string // of the source
	embedder index.Embedder
}

// plan looks at the flags and the policy, without opening anything.
func (c *serveCommand) plan(p *process) (*plan, error) {
	kind, err := c.kind()
	if err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := c.agree(p.policy); err != nil {
		return nil, err
	}
	if err := c.sound(p.policy); err != nil {
		return nil, err
	}
	embedder, err := c.embedder(0)
	if err != nil {
		return nil, err
	}
	return &plan{c, p, kind, embedder}, nil
}

// service is a site at work by one configuration: what reads it, publishes it
// and answers for it.
type service struct {
	*serving.Service
	c      *serveCommand
	p      *process
	docs   string // base URL of the machine documents
	source *source
	site   store.Site
	agents *webauth.Verifier // of signatures; nil = nobody looks at them
	events *eventRecorder    // nil = nothing is recorded
	// exporters hand on what is recorded.
	exporters []*analytics.Exporter
	metrics   *gateway.Metrics // nil = nothing is counted
	// visitors are logged in to the dashboard, and verdicts are what it shows of
	// the checker; nil = there was none yet.
	visitors  *dashboard.Doors
	verdicts  *dashboard.Verdicts
	inside    http.Handler // the gateway, for the owner
	insideKey string

	indexNow *push.IndexNow // nil = search engines are not told
}

// prepare makes a service of a plan. Nothing of it is at work yet, and nothing
// is changed of what another one works with. was is the service that is at
// work, whose store it takes; nil = there is none.
func (l *plan) prepare(ctx context.Context, at net.Addr, was *service) (_ *service, err error) {
	c, p := l.c, l.p
	s := &service{Service: serving.New(p.log), c: c, p: p}
	if s.docs, err = c.docs(at); err != nil {
		return nil, err
	}
	if err := c.together(s.docs); err != nil {
		return nil, err
	}
	o := p.newSource(l.kind, s.docs, ingest.Rules(c.correcting))
	s.source = o
	if was != nil {
		if was.c.PrivateAgents == c.PrivateAgents {
			s.agents = was.agents
		}
		s.events, s.visitors, s.verdicts, s.metrics = was.events, was.visitors, was.verdicts, was.metrics
		o.Store = was.source.Store
		if last := was.source.Last(); last != nil {
			o.Continue(last)
			if o.Kind == "live" {
				o.Kind = last.Kind // as the site itself has told
			}
		}
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
	s.OnClose(func() error {
		if o.close == nil {
			return nil
		}
		return o.close()
	})
	if err := c.reachable(s.docs, o); err != nil {
		return nil, err
	}
	conf, err := c.configure(o.Base, s.docs)
	if err != nil {
		return nil, err
	}
	if s.site, err = o.site(ctx, p); err != nil {
		return nil, err
	}
	if s.events, err = c.record(ctx, p, o, s.site, s.events); err != nil {
		return nil, err
	}
	if err := s.export(); err != nil {
		return nil, err
	}
	if err := c.declare(ctx, p, o.Store.State(), o.Name); err != nil {
		return nil, err
	}
	published, key, err := c.guarded(&c.doors, l.embedder != nil)
	if err != nil {
		return nil, err
	}
	if err := o.connect(ctx, c, p, s.site); err != nil {
		return nil, err
	}
	pressO := &edition.Options{Key: key, Version: buildVersion(), Log: p.log, Progress: p.refreshing("refreshing " + o.Title)}
	if pressO.Signer, err = c.stamp(s.docs); err != nil {
		return nil, err
	}
	path, remove, err := besides(o.path)
	if err != nil {
		return nil, err
	}
	s.OnClose(remove)
	artifacts, err := artifactdir.Open(path + "-files")
	if err != nil {
		return nil, err
	}
	s.OnClose(artifacts.Close)
	err = s.Open(ctx, &serving.Options{
		Origin: &o.Origin, Site: s.site, Config: conf, Protocols: published, Edition: *pressO, Artifacts: artifacts, Index: path, Embedder: l.embedder,
	})
	if err != nil {
		return nil, err
	}
	if err := s.surface(ctx, published); err != nil {
		return nil, err
	}
	s.Task(s.push)
	s.Task(s.tell)
	return s, nil
}

// surface makes the gateway.
func (s *service) surface(ctx context.Context, published []edition.Room) (err error) {
	c, p, o := s.c, s.p, s.source
	gateO := &gateway.Options{Base: o.Base, Docs: s.docs, Log: p.log, Access: access.Options{Streams: p.listening()}}
	if s.events != nil {
		gateO.Events = s.events
	}
	c.speak(gateO)
	front, err := c.pass(p, o.Base, s.docs)
	switch {
	case err != nil:
		return err
	case front != nil:
		gateO.Origin = front
		s.OnClose(func() error { front.Close(); return nil })
	case o.Files != nil:
		if gateO.Origin, err = proxy.NewFiles(o.Files, o.Base, p.log); err != nil {
			return err
		}
	}
	accessLog, closeLog, err := c.accessLog(p)
	if err != nil {
		return err
	}
	s.OnClose(closeLog)
	gateO.AccessLog = accessLog
	if err := c.hold(ctx, p, o.Store.Keys(), gateO); err != nil {
		return err
	}
	if s.agents, err = c.stamping.surface(p, &c.remote, gateO, s.agents, c.reached(o.Base, s.docs)...); err != nil {
		return err
	}
	if err := s.prove(ctx, gateO); err != nil {
		return err
	}
	c.answer(p, c.policy, &c.doors, gateO)
	gateO.Update = func(ctx context.Context, urls []string, gone bool) (millrace.Counts, error) {
		return o.Update(ctx, s.site, s.Press, urls, gone)
	}
	if err := s.meter(gateO, s.metrics); err != nil {
		return err
	}
	if err := s.board(published, gateO); err != nil {
		return err
	}
	if s.Gateway, err = gateway.New(s.Press, gateO); err != nil {
		return err
	}
	s.inside, s.insideKey = s.Gateway.Inside()
	return nil
}

// tend looks after the gateway, until dismiss is called.
func (s *service) tend(ctx context.Context) {
	s.Tend(ctx)
	s.events.enter(ctx, s.site)
}

// dismiss ends what tend has begun, once nothing is answered any more.
func (s *service) dismiss() {
	s.Dismiss()
	s.events.leave()
	if err := s.Close(); err != nil {
		s.p.log.Error("closing the site's files", "error", err)
	}
}
