package serving

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/ingest"
)

const (
	recheck = time.Minute      // time between checks of whether the index is up to date
	refit   = 10 * time.Second // time between checks of whether vectors must be fitted
	inspect = 2 * time.Second  // time between checks of whether the store exists
)

// updateIndex updates the search index after each publication. A publication does not wait for the
// index.
func (s *Service) updateIndex(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Server.Ready():
	}
	failing := false
	for {
		moved := s.Server.NextEdition()
		bar := s.o.Origin.StartProgress("indexing " + s.o.Origin.Title)
		s.alone.Lock()
		err := s.index.Update(ctx, s.Server.Current().View, bar.Show)
		s.alone.Unlock()
		bar.End()
		if err != nil && ctx.Err() == nil && !failing {
			s.log.Warn("could not update search index", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-moved:
		case <-time.After(recheck): // a search may have detected damage
		}
	}
}

// fitIndex fits vectors to the words of the site, or gets them from an embedder. After that,
// searches use meaning; before that, and after an error, they only compare words. fitIndex starts
// after the first search.
func (s *Service) fitIndex(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Server.Ready():
	}
	var seq uint64
	failing := false
	for {
		wait := refit
		if v := s.Server.Current().View; s.index.FitNeeded() && v.Site().Seq != seq {
			start := time.Now()
			err := s.index.Update(ctx, v, nil) // also waits for an update in progress
			if err == nil {
				err = s.index.Fit(ctx, nil)
			}
			switch {
			case ctx.Err() != nil:
				return nil //nolint:nilerr // the task was stopped
			case err == nil:
				seq = v.Site().Seq
			case !failing:
				s.log.Warn("could not embed pages; searching by words only", "err", err)
			}
			failing = err != nil
			wait = max(refit, 20*time.Since(start))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// watchStore logs an error when the files of the store are removed.
func (s *Service) watchStore(ctx context.Context, present func() error) error {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(inspect):
		}
		err := present()
		if err != nil && !failing {
			s.log.Error("store is missing; not ready", "err", err)
		}
		failing = err != nil
	}
}

// tidy periodically compacts the store and deletes old search indexes.
func (s *Service) tidy(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(ingest.CompactEvery):
		}
		if err := ingest.Compact(ctx, s.o.Origin.Store, s.o.Origin.Name, s.o.Site, ingest.Retention); err != nil && ctx.Err() == nil {
			s.log.Error("could not compact store", "err", err)
		}
		if s.index == nil {
			continue
		}
		if err := s.index.Tidy(); err != nil {
			s.log.Warn("could not delete old search indexes", "err", err)
		}
	}
}
