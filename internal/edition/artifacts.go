package edition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
)

const (
	// grace is the time for which the artifacts of a superseded edition are kept after the last
	// response that uses them has ended.
	grace = time.Minute
	// unknownFor is the time for which other unneeded artifacts are kept, in multiples of the grace
	// period. They may belong to an edition that is still being built.
	unknownFor = 120
	// renewals is how many times per grace period a process renews the superseded artifacts that it
	// still needs.
	renewals = 5
)

// superseded records when this process stopped needing an artifact, and the artifact's modification
// time then. Another process that still needs the artifact renews its modification time. Comparing
// modification times does not depend on clocks.
type superseded struct {
	since    time.Time
	modified time.Time
}

// forEachNotIn calls f for every artifact of the manifest that is not in other. size is the stored
// size in bytes, or -1 for nodes, whose size the manifest does not contain.
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

// unreadable reports whether err, the error of reading an artifact, means that the artifact is
// missing or damaged.
func unreadable(err error) bool {
	return errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrInvalid)
}

// exists returns a function that checks an artifact. The function returns an error if the artifact
// is absent or has another size; a negative size is not checked. It deletes an artifact of another
// size, because Put would not replace that artifact.
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

// present returns false if the first artifact of a manifest is missing or damaged. In that case,
// all artifacts may have been removed.
func (s *Server) present(ctx context.Context, m *manifest) bool {
	enough := errors.New("enough")
	err := m.forEachNotIn(ctx, s.artifacts, nil, func(name string, _ int64) error {
		_, err := s.artifacts.Stat(ctx, name)
		return cmp.Or(err, enough)
	})
	return !unreadable(err)
}

// touch renews the modification times of the artifacts of m, except those of but. It skips missing
// artifacts, and calls f, if not nil, with each of the others.
func (s *Server) touch(ctx context.Context, m, but *manifest, f func(name string) error) error {
	return artifact.Batch(ctx, s.artifacts, func(ctx context.Context) error {
		return m.forEachReadableNotIn(ctx, s.artifacts, but, func(name string, _ int64) error {
			err := artifact.Touch(ctx, s.artifacts, name)
			if err == nil && f != nil {
				err = f(name)
			}
			if errors.Is(err, millrace.ErrNotFound) {
				return nil
			}
			return err
		})
	})
}

// collect deletes artifacts that are not needed: superseded ones after the grace period, and others
// after unknownFor. replaced is the manifest that was just superseded, or nil. The grace period of
// its artifacts begins now, unless replaced is foreign: other processes may still serve that
// configuration.
func (s *Server) collect(ctx context.Context, replaced *manifest, now time.Time) error {
	ed := s.current.Load()
	if replaced != nil && !replaced.foreign {
		err := s.touch(ctx, replaced, ed.manifest, func(name string) error {
			info, err := s.artifacts.Stat(ctx, name)
			s.superseded[name] = superseded{now, info.Modified}
			return err
		})
		if err != nil {
			return err
		}
	}
	all := now.Sub(s.listedAt) >= unknownFor/2*s.grace
	if !all && (len(s.superseded) == 0 || now.Sub(s.collectedAt) < s.grace) {
		return nil
	}
	s.collectedAt = now
	if all {
		s.listedAt = now
	}
	return lease.Wait(ctx, s.from.Store.Leases(), artifactsLease, func(ctx context.Context, _ store.Lease) error {
		needed, err := s.needed(ctx, ed, now)
		if err != nil {
			return err
		}
		return artifact.Batch(ctx, s.artifacts, func(ctx context.Context) error {
			for name, was := range s.superseded {
				if now.Sub(was.since) < s.grace {
					continue
				}
				info, err := s.artifacts.Stat(ctx, name)
				switch {
				case errors.Is(err, millrace.ErrNotFound):
					delete(s.superseded, name)
				case err == nil && (needed[name] || !info.Modified.Equal(was.modified)):
					s.superseded[name] = superseded{now, info.Modified}
				case err == nil:
					delete(s.superseded, name)
					err = s.artifacts.Delete(ctx, name)
				}
				if err != nil && !errors.Is(err, millrace.ErrNotFound) {
					return err
				}
			}
			if !all {
				return nil
			}
			for info, err := range s.artifacts.List(ctx, "") {
				age := unknownFor * s.grace
				if strings.HasPrefix(info.Name, dczPrefix) {
					age = s.grace // no edition that is being built needs it
				}
				if err == nil && !needed[info.Name] && now.Sub(info.Modified) >= age {
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

// needed returns the names of the artifacts of all manifests of the store, of ed, and of the
// dictionaries to keep.
func (s *Server) needed(ctx context.Context, ed *Edition, now time.Time) (map[string]bool, error) {
	needed := make(map[string]bool)
	need := func(name string, _ int64) error { //nolint:unparam // forEachNotIn requires the signature
		needed[name] = true
		return nil
	}
	if err := ed.manifest.forEachNotIn(ctx, s.artifacts, nil, need); err != nil {
		return nil, err
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
			return nil, err
		}
	}
	return needed, s.needDictionaries(ctx, now, needed)
}

// keepArtifacts renews the artifacts of the current edition if its manifest is not in the store. It
// does nothing if the last check was less than half of unknownFor ago.
func (s *Server) keepArtifacts(ctx context.Context, now time.Time) error {
	ed := s.current.Load()
	if now.Sub(s.checkedAt) < unknownFor/2*s.grace {
		return nil
	}
	s.checkedAt = now
	_, stored, err := (*s.publication.Load()).Published(ctx)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) || !ed.rebuilt && stored.Number == ed.stored {
		return err
	}
	return s.touch(ctx, ed.manifest, nil, nil)
}

// renewSuperseded renews the artifacts of superseded editions that responses in progress still
// need, until the context ends. If a process that is not the builder cannot read the store, it also
// renews the artifacts of the current edition, because the builder may have superseded that
// edition.
func (s *Server) renewSuperseded(ctx context.Context) {
	ticker := time.NewTicker(max(s.grace/renewals, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		ed := s.current.Load()
		if ed == nil {
			continue
		}
		still, but := new(manifest), ed.manifest
		if !s.Builder() && s.SinceChecked() >= s.grace/renewals {
			still.Documents, still.Artifacts, but = slices.Clone(ed.manifest.Documents), ed.manifest.Artifacts, nil
		}
		for _, b := range s.reading.Range {
			still.Documents = append(still.Documents, large{Path: b.(*bodies).path, Chunks: *b.(*bodies).chunked})
		}
		if err := s.touch(ctx, still, but, nil); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "could not renew artifacts", "err", err)
		}
	}
}
