package edition

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace"
)

// Changed makes [Server.Run] publish. Changed does not block.
func (s *Server) Changed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Intervals of Run.
const (
	minInterval     = time.Second      // minimum time between the starts of two publications
	intervalPerWork = 2                // minimum interval in multiples of the processor time during the last publication
	checkEvery      = time.Second      // time between checks for changes of the site and editions of other processes
	retryEvery      = 10 * time.Second // minimum time between attempts after an error
	maxRetry        = 5 * time.Minute
)

// FollowTime is the time within which all processes serve a new edition, if the store works.
const FollowTime = 2 * time.Second

// Run publishes when the site changes, when artifacts must be built again, and after
// [Server.Changed]. The starts of two publications are at least a second apart, or twice the
// processor time of the first one if that is longer. The parts of a large number of changes follow
// each other without a pause. While another process is the builder, Run loads the editions of that
// process. It returns when the context ends.
func (s *Server) Run(ctx context.Context) {
	var others sync.WaitGroup
	others.Go(func() { s.elect(ctx) })
	others.Go(func() { s.runDeferred(ctx) })
	others.Go(func() { s.keepVersions(ctx) })
	others.Go(func() { s.renewSuperseded(ctx) })
	defer others.Wait()
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	changed := s.changed // nil during a pause
	lost := false        // the last attempt failed because of another process or a lost lease
	var pauseEnded <-chan time.Time
	s.checkForChanges(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.checkForChanges(ctx)
		case <-s.elected:
			if s.checkForChanges(ctx); s.Published() {
				s.Changed() // another version of the program may have built the edition, and results of deferred work may be missing
			}
		case <-pauseEnded:
			changed = s.changed
		case <-changed:
			if !s.Builder() {
				break // this process checks for changes again when it is elected
			}
			start := time.Now()
			var did progress
			var err error
			spent := processorTime(func() { did, err = s.publish(ctx, s.asBuilder) })
			took := time.Since(start)
			pause := max(minInterval, intervalPerWork*min(spent, took)) - took
			if !did.acquired && errors.Is(err, millrace.ErrConflict) {
				s.log.DebugContext(ctx, "another process is building the edition")
				s.Changed() // that edition may not have all changes
				pause, err = checkEvery, nil
			}
			if did.more {
				s.Changed()
				pause = 0
			}
			if err != nil && ctx.Err() == nil {
				// A single conflict is normal: another process may publish first, and a lease ends if
				// the clock is set.
				conflict := errors.Is(err, millrace.ErrConflict) || errors.Is(err, context.Canceled)
				level := slog.LevelInfo
				if pause = min(pause, maxRetry); !conflict || lost {
					level, pause = slog.LevelError, max(pause, retryEvery)
					s.endTerm(errResigned)
				}
				lost = conflict
				s.log.Log(ctx, level, "could not publish; trying again", "err", err)
				s.Changed()
			} else {
				lost = false
			}
			changed, pauseEnded = nil, time.After(pause)
		}
	}
}

// checkForChanges loads an edition of another process, and calls Changed if the server
// must publish.
func (s *Server) checkForChanges(ctx context.Context) {
	s.building.Lock()
	defer s.building.Unlock()
	err := s.follow(ctx)
	if ed := s.current.Load(); ed != nil {
		if err := s.keepArtifacts(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "could not renew artifacts", "err", err)
		}
		if s.Builder() {
			if err := s.collect(ctx, nil, time.Now()); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "could not delete old artifacts", "err", err)
			}
		}
		if !s.present(ctx, ed.manifest) {
			s.damaged.Store(true)
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
	switch {
	case err == nil:
		s.followed.Store(new(time.Now()))
		if s.checksFail {
			s.log.InfoContext(ctx, "checking for changes again")
		}
		s.checksFail = false
	case ctx.Err() == nil && !s.checksFail: // log once, because the check runs every second
		s.log.WarnContext(ctx, "could not check for changes; trying again", "err", err)
		s.checksFail = true
	}
}

// SinceChecked returns the time since the last check that confirmed that the server's edition is
// the newest one, or 0 before the first such check.
func (s *Server) SinceChecked() time.Duration {
	if at := s.followed.Load(); at != nil {
		return time.Since(*at)
	}
	return 0
}
