package serving

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/gateway"
)

// export runs the exporters.
func (s *Service) export(ctx context.Context) error {
	var all sync.WaitGroup
	for _, e := range s.o.Exporters {
		all.Go(func() { e.Run(ctx) })
	}
	all.Wait()
	return nil
}

// Lags returns how far each exporter is behind.
func (s *Service) Lags(ctx context.Context) []analytics.Lag {
	var out []analytics.Lag
	for _, e := range s.o.Exporters {
		out = append(out, e.Lag(ctx))
	}
	return out
}

// behind returns the lags of the exporters for metrics.
func (s *Service) behind() []gateway.Behind {
	var out []gateway.Behind
	for _, lag := range s.Lags(context.Background()) {
		b := gateway.Behind{Name: lag.Exporter, Events: lag.Events}
		if !lag.Since.IsZero() {
			b.Age = time.Since(lag.Since)
		}
		out = append(out, b)
	}
	return out
}

// push notifies others of every edition.
func (s *Service) push(ctx context.Context) error {
	if s.o.Push == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.Server.Ready():
	}
	o, p := s.o.Origin, *s.o.Push
	p.Site, p.Moved, p.Topics = s, s.Server.Moved, s.topics
	p.State, p.Leases, p.Name, p.Logger = o.Store.State(), o.Store.Leases(), s.o.Config.EndpointBase, s.log
	p.Run(ctx)
	return nil
}

// Head returns the view of the current edition; see [push.Pusher.Site].
func (s *Service) Head(context.Context) (millrace.View, error) { return s.Server.Current().View, nil }

// topics returns the URLs of the documents that list changes.
func (s *Service) topics() (out []string) {
	for _, n := range s.Server.Current().Advertisements {
		for _, path := range n.Topics {
			out = append(out, strings.TrimSuffix(s.o.Config.EndpointBase, "/")+path)
		}
	}
	return out
}
