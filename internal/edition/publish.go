package edition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
)

// Refresh makes the published edition the current one when the server starts. It first builds
// artifacts that are missing or belong to another configuration. If no edition is published, it
// returns ErrNotFound, and updates the publication from the site, so that discovery works at once.
func (s *Server) Refresh(ctx context.Context) error {
	s.building.Lock()
	defer s.building.Unlock()
	_, _, err := s.load(ctx)
	switch {
	case errors.Is(err, millrace.ErrConflict):
		return s.rebuild(ctx)
	case errors.Is(err, millrace.ErrNotFound):
		acquired, failed := s.hold(ctx, lease.Hold, func(ctx context.Context, l store.Lease) error {
			_, err := s.refresh(ctx, l)
			return err
		})
		if failed != nil && (acquired || !errors.Is(failed, millrace.ErrConflict)) { // otherwise another process updates the publication
			return fmt.Errorf("refresh publication: %w", failed)
		}
	}
	return err
}

// follow makes the edition that another process published the current one. An edition of another
// configuration has other documents. The builder ignores it, since it publishes its own editions.
// Other processes build the documents for themselves, because they may have missed the builder's
// edition. Another edition may be published in the meantime, so follow tries up to three times.
func (s *Server) follow(ctx context.Context) error {
	for range 3 {
		_, _, err := s.load(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errForeign):
			if had, err := s.hasPublished(ctx); had || err != nil || s.Builder() {
				return err
			}
			err = s.rebuild(ctx)
		case errors.Is(err, millrace.ErrConflict):
			err = s.rebuild(ctx)
		case errors.Is(err, millrace.ErrNotFound):
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasPublished reports whether the current edition has the pages of the published one. It returns
// true if there is no current edition.
func (s *Server) hasPublished(ctx context.Context) (bool, error) {
	view, _, err := (*s.publication.Load()).Published(ctx)
	if err != nil {
		return false, fmt.Errorf("published edition: %w", err)
	}
	ed := s.current.Load()
	return ed == nil || ed.View.Site().Epoch == view.Site().Epoch && ed.View.Site().Seq == view.Site().Seq, nil
}

// load makes the published edition the current one, if this process can serve it. It returns the
// edition's number and manifest. If it returns an error, number and m are those on which the next
// edition can be based.
//
// ErrNotFound: this generation of the publication has no edition; the manifest is that of the
// generation from which this one was forked. ErrConflict: the manifest is damaged, or an artifact
// is missing. errForeign: another configuration built the edition; the manifest is that of the
// current edition, if any.
func (s *Server) load(ctx context.Context) (number uint64, m *manifest, err error) {
	view, stored, err := (*s.publication.Load()).Published(ctx)
	if millrace.ErrorCode(err) == "log-dropped" && s.from.Reopen != nil {
		var again store.Publication
		if again, err = s.from.Reopen(ctx); err == nil {
			s.publication.Store(&again)
			s.publishedCursor = ""
			s.endTerm(nil) // the name of the lease contains the generation
			view, stored, err = again.Published(ctx)
		}
	}
	if errors.Is(err, millrace.ErrNotFound) && stored.Number > 0 {
		m, _ = readManifest(stored.Manifest, s.key)
	}
	if err != nil {
		return stored.Number, m, fmt.Errorf("published edition: %w", err)
	}
	if ed := s.current.Load(); ed != nil && ed.stored == stored.Number && ed.View.Site().Epoch == view.Site().Epoch {
		return stored.Number, ed.manifest, nil
	}
	m, err = readManifest(stored.Manifest, s.key)
	if ed := s.current.Load(); errors.Is(err, errForeign) && ed != nil && ed.View.Site().Epoch == view.Site().Epoch {
		m = ed.manifest
	}
	if err != nil { // the manifest is damaged or foreign, and must be built again
		return stored.Number, m, fmt.Errorf("published edition: %w", errors.Join(millrace.ErrConflict, err))
	}
	switch err := m.forEachNotIn(ctx, s.artifacts, s.served(), s.exists(ctx)); {
	case err != nil && !unreadable(err):
		return stored.Number, m, fmt.Errorf("published edition: %w", err)
	case err != nil:
		s.log.Warn("artifact of the published edition is missing; rebuilding it", "edition", stored.Number, "err", err)
		return stored.Number, m, fmt.Errorf("published edition: %w: %w", millrace.ErrConflict, err)
	}
	s.publishedCursor = "" // unknown, because another process published the edition
	s.oldestChange.Store(nil)
	return stored.Number, m, s.put(view, m, stored.Number, false)
}

// rebuild builds the published edition again, and serves the result without publishing it. It
// builds missing artifacts, and those that differ in this version or configuration.
func (s *Server) rebuild(ctx context.Context) error {
	view, stored, err := (*s.publication.Load()).Published(ctx)
	if err != nil {
		return fmt.Errorf("published edition: %w", err)
	}
	prev, err := readManifest(stored.Manifest, s.key)
	made := s.made()
	mine := made
	if ed := s.current.Load(); ed != nil {
		if errors.Is(err, errForeign) && ed.View.Site().Epoch == view.Site().Epoch {
			prev = ed.manifest
		}
		if ed.rebuilt {
			mine.artifacts = slices.Concat(ed.manifest.Artifacts, made.artifacts)
		}
	}
	next, err := s.build(ctx, view, prev, mine)
	if err != nil {
		return fmt.Errorf("published edition: %w", err)
	}
	if err := s.put(view, next, stored.Number, true); err != nil {
		return err
	}
	s.published(made)
	return nil
}

// leaseFunc is the type of [lease.Hold], [lease.Wait] and [Server.asBuilder].
type leaseFunc func(ctx context.Context, leases store.Leases, name string, f func(ctx context.Context, l store.Lease) error) error

// hold calls f with the lease of the publication. acquired reports whether this process got
// the lease.
func (s *Server) hold(ctx context.Context, by leaseFunc, f func(ctx context.Context, l store.Lease) error) (acquired bool, err error) {
	err = by(ctx, s.from.Store.Leases(), (*s.publication.Load()).Name(), func(ctx context.Context, l store.Lease) error {
		acquired = true
		return f(ctx, l)
	})
	return acquired, err
}

// Publish publishes the newest state of the site with its deferred artifacts, and reports whether
// that created an edition. It waits while another process builds an edition.
func (s *Server) Publish(ctx context.Context) (changed bool, err error) {
	for more := true; more; {
		var did progress
		if did, err = s.publish(ctx, lease.Wait); err != nil {
			return changed, err
		}
		changed, more = changed || did.changed, did.more
	}
	if err := s.deferArtifacts(ctx, lease.Wait); err != nil {
		return changed, fmt.Errorf("publish: %w", err)
	}
	if made := s.made(); !made.empty() {
		changed = true
		_, err = s.publish(ctx, lease.Wait)
	}
	return changed, err
}

// progress is the result of one attempt to publish.
type progress struct {
	acquired bool // this process got the lease
	changed  bool // there is a new edition
	more     bool // the edition contains only a part of the committed changes
}

func (s *Server) publish(ctx context.Context, by leaseFunc) (did progress, err error) {
	s.building.Lock()
	defer s.building.Unlock()
	did.acquired, err = s.hold(ctx, by, func(ctx context.Context, l store.Lease) error {
		did.changed, did.more, err = s.advance(ctx, l)
		return err
	})
	if err != nil {
		return progress{acquired: did.acquired}, fmt.Errorf("publish: %w", err)
	}
	return did, nil
}

// minPartEntries is the minimum number of changed pages in an edition that publishes only a
// part of the changes. The first edition always publishes all.
const minPartEntries = 10_000

// refresh updates the publication from the site. It applies all changes, or the next part of them.
func (s *Server) refresh(ctx context.Context, l store.Lease) (more bool, err error) {
	if s.progress != nil {
		defer s.progress(0, 0)
	}
	limit := s.partEntries
	if s.current.Load() == nil {
		limit = 0
	}
	return (*s.publication.Load()).Refresh(ctx, l, limit, s.progress)
}

// siteCursor returns the cursor of the site's newest state. It also records the commit time of the
// oldest change that the current edition lacks.
func (s *Server) siteCursor(ctx context.Context) (at millrace.Cursor, err error) {
	at, err = s.from.Site.HeadCursor(ctx)
	if err != nil || s.publishedCursor == "" || s.publishedCursor == at || s.oldestChange.Load() != nil {
		return at, err
	}
	v, err := s.from.Site.Head(ctx)
	if err != nil {
		return "", err
	}
	for c, err := range v.Changes(ctx, s.publishedCursor) {
		if err == nil && c.Kind != millrace.KindCheckpoint {
			s.oldestChange.Store(&c.Time)
		}
		break // only the first change matters; if it was compacted, the time is unknown
	}
	return at, nil
}

// advance updates the publication from the site and publishes it. more reports that
// the publication lacks a part of the changes.
func (s *Server) advance(ctx context.Context, l store.Lease) (changed, more bool, err error) {
	at, err := s.siteCursor(ctx) // must be called before refresh, which may miss later changes
	if err != nil {
		return false, false, err
	}
	if more, err = s.refresh(ctx, l); err != nil {
		return false, false, err
	}
	if more {
		at = s.publishedCursor
	}
	old, prev, err := s.load(ctx)
	complete := err == nil
	if err != nil && !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrConflict) {
		return false, false, err
	}
	head, err := (*s.publication.Load()).Head(ctx)
	if err != nil {
		return false, false, err
	}
	s.unconfirmed = s.damaged.Swap(false) || s.unconfirmed
	made := s.made()
	if ed := s.current.Load(); complete && ed.rebuilt && !made.empty() && ed.View.Site().Seq == head.Site().Seq {
		return true, more, s.rebuild(ctx) // another process has built the edition
	}
	if complete && !s.unconfirmed && made.empty() && s.current.Load().View.Site().Seq == head.Site().Seq && prev.Version == s.version && prev.Title == head.Site().Title && !prev.due(s.now()) {
		s.publishedCursor = at
		s.oldestChange.Store(nil)
		return false, more, nil
	}
	start := time.Now()
	var next *manifest
	var stored store.Edition
	for range 3 {
		if next, err = s.build(ctx, head, prev, made); err != nil {
			return false, false, err
		}
		if stored, err = s.swap(ctx, l, old, next); !errors.Is(err, errCollected) {
			break
		}
		s.unconfirmed = true
	}
	if err != nil {
		return false, false, err
	}
	if err := s.put(head, next, stored.Number, false); err != nil {
		return false, false, err
	}
	s.published(made)
	s.publishedCursor, s.unconfirmed = at, false
	if oldest := s.oldestChange.Swap(nil); oldest != nil {
		s.lastLag.Store(int64(max(s.now().Sub(*oldest), 0)))
	}
	if err := s.collect(ctx, prev, time.Now()); err != nil && ctx.Err() == nil {
		s.log.Warn("could not delete old artifacts", "err", err)
	}
	s.log.Info("published", "seq", head.Site().Seq, "pages", head.Site().Pages, "listed", listedPages(head.Site()), "artifacts", len(next.Documents), "duration", time.Since(start).Round(time.Millisecond))
	return true, more, nil
}

// artifactsLease is the name of the lease that guards the artifacts of a store. Collection
// and publication hold it, so that an edition never names a deleted artifact.
const artifactsLease = "artifacts"

var errCollected = errors.New("an artifact was deleted while the edition was built")

// swap publishes a manifest if all of its artifacts exist, and otherwise returns errCollected.
func (s *Server) swap(ctx context.Context, l store.Lease, old uint64, m *manifest) (stored store.Edition, err error) {
	raw, err := m.encode(&s.enc)
	if err != nil {
		return stored, err
	}
	err = lease.Wait(ctx, s.from.Store.Leases(), artifactsLease, func(ctx context.Context, _ store.Lease) error {
		err := artifact.Batch(ctx, s.artifacts, func(ctx context.Context) error { // a batch sees the deletions of other processes
			return m.forEachNotIn(ctx, s.artifacts, s.served(), s.exists(ctx))
		})
		if unreadable(err) {
			err = fmt.Errorf("%w: %w", errCollected, err)
		}
		if err != nil {
			return err
		}
		stored, err = (*s.publication.Load()).Publish(ctx, l, old, m.Seq, raw)
		return err
	})
	return stored, err
}
