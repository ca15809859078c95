package edition

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/lease"
)

// Changed makes [Server.Run] publish. It never waits.
func (s *Server) Changed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// How often Run does what.
const (
	minInterval     = time.Second      // between the starts of two publications
	intervalPerWork = 2                // and at least so many times the processor time of the last
	checkEvery      = time.Second      // whether the site has changed, or another process has published
	retryEvery      = 10 * time.Second // after an error, and at most
	retryMost       = 5 * time.Minute
)

// Run publishes when the site has changed, when the manifest is due, and when
// [Server.Changed] was called. Between the starts of two publications is a second,
// or twice the processor time of the first if that is longer. The parts of a long
// batch follow each other at once. While another process has the lease of the
// publication, it follows the editions of that one. It returns when the context ends.
func (s *Server) Run(ctx context.Context) {
	deferred := make(chan struct{})
	go func() {
		defer close(deferred)
		s.runDeferred(ctx)
	}()
	defer func() { <-deferred }()
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	changed := s.changed // nil while it rests
	lost := false        // another process was first
	var pauseEnded <-chan time.Time
	s.checkForChanges(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.checkForChanges(ctx)
		case <-pauseEnded:
			changed = s.changed
		case <-changed:
			start := time.Now()
			var did progress
			var err error
			spent := processorTime(func() { did, err = s.publish(ctx, lease.Hold) })
			pause := max(minInterval, intervalPerWork*spent) - time.Since(start)
			if !did.held && errors.Is(err, millrace.ErrConflict) {
				s.log.DebugContext(ctx, "another process builds the edition")
				s.Changed() // it may not have all
				pause, err = checkEvery, nil
			}
			if did.more {
				s.Changed()
				pause = 0
			}
			if err != nil && ctx.Err() == nil {
				level := slog.LevelError
				if errors.Is(err, millrace.ErrConflict) && !lost {
					level = slog.LevelInfo // another process was first, which may be
				}
				s.log.Log(ctx, level, "could not publish; trying again", "err", err)
				pause = max(retryEvery, min(pause, retryMost))
				s.Changed()
			}
			lost = errors.Is(err, millrace.ErrConflict)
			changed, pauseEnded = nil, time.After(pause)
		}
	}
}

// look follows another process, and calls Changed if there is something to
// publish.
func (s *Server) checkForChanges(ctx context.Context) {
	s.building.Lock()
	defer s.building.Unlock()
	err := s.follow(ctx)
	if ed := s.current.Load(); ed != nil {
		if err := s.keepArtifacts(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "could not keep artifacts", "err", err)
		}
		if s.damaged.Load() {
			s.Changed()
		}
		if ed.manifest.due(s.now()) {
			s.Changed()
		}
	}
	if err == nil && (s.current.Load() != nil || s.busy == nil || !s.busy()) {
		var at millrace.Cursor
		if at, err = s.siteCursor(ctx); err == nil && at != s.publishedCursor {
			s.Changed()
		}
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "could not look for changes", "err", err)
	}
}
