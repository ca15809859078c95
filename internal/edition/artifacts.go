package edition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
)

// grace is the default of Options.Grace. Responses in progress, and processes that
// serve an earlier edition, still need superseded artifacts.
const grace = 2 * time.Hour

// forEachNotIn calls f for every artifact of the manifest that is not in other. size is
// in bytes, or -1 if the manifest does not have it.
func (m *manifest) forEachNotIn(ctx context.Context, store artifact.Store, other *manifest, f func(name string, size int64) error) error {
	for i := range m.Documents {
		if err := m.Documents[i].forEachNotIn(ctx, store, other.document(m.Documents[i].Path), f); err != nil {
			return err
		}
	}
	have := make(map[string]bool)
	if other != nil {
		for i := range other.Artifacts {
			have[other.Artifacts[i].name()] = true
		}
	}
	for i := range m.Artifacts {
		if name := m.Artifacts[i].name(); !have[name] {
			if err := f(name, m.Artifacts[i].stored().Size); err != nil {
				return err
			}
		}
	}
	return nil
}

// forEachReadableNotIn is like forEachNotIn, but skips documents with a missing or
// damaged node. All artifacts of such documents are built again.
func (m *manifest) forEachReadableNotIn(ctx context.Context, store artifact.Store, other *manifest, f func(name string, size int64) error) error {
	for i := range m.Documents {
		part := manifest{Documents: m.Documents[i : i+1]}
		err := part.forEachNotIn(ctx, store, other, f)
		if err != nil && !unreadable(err) {
			return err
		}
	}
	return (&manifest{Artifacts: m.Artifacts}).forEachNotIn(ctx, store, other, f)
}

// forEachNotIn calls f for every artifact of the document that is not in other.
func (d *large) forEachNotIn(ctx context.Context, store artifact.Store, other *large, f func(name string, size int64) error) error {
	for ; d != nil; d = d.Keyed {
		err := d.Chunks.Tree.forEachNotIn(ctx, store, other.tree(), func(b *branch, height int) error {
			if height > 0 {
				return f(b.node(), -1)
			}
			return f(b.chunk(), b.Coded)
		})
		if err == nil && d.Brotli != nil && (other == nil || other.Brotli == nil || *other.Brotli != *d.Brotli) {
			err = f(d.Brotli.name(), d.Brotli.Size)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
		if other != nil {
			other = other.Keyed
		}
	}
	return nil
}

// unreadable reports whether an artifact is missing or damaged, by the error of reading
// it.
func unreadable(err error) bool {
	return errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrInvalid)
}

// exists returns a function that returns an error if an artifact is absent or has
// another size. The function deletes an artifact of another size, because Put would
// keep it.
func (s *Server) exists(ctx context.Context) func(name string, size int64) error {
	return func(name string, size int64) error {
		info, err := s.artifacts.Stat(ctx, name)
		if err == nil && size >= 0 && info.Size != size {
			err = fmt.Errorf("%s has %d bytes, not %d: %w", name, info.Size, size, millrace.ErrInvalid)
			err = errors.Join(err, s.artifacts.Delete(ctx, name))
		}
		return err
	}
}

// served returns the manifest of the current edition. It returns nil before the first
// edition, and if an artifact may be missing.
func (s *Server) served() *manifest {
	if ed := s.current.Load(); ed != nil && !s.unconfirmed {
		return ed.manifest
	}
	return nil
}

// present reports whether the first artifact of a manifest exists. If it does not, all artifacts
// may have been removed.
func (s *Server) present(ctx context.Context, m *manifest) bool {
	enough := errors.New("enough")
	err := m.forEachNotIn(ctx, s.artifacts, nil, func(name string, _ int64) error {
		_, err := s.artifacts.Stat(ctx, name)
		return cmp.Or(err, enough)
	})
	return !unreadable(err)
}

// touch restarts the grace period of the artifacts that are in m but not in but.
func (s *Server) touch(ctx context.Context, m, but *manifest) error {
	return artifact.Batch(ctx, s.artifacts, func(ctx context.Context) error {
		return m.forEachNotIn(ctx, s.artifacts, but, func(name string, _ int64) error {
			if err := artifact.Touch(ctx, s.artifacts, name); !errors.Is(err, millrace.ErrNotFound) {
				return err
			}
			return nil
		})
	})
}

// collect deletes the artifacts that no manifest of the store names, after their grace
// period. It searches at most once an hour. retired is the manifest that was just
// superseded, or nil; the grace period of its artifacts begins now.
func (s *Server) collect(ctx context.Context, retired *manifest, now time.Time) error {
	ed := s.current.Load()
	if retired != nil {
		if err := s.touch(ctx, retired, ed.manifest); err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return err
		}
	}
	if now.Sub(s.collectedAt) < min(time.Hour, s.grace) {
		return nil
	}
	s.collectedAt = now
	return lease.Wait(ctx, s.from.Store.Leases(), artifactsLease, func(ctx context.Context, _ store.Lease) error {
		needed := make(map[string]bool)
		need := func(name string, _ int64) error { //nolint:unparam // forEachNotIn requires the signature
			needed[name] = true
			return nil
		}
		if err := ed.manifest.forEachNotIn(ctx, s.artifacts, nil, need); err != nil {
			return err
		}
		for raw, err := range s.from.Store.Manifests(ctx) {
			var m *manifest
			if err == nil {
				m, err = decodeManifest(raw)
			}
			if err == nil && m.Format == manifestFormat {
				err = m.forEachReadableNotIn(ctx, s.artifacts, ed.manifest, need)
			}
			if err != nil {
				return err
			}
		}
		if err := s.needDictionaries(ctx, now, needed); err != nil {
			return err
		}
		return artifact.Batch(ctx, s.artifacts, func(ctx context.Context) error {
			for info, err := range s.artifacts.List(ctx, "") {
				if err == nil && !needed[info.Name] && now.Sub(info.Modified) >= s.grace {
					err = s.artifacts.Delete(ctx, info.Name)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// keepArtifacts renews the artifacts of the current edition if its manifest is no
// longer in the store.
func (s *Server) keepArtifacts(ctx context.Context, now time.Time) error {
	ed := s.current.Load()
	if now.Sub(s.checkedAt) < s.grace/2 {
		return nil
	}
	s.checkedAt = now
	_, stored, err := (*s.publication.Load()).Published(ctx)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) || !ed.rebuilt && stored.Number == ed.stored {
		return err
	}
	return s.touch(ctx, ed.manifest, nil)
}
