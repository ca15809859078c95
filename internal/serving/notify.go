package serving

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/edition"
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

// Lags returns the lag of each exporter.
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

// settledEdition is the newest edition that all replicas have.
type settledEdition struct {
	view  millrace.View // nil before the first edition
	moved chan struct{} // closed when all replicas have a newer edition
}

// settle records each edition after the maximum delay with which other replicas serve it, because
// the receiver of a notification may send its request to any replica. It returns when the context
// ends.
func (s *Service) settle(ctx context.Context) {
	for {
		moved, view := s.Server.NextEdition(), s.Server.Current().View
		if s.Replicas.Count() > 1 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(edition.FollowTime):
			}
		}
		close(s.settled.Swap(&settledEdition{view, make(chan struct{})}).moved)
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
	}
}

// push notifies hubs and IndexNow of every edition.
func (s *Service) push(ctx context.Context) error {
	if s.o.Push == nil {
		return nil
	}
	first := make(chan struct{})
	s.settled.Store(&settledEdition{moved: first})
	var settling sync.WaitGroup
	defer settling.Wait()
	settling.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.Server.Ready():
			s.settle(ctx)
		}
	})
	select {
	case <-ctx.Done():
		return nil
	case <-first:
	}
	o, p := s.o.Origin, *s.o.Push
	p.Site, p.Moved, p.Topics = s, func() <-chan struct{} { return s.settled.Load().moved }, s.topics
	p.State, p.Leases, p.Name, p.Logger = o.Store.State(), o.Store.Leases(), s.o.Config.EndpointBase, s.log
	p.Run(ctx)
	return nil
}

// Head returns the view of the newest edition that all replicas have; see [push.Pusher.Site].
func (s *Service) Head(context.Context) (millrace.View, error) { return s.settled.Load().view, nil }

// status returns the lines of /readyz about this replica.
func (s *Service) status(ctx context.Context) (lines []string) {
	role := "this replica follows the editions of another one"
	if s.Server.Builder() {
		role = "this replica builds the editions"
	}
	lines = append(lines, role)
	if n := s.Replicas.Count(); n > 1 {
		lines = append(lines, fmt.Sprintf("there are %d replicas; each enforces its share of the rate limits", n))
	}
	if d := s.Server.SinceChecked(); d > edition.FollowTime {
		lines = append(lines, fmt.Sprintf("the edition may be old: could not check for a newer one for %.1f s", d.Seconds()))
	}
	if s.index != nil {
		if err := s.index.Lag(ctx, s.Server.Current().View); err != nil {
			lines = append(lines, err.Error())
		}
	}
	return lines
}

// topics returns the URLs of the feeds, which are the documents that list changes.
func (s *Service) topics() (out []string) {
	for _, n := range s.Server.Current().Advertisements {
		for _, l := range n.Root {
			if l.Rel == "alternate" && (l.Type == "application/atom+xml" || l.Type == "application/feed+json") {
				out = append(out, l.URL)
			}
		}
	}
	return out
}
