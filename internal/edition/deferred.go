package edition

import (
	"context"
	"errors"
	"io"
	"maps"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
)

// Deferred work is what no publication waits for: files of the whole site, brotli of
// chunked documents and long digests. It is done for the current edition, and what
// it makes is published with the next one.

// done is deferred work that is not published yet.
type done struct {
	files  []storedArtifact
	brotli map[string]coded // by the validators of documents
}

// restPerWork is how many times its processor time passes after a job before the
// next.
const restPerWork = 10

// wake makes Run look for deferred work. It never waits.
func (p *Server) wake() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// runDeferred does deferred work, with at most a tenth of a processor over time,
// until the context ends.
func (p *Server) runDeferred(ctx context.Context) {
	for {
		moved := p.Moved()
		for _, job := range []func(context.Context) error{
			func(ctx context.Context) error { return p.deferFiles(ctx, lease.Hold) }, p.deferBrotli, p.deferDigests,
		} {
			var err error
			if p.alone != nil {
				p.alone.Lock()
			}
			start := time.Now()
			spent := processorTime(func() { err = job(ctx) })
			if p.alone != nil {
				p.alone.Unlock()
			}
			rest := restPerWork*spent - time.Since(start)
			if err != nil && ctx.Err() == nil && millrace.ErrorCode(err) != "lease-held" {
				p.log.WarnContext(ctx, "deferred work failed; trying again", "err", err)
				rest = max(rest, retryEvery)
				p.wake()
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(rest):
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-p.asked:
		}
	}
}

// add gives what was made to the next edition.
func (p *Server) add(files []storedArtifact, tag string, brotli *coded) {
	p.deferring.Lock()
	defer p.deferring.Unlock()
	p.done.files = append(p.done.files, files...)
	if brotli != nil {
		p.done.brotli = maps.Clone(p.done.brotli)
		if p.done.brotli == nil {
			p.done.brotli = make(map[string]coded)
		}
		p.done.brotli[tag] = *brotli
	}
	p.Changed()
}

// made returns the deferred work that is not published yet.
func (p *Server) made() done {
	p.deferring.Lock()
	defer p.deferring.Unlock()
	return p.done
}

// published removes deferred work that the current edition has.
func (p *Server) published(d done) {
	p.deferring.Lock()
	defer p.deferring.Unlock()
	p.done.files = p.done.files[len(d.files):]
	p.done.brotli = maps.Clone(p.done.brotli)
	for tag := range d.brotli {
		delete(p.done.brotli, tag)
	}
}

func (d *done) empty() bool { return len(d.files)+len(d.brotli) == 0 }

// deferFiles makes the deferred files of the current edition, unless another
// process makes them for the same artifacts.
func (p *Server) deferFiles(ctx context.Context, by holder) error {
	ed := p.current.Load()
	if ed == nil {
		return nil
	}
	if ed.mended { // the files are of this process alone
		by = func(ctx context.Context, _ store.Leases, _ string, f func(ctx context.Context, l store.Lease) error) error {
			return f(ctx, store.Lease{})
		}
	}
	return by(ctx, p.from.Store.Leases(), (*p.publication.Load()).Name()+" deferred", func(ctx context.Context, _ store.Lease) error {
		for _, proto := range p.protocols {
			filer, ok := proto.Publisher.(millrace.ArtifactPublisher)
			if !ok {
				continue
			}
			made := p.made() // what is not in this is in the current edition
			ed = p.current.Load()
			s := &artifactSet{server: p, proto: proto.Name, held: p.held(ctx, ed.manifest, nil, made, proto.Name), view: ed.View, prev: ed.manifest, m: new(manifest)}
			if err := filer.Deferred(ctx, ed.View, p.time(ed.View), s); err != nil {
				return err
			}
			if len(s.made) > 0 {
				p.add(s.made, "", nil)
			}
		}
		return nil
	})
}

// deferBrotli codes the documents of the current edition that were asked for in
// brotli.
func (p *Server) deferBrotli(ctx context.Context) error {
	for e, b := range p.chunked() {
		if b.coded || !b.brotli.Load() || e.offer.has(brotliCoding) {
			continue
		}
		c, err := p.code(ctx, brotliCoding, true, func(w io.Writer) error { return b.write(ctx, w, 0, b.length()) })
		if err != nil {
			return err
		}
		p.add(nil, e.tag, &c)
	}
	return nil
}

// deferDigests computes the digests of the current edition that were asked for.
func (p *Server) deferDigests(ctx context.Context) error {
	var errs []error
	for _, b := range p.chunked() {
		if b.wanted.Load() && b.known() == "" {
			_, err := b.read(ctx)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// chunked yields the entries of the chunked documents of the current edition, with
// the bytes of each of their codings.
func (p *Server) chunked() func(yield func(*entry, *bodies) bool) {
	return func(yield func(*entry, *bodies) bool) {
		ed := p.current.Load()
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

// want notes that a request would take brotli if the document was offered in it.
func (e *entry) want(accept []string) {
	if !e.large || e.offer.has(brotliCoding) || !e.offer.has(gzipCoding) {
		return
	}
	b, ok := e.reps[identity].Load().content.(*bodies)
	if ok && !b.brotli.Load() && negotiate(accept, e.offer|1<<brotliCoding) == brotliCoding && !b.brotli.Swap(true) {
		b.ask()
	}
}
