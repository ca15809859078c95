package edition

import (
	"context"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/store"
)

// Building whole-site artifacts, compressing chunked documents with brotli, and computing digests
// of long documents would delay a publication too much. The server does this work later, for the
// current edition. It publishes new artifacts and brotli bytes with the next edition.

// done contains the results of deferred work that are not published yet.
type done struct {
	artifacts []storedArtifact
	brotli    map[string]coded // brotli bytes of documents, by their chunked.etag
}

// pausePerWork is the minimum time between the starts of two jobs, in multiples of the processor
// time that the process uses during the first one.
const pausePerWork = 10

// wake makes Run check for deferred work. wake does not block.
func (s *Server) wake() {
	select {
	case s.deferredWork <- struct{}{}:
	default:
	}
}

// runDeferred does deferred work until the context ends. On average, it uses at most a tenth of a
// processor.
func (s *Server) runDeferred(ctx context.Context) {
	for {
		moved := s.NextEdition()
		jobs := []func(context.Context) error{s.deferDigests}
		if s.Builder() {
			jobs = append(jobs, func(ctx context.Context) error { return s.deferArtifacts(ctx, s.asBuilder) }, s.deferBrotli)
		}
		for _, job := range jobs {
			var err error
			if s.alone != nil {
				s.alone.Lock()
			}
			start := time.Now()
			spent := processorTime(func() { err = job(ctx) })
			if s.alone != nil {
				s.alone.Unlock()
			}
			took := time.Since(start)
			pause := pausePerWork*min(spent, took) - took
			if err != nil && ctx.Err() == nil && millrace.ErrorCode(err) != "lease-held" {
				s.log.WarnContext(ctx, "deferred work failed; trying again", "err", err)
				pause = max(pause, retryEvery)
				s.wake()
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-s.deferredWork:
		}
	}
}

// add stores results of deferred work for the next edition, and makes Run publish them. brotli
// contains the bytes of the document whose chunked.etag is name, or is nil.
func (s *Server) add(artifacts []storedArtifact, name string, brotli *coded) {
	s.deferring.Lock()
	defer s.deferring.Unlock()
	s.done.artifacts = append(s.done.artifacts, artifacts...)
	if brotli != nil {
		s.done.brotli = maps.Clone(s.done.brotli)
		if s.done.brotli == nil {
			s.done.brotli = make(map[string]coded)
		}
		s.done.brotli[name] = *brotli
	}
	s.Changed()
}

// made returns the results of deferred work that are not published yet.
func (s *Server) made() done {
	s.deferring.Lock()
	defer s.deferring.Unlock()
	return s.done
}

// published removes the results in d, which the current edition contains.
func (s *Server) published(d done) {
	s.deferring.Lock()
	defer s.deferring.Unlock()
	s.done.artifacts = s.done.artifacts[len(d.artifacts):]
	s.done.brotli = maps.Clone(s.done.brotli)
	for name := range d.brotli {
		delete(s.done.brotli, name)
	}
}

func (d *done) empty() bool { return len(d.artifacts)+len(d.brotli) == 0 }

// deferArtifacts builds the deferred artifacts of the current edition, unless another process with
// the same artifact store builds them.
func (s *Server) deferArtifacts(ctx context.Context, by leaseFunc) error {
	ed := s.current.Load()
	if ed == nil {
		return nil
	}
	if ed.rebuilt { // only this process has the artifacts of this edition
		by = func(ctx context.Context, _ store.Leases, _ string, f func(ctx context.Context, l store.Lease) error) error {
			return f(ctx, store.Lease{})
		}
	}
	return by(ctx, s.from.Store.Leases(), (*s.publication.Load()).Name()+" deferred", func(ctx context.Context, _ store.Lease) error {
		for _, proto := range s.protocols {
			publisher, ok := proto.Publisher.(millrace.ArtifactPublisher)
			if !ok {
				continue
			}
			made := s.made() // must be called before current is loaded: that edition contains all other results
			ed = s.current.Load()
			set := &artifactSet{server: s, proto: proto.Name, stored: s.storedArtifacts(ctx, ed.manifest, nil, made, proto.Name), view: ed.View, prev: ed.manifest, m: new(manifest)}
			err := artifact.Batch(ctx, s.artifacts, func(ctx context.Context) error {
				return publisher.Deferred(ctx, ed.View, s.time(ed.View), set)
			})
			if err != nil {
				return err
			}
			if len(set.made) > 0 {
				s.add(set.made, "", nil)
			}
		}
		return nil
	})
}

// deferBrotli encodes the documents of the current edition that clients requested in
// brotli.
func (s *Server) deferBrotli(ctx context.Context) error {
	for e, b := range s.chunked() {
		if b.coded || !b.brotli.Load() || e.offer.has(brotliCoding) {
			continue
		}
		c, err := s.code(ctx, brotliCoding, true, func(w io.Writer) error { return b.write(ctx, w, 0, b.length()) })
		if err != nil {
			return err
		}
		s.add(nil, b.name, &c)
	}
	return nil
}

// deferDigests computes the missing digests of documents that clients requested.
func (s *Server) deferDigests(ctx context.Context) error {
	var errs []error
	for _, b := range s.chunked() {
		if b.digestWanted.Load() && b.known() == "" {
			_, err := b.read(ctx)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// chunked yields the chunked documents of the current edition with the bytes of each of
// their codings.
func (s *Server) chunked() func(yield func(*entry, *bodies) bool) {
	return func(yield func(*entry, *bodies) bool) {
		ed := s.current.Load()
		if ed == nil {
			return
		}
		for _, entries := range []map[key]*entry{ed.large, ed.keyed} {
			for _, e := range entries {
				for c := range codings {
					if r := e.reps[c].Load(); r != nil {
						if b, ok := r.content.(*bodies); ok && !yield(e, b) {
							return
						}
					}
				}
			}
		}
	}
}

// want schedules the brotli encoding of a large document if Accept-Encoding prefers brotli.
func (e *entry) want(accept []string) {
	if !e.large || e.offer.has(brotliCoding) || !e.offer.has(gzipCoding) {
		return
	}
	b, ok := e.reps[identity].Load().content.(*bodies)
	if ok && !b.brotli.Load() && negotiate(accept, e.offer|1<<brotliCoding) == brotliCoding && !b.brotli.Swap(true) {
		b.wake()
	}
}
