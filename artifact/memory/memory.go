// Package memory implements [artifact.Store] in the memory of the process, for tests and for
// programs without persistent data.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// Options are the options of [New].
type Options struct {
	// MaxBytes is the maximum total size of all artifacts, in bytes. It also limits the input of
	// one Put. If it is zero, the limit is 256 MiB.
	MaxBytes int64
}

// New returns an empty store. Nil options mean the defaults.
func New(o *Options) *Store {
	if o == nil {
		o = new(Options)
	}
	return &Store{max: min(cmp.Or(o.MaxBytes, 256<<20), math.MaxInt64-1), entries: map[string]entry{}}
}

// Store is an [artifact.Store].
type Store struct {
	max int64

	mu      sync.Mutex
	used    int64 // total size of the entries in bytes
	entries map[string]entry
}

var _ artifact.Store = (*Store)(nil)

type entry struct {
	data     []byte // immutable
	modified time.Time
}

// lookup returns the entry of a name, or ErrNotFound.
func (s *Store) lookup(ctx context.Context, name string) (entry, error) {
	if err := cmp.Or(artifact.CheckName(name), ctx.Err()); err != nil {
		return entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[name]
	if !ok {
		return entry{}, fmt.Errorf("artifact %s: %w", name, millrace.ErrNotFound)
	}
	return e, nil
}

// touch renews the modification time of an entry, and reports whether the entry exists.
func (s *Store) touch(name string) bool {
	e, ok := s.entries[name]
	if ok {
		s.entries[name] = entry{e.data, time.Now().UTC()}
	}
	return ok
}

// Put implements [artifact.Store]. If the store would exceed [Options.MaxBytes], Put returns
// ErrTooLarge with the code memory-full.
func (s *Store) Put(ctx context.Context, name string, r io.Reader) error {
	if err := cmp.Or(artifact.CheckName(name), ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	exists := s.touch(name)
	s.mu.Unlock()
	if exists {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(&input{ctx, r}, s.max+1))
	if err != nil {
		return fmt.Errorf("put artifact %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.touch(name) {
		return nil
	}
	if int64(len(data)) > s.max-s.used {
		return millrace.Coded("memory-full", fmt.Errorf("put artifact %s: %w: all artifacts together exceed %d bytes", name, millrace.ErrTooLarge, s.max))
	}
	s.used += int64(len(data))
	s.entries[name] = entry{bytes.Clone(data), time.Now().UTC()} // without spare capacity
	return nil
}

// input is a reader that fails when its context ends.
type input struct {
	ctx context.Context
	r   io.Reader
}

func (in *input) Read(p []byte) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, err
	}
	return in.r.Read(p)
}

// Open implements [artifact.Store]. The reader continues after a Delete.
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	e, err := s.lookup(ctx, name)
	if err := cmp.Or(artifact.CheckRange(offset, length), err); err != nil {
		return nil, err
	}
	if length < 0 {
		length = math.MaxInt64
	}
	return io.NopCloser(io.NewSectionReader(bytes.NewReader(e.data), offset, length)), nil
}

// Stat implements [artifact.Store].
func (s *Store) Stat(ctx context.Context, name string) (artifact.Info, error) {
	e, err := s.lookup(ctx, name)
	if err != nil {
		return artifact.Info{}, err
	}
	return artifact.Info{Name: name, Size: int64(len(e.data)), Modified: e.modified}, nil
}

// List implements [artifact.Store].
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[artifact.Info, error] {
	return func(yield func(artifact.Info, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(artifact.Info{}, err)
			return
		}
		s.mu.Lock()
		names := slices.Sorted(maps.Keys(s.entries))
		s.mu.Unlock()
		for _, name := range names {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			info, err := s.Stat(ctx, name)
			if errors.Is(err, millrace.ErrNotFound) {
				continue
			}
			if !yield(info, err) || err != nil {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= int64(len(s.entries[name].data))
	delete(s.entries, name)
	return nil
}
