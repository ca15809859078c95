package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

const (
	maxSmall   = 1 << 20     // artifacts of more bytes are stored in files of their own
	batchBytes = 8 << 20     // a batch writes its changes when its small artifacts have more bytes
	batchNames = 4096        // a batch writes its changes when it has more of them
	freshFor   = time.Second // Open and Stat do not read a log again that was read within this time
)

// batch contains the unwritten changes of a Batch.
type batch struct {
	store *Store

	mu      sync.Mutex
	changes []change
	data    []byte
	names   map[string]pending
}

// pending is an artifact that a batch has changed.
type pending struct {
	position
	content []byte // content of a small artifact that the batch has put
	deleted bool
	touched bool
}

type batchKey struct{ *Store }

func (s *Store) batchOf(ctx context.Context) *batch {
	b, _ := ctx.Value(batchKey{s}).(*batch)
	return b
}

// Batch implements [artifact.Batcher]. It reads the log first. It writes the changes in parts of
// about batchBytes bytes or batchNames changes.
func (s *Store) Batch(ctx context.Context, f func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.batchOf(ctx) != nil {
		return f(ctx)
	}
	if err := s.refresh(ctx, 0); err != nil {
		return err
	}
	b := &batch{store: s, names: make(map[string]pending)}
	if err := f(context.WithValue(ctx, batchKey{s}, b)); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush(ctx)
}

// flush writes the changes. The caller holds b.mu.
func (b *batch) flush(ctx context.Context) error {
	if len(b.changes) == 0 {
		return nil
	}
	if err := b.store.lock(ctx); err != nil {
		return err
	}
	defer b.store.unlock()
	if err := b.store.commit(ctx, b.changes, b.data); err != nil {
		return err
	}
	for _, c := range b.changes {
		b.store.deleted = b.store.deleted || c.Op == opDelete
	}
	b.changes, b.data, b.names = nil, nil, make(map[string]pending)
	b.store.tidy(ctx)
	return nil
}

// find returns a pending artifact, or otherwise an artifact of the store.
func (b *batch) find(name string) (p pending, ok bool) {
	if p, ok = b.names[name]; !ok {
		p.position, ok = b.store.lookup(name)
	}
	return p, ok && !p.deleted
}

// add adds a change.
func (b *batch) add(ctx context.Context, c change, p pending) error {
	b.changes, b.names[c.Name] = append(b.changes, c), p
	if len(b.data) > batchBytes || len(b.changes) > batchNames {
		return b.flush(ctx)
	}
	return nil
}

// lookup returns the position of an artifact.
func (s *Store) lookup(name string) (position, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, ok := s.state.Names[name]
	return p, ok
}

// find returns an artifact. It includes the pending changes of the context's batch.
func (s *Store) find(ctx context.Context, name string) (p pending, ok bool) {
	if b := s.batchOf(ctx); b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.find(name)
	}
	p.position, ok = s.lookup(name)
	return p, ok
}

// Put implements [artifact.Store].
func (s *Store) Put(ctx context.Context, name string, r io.Reader) error {
	if err := cmp.Or(artifact.CheckName(name), ctx.Err()); err != nil {
		return err
	}
	b := s.batchOf(ctx)
	if b == nil {
		return s.Batch(ctx, func(ctx context.Context) error { return s.Put(ctx, name, r) })
	}
	b.mu.Lock()
	if p, ok := b.find(name); ok {
		defer b.mu.Unlock()
		return b.touch(ctx, name, p)
	}
	b.mu.Unlock()
	what := "put artifact " + name
	in := &reader{ctx, r}
	content, err := io.ReadAll(io.LimitReader(in, maxSmall+1))
	at := position{Size: int64(len(content))}
	if err == nil && at.Size > maxSmall {
		at, err = s.upload(ctx, io.MultiReader(bytes.NewReader(content), in))
		content = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.find(name); ok { // another goroutine has put the artifact in the same batch
		return b.touch(ctx, name, p)
	}
	if at.Object == "" {
		at.Offset = int64(len(b.data))
	}
	b.data = append(b.data, content...)
	p := pending{position: at, content: content, touched: true}
	p.Modified = time.Now().UnixMilli()
	return b.add(ctx, change{Op: opPut, Name: name, At: &at}, p)
}

// touch renews the time of an artifact, at most once per batch. The caller holds b.mu.
func (b *batch) touch(ctx context.Context, name string, p pending) error {
	if p.touched {
		return nil
	}
	p.touched, p.Modified = true, time.Now().UnixMilli()
	return b.add(ctx, change{Op: opTouch, Name: name}, p)
}

// reader is a reader that fails when its context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// upload writes a large artifact to the bucket and the cache.
func (s *Store) upload(ctx context.Context, r io.Reader) (at position, err error) {
	at.Object = filePrefix + strings.ToLower(rand.Text())
	err = s.cache.add(at.Object, func(f *os.File) error {
		if at.Size, err = io.Copy(f, r); err != nil {
			return err
		}
		return s.bucket.create(ctx, at.Object, io.NewSectionReader(f, 0, at.Size))
	})
	return at, err
}

// Open implements [artifact.Store].
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := cmp.Or(artifact.CheckName(name), artifact.CheckRange(offset, length), ctx.Err()); err != nil {
		return nil, err
	}
	p, ok := s.find(ctx, name)
	var err error
	if !ok && s.batchOf(ctx) == nil {
		err = s.refresh(ctx, freshFor)
		p, ok = s.find(ctx, name)
	}
	for ok && err == nil {
		from, to := min(offset, p.Size), p.Size
		if length >= 0 && length < to-from {
			to = from + length
		}
		var r io.ReadCloser
		if r, err = s.open(ctx, p, from, to); !errors.Is(err, millrace.ErrNotFound) {
			return r, err
		}
		was := p.Object // another process has moved or deleted the object, or the object is lost
		if err = s.refresh(ctx, 0); err == nil {
			if p.position, ok = s.lookup(name); ok && p.Object == was {
				s.log.WarnContext(ctx, "an object is missing from the bucket", "object", was)
				ok, err = false, s.Delete(ctx, name)
			}
		}
	}
	if err == nil {
		err = millrace.ErrNotFound
	}
	return nil, fmt.Errorf("open artifact %s: %w", name, err)
}

// open returns a reader for the bytes from..to of an artifact. If the object does not exist, open
// returns ErrNotFound.
func (s *Store) open(ctx context.Context, p pending, from, to int64) (io.ReadCloser, error) {
	switch {
	case from == to:
		return http.NoBody, nil
	case p.content != nil:
		return io.NopCloser(bytes.NewReader(p.content[from:to])), nil
	}
	for fetched := false; ; fetched = true {
		if f, err := s.cache.open(p.Object); err == nil {
			return &part{io.NewSectionReader(f, p.Offset+from, to-from), f}, nil
		}
		if fetched || p.Size > s.cache.limit/16 {
			return s.bucket.stream(ctx, p.Object, p.Offset+from, to-from)
		}
		s.fetch(ctx, p.Object)
	}
}

// part is a range of a file.
type part struct {
	io.Reader
	io.Closer
}

// fetch tries to download an object into the cache. Concurrent calls for the same object share one
// download.
func (s *Store) fetch(ctx context.Context, object string) {
	loaded := s.loads.DoChan(object, func() (any, error) {
		err := s.cache.add(object, func(f *os.File) error { return s.bucket.get(s.ctx, object, 0, -1, f) })
		if err != nil && !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrUnavailable) {
			s.log.Warn("could not cache an artifact", "err", err)
		}
		return nil, err
	})
	select {
	case <-loaded:
	case <-ctx.Done():
	}
}

// keep tries to add an object to the cache.
func (s *Store) keep(object string, b []byte) {
	err := s.cache.add(object, func(f *os.File) error { _, err := f.Write(b); return err })
	if err != nil {
		s.log.Warn("could not cache an artifact", "err", err)
	}
}

// Stat implements [artifact.Store].
func (s *Store) Stat(ctx context.Context, name string) (artifact.Info, error) {
	if err := cmp.Or(artifact.CheckName(name), ctx.Err()); err != nil {
		return artifact.Info{}, err
	}
	p, ok := s.find(ctx, name)
	var err error
	if s.batchOf(ctx) == nil {
		maxAge := time.Duration(0)
		if ok {
			maxAge = freshFor
		}
		if err = s.refresh(ctx, maxAge); err == nil {
			p, ok = s.find(ctx, name)
		} else if ok && millrace.ErrorCode(err) == "bucket-down" {
			err = nil
		}
	}
	if err == nil && !ok {
		err = millrace.ErrNotFound
	}
	if err != nil {
		return artifact.Info{}, fmt.Errorf("stat artifact %s: %w", name, err)
	}
	return p.info(name), nil
}

// List implements [artifact.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[artifact.Info, error] {
	return func(yield func(artifact.Info, error) bool) {
		b := s.batchOf(ctx)
		var err error
		if b == nil {
			err = s.refresh(ctx, 0)
		}
		if err := cmp.Or(ctx.Err(), err); err != nil {
			yield(artifact.Info{}, fmt.Errorf("list artifacts: %w", err))
			return
		}
		s.mu.RLock()
		all := maps.Clone(s.state.Names)
		s.mu.RUnlock()
		if b != nil {
			b.mu.Lock()
			for name, p := range b.names {
				if all[name] = p.position; p.deleted {
					delete(all, name)
				}
			}
			b.mu.Unlock()
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			if err := ctx.Err(); err != nil {
				yield(artifact.Info{}, err)
				return
			}
			p := all[name]
			if !yield(p.info(name), nil) {
				return
			}
		}
	}
}

// Delete implements [artifact.Store].
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := cmp.Or(artifact.CheckName(name), ctx.Err()); err != nil {
		return err
	}
	b := s.batchOf(ctx)
	if b == nil {
		return s.Batch(ctx, func(ctx context.Context) error { return s.Delete(ctx, name) })
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.find(name); !ok {
		return nil
	}
	return b.add(ctx, change{Op: opDelete, Name: name}, pending{deleted: true})
}
