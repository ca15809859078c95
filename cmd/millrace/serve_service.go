package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/dashboard"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/push"
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
	c       *serveCommand
	p       *process
	docs    string // base URL of the machine documents
	origin  *origin
	site    store.Site
	press   *edition.Press
	gateway *gateway.Gateway
	agents  *webauth.Verifier // of signatures; nil = nobody looks at them
	events  *eventRecorder    // nil = nothing is recorded
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

	// tasks read and publish; each goes on until its context ends, or fails for
	// the whole service. They can be started again.
	tasks   []func(context.Context) error
	closers []func() error // of what the gateway answers from

	working sync.WaitGroup
	rest    context.CancelFunc // ends the tasks
	failed  chan error         // of a task
	tending sync.WaitGroup
	leave   context.CancelFunc // ends the tending of the gateway
}

// prepare makes a service of a plan. Nothing of it is at work yet, and nothing
// is changed of what another one works with. was is the service that is at
// work, whose store it takes; nil = there is none.
func (l *plan) prepare(ctx context.Context, at net.Addr, was *service) (_ *service, err error) {
	c, p := l.c, l.p
	s := &service{c: c, p: p, failed: make(chan error, 1)}
	if s.docs, err = c.docs(at); err != nil {
		return nil, err
	}
	if err := c.together(s.docs, at); err != nil {
		return nil, err
	}
	o := p.newOrigin(l.kind, s.docs, ingest.Rules(c.correcting))
	s.origin = o
	if was != nil {
		if was.c.PrivateAgents == c.PrivateAgents {
			s.agents = was.agents
		}
		s.events, s.visitors, s.verdicts, s.metrics = was.events, was.visitors, was.verdicts, was.metrics
		o.Store = was.origin.Store
		if last := was.origin.Last(); last != nil {
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
		err = errors.Join(err, s.close())
		if was == nil && o.Store != nil {
			err = errors.Join(err, o.Store.Close())
		}
	}()
	if err := o.open(ctx, c, p); err != nil {
		return nil, err
	}
	s.closes(func() error {
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
	publication, err := s.site.Publication(ctx, conf)
	if err != nil {
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
	published, key := c.guarded(&c.doors, l.embedder != nil)
	if err := o.connect(ctx, c, p, s.site); err != nil {
		return nil, err
	}
	o.Expect()
	pressO := &edition.Options{Key: key, Version: buildVersion(), Log: p.log, Busy: o.Busy, Progress: p.refreshing("refreshing " + o.Title)}
	if pressO.Signer, err = c.stamp(s.docs); err != nil {
		return nil, err
	}
	path, remove, err := besides(o.path)
	if err != nil {
		return nil, err
	}
	s.closes(remove)
	x, err := index.Open(ctx, index.File(path, o.Name+" "+publication.Name()), &index.Options{Logger: p.log, Embedder: l.embedder})
	if err != nil {
		return nil, err
	}
	s.closes(x.Close)
	pressO.Search = x.View
	from := edition.Source{Store: o.Store, Site: s.site, Publication: publication}
	from.Reopen = func(ctx context.Context) (store.Publication, error) { return s.site.Publication(ctx, conf) }
	artifacts, err := artifactdir.Open(path + "-files")
	if err != nil {
		return nil, err
	}
	s.closes(artifacts.Close)
	s.press = edition.NewPress(from, published, artifacts, pressO)
	if err := s.surface(ctx, published); err != nil {
		return nil, err
	}
	s.tasks = []func(context.Context) error{
		func(ctx context.Context) error { s.gateway.Publish(ctx); return nil },
		func(ctx context.Context) error { return o.Run(ctx, s.site, s.press) },
		func(ctx context.Context) error { return upkeeping(ctx, p, o, s.site, x) },
		func(ctx context.Context) error { return following(ctx, p, x, o.Title, s.press) },
		func(ctx context.Context) error { return fitting(ctx, p, x, s.press) },
		s.push,
		s.tell,
	}
	return s, nil
}

// surface makes the gateway.
func (s *service) surface(ctx context.Context, published []edition.Room) (err error) {
	c, p, o := s.c, s.p, s.origin
	gateO := &gateway.Options{Base: o.Base, Docs: s.docs, Log: p.log, Streams: p.listening()}
	if s.events != nil {
		gateO.Events = s.events
	}
	c.speak(gateO)
	proxy, err := c.pass(p, o.Base, s.docs)
	switch {
	case err != nil:
		return err
	case proxy != nil:
		gateO.Origin = proxy
		s.closes(func() error { proxy.Close(); return nil })
	case o.folder != nil:
		if gateO.Origin, err = gateway.NewFiles(o.folder, o.Base, p.log); err != nil {
			return err
		}
	}
	accessLog, closeLog, err := c.accessLog(p)
	if err != nil {
		return err
	}
	s.closes(closeLog)
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
		return o.Update(ctx, s.site, s.press, urls, gone)
	}
	if err := s.meter(gateO, s.metrics); err != nil {
		return err
	}
	if err := s.board(published, gateO); err != nil {
		return err
	}
	if s.gateway, err = gateway.New(s.press, gateO); err != nil {
		return err
	}
	s.inside, s.insideKey = s.gateway.Inside()
	return nil
}

// closes has something closed with the service; nil = nothing.
func (s *service) closes(f func() error) {
	if f != nil {
		s.closers = append(s.closers, f)
	}
}

// start reads and publishes, until ctx ends or pause is called.
func (s *service) start(ctx context.Context) {
	ctx, s.rest = context.WithCancel(ctx)
	for _, task := range s.tasks {
		s.working.Go(func() {
			if err := task(ctx); err != nil && ctx.Err() == nil {
				select {
				case s.failed <- err:
				default: // the first one tells
				}
			}
		})
	}
}

// pause stops reading and publishing. What is published is answered with as
// before; the service can be started again.
func (s *service) pause() {
	s.rest()
	s.working.Wait()
	select {
	case err := <-s.failed:
		s.p.log.Debug("a task that was to end has failed", "error", err)
	default:
	}
}

// tend looks after the gateway, until dismiss is called.
func (s *service) tend(ctx context.Context) {
	ctx, s.leave = context.WithCancel(context.WithoutCancel(ctx))
	s.tending.Go(func() { s.gateway.Tend(ctx) })
	s.events.enter(ctx, s.site)
}

// dismiss ends what tend has begun, once nobody is answered any more.
func (s *service) dismiss() {
	s.leave()
	s.tending.Wait()
	s.events.leave()
	if err := s.close(); err != nil {
		s.p.log.Error("closing the site's files", "error", err)
	}
}

func (s *service) close() error {
	var all []error
	for _, f := range s.closers {
		all = append(all, f())
	}
	s.closers = nil
	return errors.Join(all...)
}
