package edition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// build builds the manifest of a view. It reuses the documents of prev that are still valid, and
// the results of deferred work. If prev is nil or foreign, it builds all documents. A document that
// differs from the one in prev, even if prev is foreign, gets a later modification time.
func (s *Server) build(ctx context.Context, view millrace.View, prev *manifest, made done) (m *manifest, err error) {
	err = artifact.Batch(ctx, s.artifacts, func(ctx context.Context) error {
		m, err = s.buildNow(ctx, view, prev, made)
		return err
	})
	return m, err
}

func (s *Server) buildNow(ctx context.Context, view millrace.View, prev *manifest, made done) (*manifest, error) {
	m := &manifest{Format: manifestFormat, Key: s.key, Version: s.version, Seq: view.Site().Seq, Title: view.Site().Title}
	all, err := s.largeDocuments(ctx, view)
	if err != nil {
		return nil, err
	}
	var docs []protocolDocument
	for _, d := range all {
		if !slices.ContainsFunc(docs, d.alias) {
			docs = append(docs, d)
		}
	}
	since, err := m.readChanges(ctx, view, prev, docs)
	if err != nil {
		return nil, err
	}
	m.Documents = make([]large, len(docs))
	building, untilError := errgroup.WithContext(ctx)
	building.SetLimit(max(2, runtime.GOMAXPROCS(0))) // some goroutines wait for the disk
	for i, d := range docs {
		building.Go(func() (err error) {
			m.Documents[i], err = s.chunk(untilError, d, prev, since[i], view, made)
			return err
		})
	}
	if err := building.Wait(); err != nil {
		return nil, err
	}
	m.addAliases(all, docs)
	return m, s.makeArtifacts(ctx, view, prev, m, made)
}

// later returns t, or the next whole second after other if t is not in a later second.
func later(t, other time.Time) time.Time {
	if t.Unix() > other.Unix() {
		return t
	}
	return other.Truncate(time.Second).Add(time.Second)
}

// protocolDocument is a large document with the name of its protocol.
type protocolDocument struct {
	*millrace.Document
	proto string
}

// alias reports whether d and o are one document under two paths.
func (d protocolDocument) alias(o protocolDocument) bool {
	return d.proto == o.proto && d.Parts == o.Parts
}

// largeDocuments returns the large documents of all protocols. Protocols yield these first, so
// largeDocuments stops at the first other document.
func (s *Server) largeDocuments(ctx context.Context, view millrace.View) ([]protocolDocument, error) {
	var out []protocolDocument
	seen := make(map[string]string)
	for _, proto := range s.protocols {
		for d, err := range proto.Publisher.All(ctx, view) {
			if err != nil {
				return nil, fmt.Errorf("large documents of %s: %w", proto.Name, err)
			}
			if !d.Large {
				break
			}
			if other, taken := seen[d.Path]; taken {
				return nil, fmt.Errorf("large document %s: both %s and %s publish it", d.Path, other, proto.Name)
			}
			seen[d.Path] = proto.Name
			out = append(out, protocolDocument{d, proto.Name})
		}
	}
	return out, nil
}

// chunk builds a document from its chunks in prev and the changes in since. If it cannot use those
// chunks, it builds all of them.
func (s *Server) chunk(ctx context.Context, d protocolDocument, prev *manifest, since changes, view millrace.View, made done) (large, error) {
	next := large{Protocol: d.proto, Path: d.Path, SharedETag: d.SharedETag, DigestETag: d.DigestETag, Public: d.Public, PageCount: d.PageCount, Header: d.Header}
	old := prev.document(d.Path)
	if old != nil && old.Protocol != d.proto {
		old = nil
	}
	reuse := old != nil && !prev.foreign && prev.Version == s.version && prev.Title == view.Site().Title && !since.unreachable && old.forEachNotIn(ctx, s.artifacts, s.served().document(d.Path), s.exists(ctx)) == nil
	g := newGrower(ctx, s.artifacts, &s.enc)
	one := func(parts *millrace.Parts, next, old *large, etag string, changed []string) error {
		var earlier *chunked
		if reuse && old != nil {
			earlier = &old.Chunks
		}
		chunks, err := g.cut(parts, earlier, changed)
		if earlier != nil && unreadable(err) { // an artifact is missing, and no request has detected that yet
			g = newGrower(ctx, s.artifacts, &s.enc)
			chunks, err = g.cut(parts, nil, nil)
		}
		if err != nil {
			return fmt.Errorf("build %s: %w", d.Path, err)
		}
		next.Chunks, next.ETag, next.Modified = *chunks, etag, view.Site().Time
		switch {
		case etag != "":
		case !d.DigestETag:
			next.ETag = chunks.etag()
		case reuse && old != nil && old.DigestETag && old.Chunks.etag() == chunks.etag():
			next.ETag = old.ETag
		default:
			if next.ETag, err = chunks.sum(ctx, s); err != nil {
				return fmt.Errorf("build %s: %w", d.Path, err)
			}
		}
		name := chunks.etag() // not the protocol's ETag, which may stay the same although bytes have changed
		if c, ok := made.brotli[name]; ok && s.exists(ctx)(c.name(), c.Size) == nil {
			next.Brotli = &c
		}
		switch {
		case old == nil:
		case old.Chunks.etag() == name:
			next.Modified = old.Modified
			if reuse && next.Brotli == nil {
				next.Brotli = old.Brotli
			}
		default: // Last-Modified has whole seconds, and some clients compare only this field
			next.Modified = later(next.Modified, old.Modified)
		}
		return nil
	}
	if err := one(d.Parts, &next, old, d.ETag, since.parts); err != nil || d.PartsKeyed == nil {
		return next, err
	}
	keyed := next
	keyed.Brotli = nil
	var last *large
	if old != nil {
		last = old.Keyed
	}
	err := one(d.PartsKeyed, &keyed, last, "", since.partsKeyed)
	next.Keyed = &keyed
	return next, err
}

// changes contains the changes of a document since an edition.
type changes struct {
	parts       []string // keys of the parts that may have changed
	partsKeyed  []string // keys of the parts of PartsKeyed that may have changed
	unreachable bool     // the log starts after that edition, so every part may have changed
}

// maxKeys is the maximum number of keys in changes.parts. If there are more, all parts of the
// document are written again.
const maxKeys = 100_000

// readChanges reads the log since prev. It returns the changes for every document, and sets
// m.Cursor.
func (m *manifest) readChanges(ctx context.Context, view millrace.View, prev *manifest, docs []protocolDocument) ([]changes, error) {
	out := make([]changes, len(docs))
	var since millrace.Cursor
	if prev != nil {
		since = prev.Cursor
	}
	for change, err := range view.Changes(ctx, since) {
		switch {
		case errors.Is(err, millrace.ErrConflict) && since != "":
			if _, err := m.readChanges(ctx, view, nil, nil); err != nil {
				return nil, err
			}
			for i := range out {
				out[i] = changes{unreachable: true}
			}
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read the log: %w", err)
		}
		if change.Kind == millrace.KindCheckpoint {
			m.Cursor = change.Checkpoint.Cursor
			continue
		}
		if since == "" {
			continue // without an earlier edition, Changes yields all pages of the site
		}
		for i, d := range docs {
			out[i].add(d.Document, change.URL)
		}
	}
	return out, nil
}

// add adds the change of a page to the changes of a document.
func (c *changes) add(d *millrace.Document, url string) {
	if c.unreachable {
		return
	}
	c.parts = append(c.parts, d.Parts.Changed(url)...)
	if d.PartsKeyed != nil {
		c.partsKeyed = append(c.partsKeyed, d.PartsKeyed.Changed(url)...)
	}
	if len(c.parts) > maxKeys {
		*c = changes{unreachable: true}
	}
}

// addAliases adds the aliases of the built documents. The built documents come first in the
// manifest, in the same order.
func (m *manifest) addAliases(all, built []protocolDocument) {
	for _, d := range all {
		i := slices.IndexFunc(built, d.alias)
		if built[i].Path == d.Path {
			continue
		}
		same := m.Documents[i]
		same.Path = d.Path
		if same.Keyed != nil {
			keyed := *same.Keyed
			keyed.Path, same.Keyed = d.Path, &keyed
		}
		m.Documents = append(m.Documents, same)
	}
}

// paths returns the sorted paths of the large documents.
func (m *manifest) paths() []string {
	set := make(map[string]bool)
	for _, d := range m.Documents {
		set[d.Path] = true
	}
	return slices.Sorted(maps.Keys(set))
}
