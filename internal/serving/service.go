// Package serving publishes a site by one configuration: it keeps the site equal to
// its source, builds editions, updates the search index, and answers requests.
package serving

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

// Options are what [Service.Open] publishes.
type Options struct {
	Origin    *ingest.Origin
	Site      store.Site      // of the origin
	Config    store.Config    // of the publication
	Protocols []edition.Room  // that it is published in
	Edition   edition.Options // but for Search and Busy
	Artifacts artifact.Store
	Index     string         // file of the search index
	Embedder  index.Embedder // nil = vectors are fitted to the words of the site
}

// Service is a site that is published. Start reads and publishes; Tend answers.
type Service struct {
	Press   *edition.Press
	Gateway *gateway.Gateway // is set before Start and Tend

	o     Options
	log   *slog.Logger
	index *index.Index

	// tasks go on until their context ends, or fail for the whole service. They
	// can be started again.
	tasks   []func(context.Context) error
	closers []func() error // of what the gateway answers from

	working sync.WaitGroup
	rest    context.CancelFunc // ends the tasks
	failed  chan error         // of a task
	tending sync.WaitGroup
	leave   context.CancelFunc // ends the tending of the gateway
}

// New returns a service that publishes nothing yet.
func New(log *slog.Logger) *Service {
	return &Service{log: log, failed: make(chan error, 1)}
}

// Open prepares the publication. Nothing is changed of what another service works
// with. The caller sets Gateway next.
func (s *Service) Open(ctx context.Context, o *Options) error {
	s.o = *o
	publication, err := o.Site.Publication(ctx, o.Config)
	if err != nil {
		return err
	}
	name := index.File(o.Index, o.Origin.Name+" "+publication.Name())
	if s.index, err = index.Open(ctx, name, &index.Options{Logger: s.log, Embedder: o.Embedder}); err != nil {
		return err
	}
	s.OnClose(s.index.Close)
	o.Origin.Expect()
	s.o.Edition.Search, s.o.Edition.Busy = s.index.View, o.Origin.Busy
	from := edition.Source{Store: o.Origin.Store, Site: o.Site, Publication: publication}
	from.Reopen = func(ctx context.Context) (store.Publication, error) { return o.Site.Publication(ctx, o.Config) }
	s.Press = edition.NewPress(from, o.Protocols, o.Artifacts, &s.o.Edition)
	s.tasks = []func(context.Context) error{
		func(ctx context.Context) error { s.Gateway.Publish(ctx); return nil },
		func(ctx context.Context) error { return o.Origin.Run(ctx, o.Site, s.Press) },
		s.tidy, s.updateIndex, s.fitIndex,
	}
	return nil
}

// Task adds a task to those that Start starts.
func (s *Service) Task(f func(context.Context) error) { s.tasks = append(s.tasks, f) }

// OnClose closes something with the service; nil = nothing.
func (s *Service) OnClose(f func() error) {
	if f != nil {
		s.closers = append(s.closers, f)
	}
}

// Start reads and publishes, until ctx ends or Pause is called.
func (s *Service) Start(ctx context.Context) {
	ctx, s.rest = context.WithCancel(ctx)
	for _, task := range s.tasks {
		s.working.Go(func() {
			if err := task(ctx); err != nil && ctx.Err() == nil {
				s.Fail(err)
			}
		})
	}
}

// Fail makes an error that of a task.
func (s *Service) Fail(err error) {
	select {
	case s.failed <- err:
	default: // the first one is enough
	}
}

// Failed receives the first error of a task.
func (s *Service) Failed() <-chan error { return s.failed }

// Pause stops reading and publishing. The service answers as before, and can be
// started again.
func (s *Service) Pause() {
	s.rest()
	s.working.Wait()
	select {
	case err := <-s.failed:
		s.log.Debug("a task that was to end failed", "err", err)
	default:
	}
}

// Tend looks after the gateway, until Dismiss is called.
func (s *Service) Tend(ctx context.Context) {
	ctx, s.leave = context.WithCancel(context.WithoutCancel(ctx))
	s.tending.Go(func() { s.Gateway.Tend(ctx) })
}

// Dismiss ends what Tend has begun. Nothing is answered any more.
func (s *Service) Dismiss() {
	s.leave()
	s.tending.Wait()
}

// Close closes what the gateway answers from.
func (s *Service) Close() error {
	var all []error
	for _, f := range s.closers {
		all = append(all, f())
	}
	s.closers = nil
	return errors.Join(all...)
}
