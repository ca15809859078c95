// Package serving publishes a site with one configuration. It keeps the site in sync with
// its source, builds editions, updates the search index, and handles requests.
package serving

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/internal/replica"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// Options configure [Service.Open].
type Options struct {
	Origin    *ingest.Origin
	Site      store.Site   // the site of the origin
	Config    store.Config // configuration of the publication; Open sets Taggers
	Publisher protocol.PublisherOptions
	Closed    func(name string) bool // reports whether the content of a protocol needs a key. If nil, false.
	Edition   edition.Options        // Open sets Key, Search, SourceBusy, WorkLock, Now and Logger
	Artifacts artifact.Store
	Index     string         // file of the search index. If empty, there is no index.
	Embedder  index.Embedder // If nil, vectors are fitted to the words of the site.

	// Events configures the recording of bot requests. If nil, they are not recorded. Open sets its
	// fields HTMLSizes, Leases and Logger.
	Events *analytics.Options
	// AccessLog is the access log of the site's own server, from which bot requests are recorded.
	// If it is empty or Events is nil, no log is followed.
	AccessLog string
	// Exporters send recorded events to other systems.
	Exporters []*analytics.Exporter
	// Push sends a notification of every edition. If nil, none is sent. The caller sets its Client,
	// Hubs and IndexNow.
	Push *push.Pusher
}

// Service publishes a site. A [Server] starts its tasks and handles requests with it.
type Service struct {
	Server    *edition.Server
	Gateway   *gateway.Gateway
	Protocols []edition.Protocol  // protocols in which the site is published
	Usage     store.Usage         // contains the recorded events, or nil if not recorded
	Recorder  *analytics.Recorder // records events, or nil if not recorded
	Replicas  *replica.Replicas   // the processes that serve the publication

	o     Options
	log   *slog.Logger
	index *index.Index

	settled atomic.Pointer[settledEdition]   // set while push runs
	fleet   atomic.Pointer[store.FleetStats] // last counts, or nil
	counted chan struct{}                    // closed after the first attempt to count

	// tasks run until their context ends. An error of a task is an error of the
	// service. Tasks can be started again.
	tasks   []func(context.Context) error
	closers []func() error // functions of OnClose

	alone   sync.Mutex // held by indexing and by deferred work, which take much memory
	working sync.WaitGroup
	rest    context.CancelFunc // ends the tasks
	failed  chan error         // the first error of a task
	tending sync.WaitGroup
	leave   context.CancelFunc // ends runBackground
}

// New returns a service that publishes nothing. The caller must call Open next.
func New(log *slog.Logger) *Service {
	none := func() {}
	return &Service{log: log, counted: make(chan struct{}), failed: make(chan error, 1), rest: none, leave: none}
}

// Open prepares the publication. It does not affect another service for the same site. The caller
// must call Answer next.
func (s *Service) Open(ctx context.Context, o *Options) error {
	s.o = *o
	o = &s.o
	o.Config.Taggers = nil
	for _, p := range all.Published(&o.Publisher) {
		o.Config.Taggers = append(o.Config.Taggers, p.Tagger)
	}
	publication, err := o.Site.Publication(ctx, o.Config)
	if err != nil {
		return err
	}
	name := cmp.Or(o.Config.EndpointBase, o.Config.Base)
	if s.Replicas, err = replica.New(ctx, o.Origin.Store, name, o.Edition.Version, func() bool { return s.Server.Builder() }, s.log); err != nil {
		return err
	}
	if s.Protocols, o.Edition.Key, err = Protocols(o.Publisher, o.Closed); err != nil {
		return err
	}
	s.tasks = []func(context.Context) error{
		func(ctx context.Context) error { s.Gateway.Publish(ctx); return nil },
		func(ctx context.Context) error { return o.Origin.Run(ctx, o.Site, s.Server) },
		func(ctx context.Context) error { s.Replicas.Run(ctx); return nil },
		s.tidy, s.export, s.push, s.countFleet,
	}
	if o.Index != "" {
		name := index.File(o.Index, o.Origin.Name+" "+publication.Name())
		if s.index, err = index.Open(ctx, name, &index.Options{Logger: s.log, Embedder: o.Embedder}); err != nil {
			return err
		}
		s.OnClose(s.index.Close)
		o.Edition.Search = s.index.View
		s.tasks = append(s.tasks, s.updateIndex, s.fitIndex)
	}
	if o.Events != nil {
		usage, events := o.Origin.Store.Usage(), *o.Events
		events.HTMLSizes, events.Leases, events.Logger = o.Site, o.Origin.Store.Leases(), s.log
		s.Usage, s.Recorder = usage, analytics.New(usage, o.Origin.Name, &events)
	}
	o.Origin.SetBusy()
	o.Edition.SourceBusy, o.Edition.WorkLock, o.Edition.Now, o.Edition.Logger = o.Origin.Busy, &s.alone, s.Replicas.Now, s.log
	from := edition.Source{Store: o.Origin.Store, Site: o.Site, Publication: publication}
	from.Reopen = func(ctx context.Context) (store.Publication, error) { return o.Site.Publication(ctx, o.Config) }
	s.Server = edition.NewServer(from, s.Protocols, o.Artifacts, &o.Edition)
	return nil
}

// Answer creates the gateway. It sets these options from those of Open: Base, EndpointBase, Logger,
// Policy, Visibility, Signer, Update, Events, Status, Healthy, Access.Replicas, the MetricsOptions
// except From, Origin if it is nil and the source has files, and Render.
func (s *Service) Answer(g *gateway.Options) (err error) {
	o := &s.o
	g.Base, g.EndpointBase, g.Logger, g.Policy, g.Visibility, g.Signer = o.Config.Base, o.Config.EndpointBase, s.log, o.Publisher.Policy, o.Config.Visibility, o.Edition.Signer
	if o.Origin.Files != nil && g.Origin == nil {
		log := s.log
		if o.Publisher.Static {
			log = slog.New(slog.DiscardHandler) // the report of a build lists unreadable files
		}
		if g.Origin, err = proxy.NewFiles(o.Origin.Files, g.Base, log); err != nil {
			return err
		}
	}
	g.Render = !o.Publisher.Static && o.Origin.IsTextOnly() && cmp.Or(o.Config.EndpointBase, o.Config.Base) == o.Config.Base
	g.Update = func(ctx context.Context, urls []string, gone bool) (millrace.Counts, error) {
		return o.Origin.Update(ctx, o.Site, s.Server, urls, gone)
	}
	g.MetricsOptions.LastScan, g.MetricsOptions.Behind, g.MetricsOptions.Fleet = o.Origin.LastScan, s.behind, s.Fleet
	g.Status, g.MetricsOptions.Replicas, g.Access.Replicas = s.status, s.Replicas.Count, s.Replicas
	if s.Recorder != nil {
		g.Events, g.MetricsOptions.Dropped = s.Recorder, s.Recorder.Dropped
	}
	if s.Recorder != nil && o.AccessLog != "" {
		if err := s.follow(g); err != nil {
			return err
		}
	}
	if st, ok := o.Origin.Store.(interface{ Present() error }); ok {
		g.Healthy = st.Present
		s.Task(func(ctx context.Context) error { return s.watchStore(ctx, st.Present) })
	}
	s.Gateway, err = gateway.New(s.Server, g)
	return err
}

// Task adds a task. Call it before the service starts.
func (s *Service) Task(f func(context.Context) error) { s.tasks = append(s.tasks, f) }

// OnClose makes Close call f, which may be nil.
func (s *Service) OnClose(f func() error) {
	if f != nil {
		s.closers = append(s.closers, f)
	}
}

// start starts the tasks, which end with ctx or when pause is called.
func (s *Service) start(ctx context.Context) {
	ctx, s.rest = context.WithCancel(ctx)
	for _, task := range s.tasks {
		s.working.Go(func() {
			if err := task(ctx); err != nil && ctx.Err() == nil {
				s.fail(err)
			}
		})
	}
}

// fail records the first error of a task.
func (s *Service) fail(err error) {
	select {
	case s.failed <- err:
	default: // keep only the first error
	}
}

// Failed returns a channel that receives the first error of a task.
func (s *Service) Failed() <-chan error { return s.failed }

// pause ends the tasks, which read and publish. The service still handles requests, and
// can be started again.
func (s *Service) pause() {
	s.rest()
	s.working.Wait()
	select {
	case err := <-s.failed:
		s.log.Debug("stopped task failed", "err", err)
	default:
	}
}

// runBackground runs the gateway's maintenance and the recorder until Close.
func (s *Service) runBackground(ctx context.Context) {
	ctx, s.leave = context.WithCancel(context.WithoutCancel(ctx))
	s.tending.Go(func() { s.Gateway.RunBackground(ctx) })
	if s.Recorder != nil {
		s.tending.Go(func() { s.Recorder.Run(ctx) })
	}
}

// Close ends the tasks, stores recorded events, and calls the functions of OnClose. The
// service must not handle requests afterwards.
func (s *Service) Close() error {
	s.pause()
	s.leave()
	s.tending.Wait()
	var all []error
	for _, f := range s.closers {
		all = append(all, f())
	}
	s.closers = nil
	return errors.Join(all...)
}
