// Package memory is the engine of package store that keeps everything in
// memory: the reference for other engines, and the store of most tests. It is
// made to be read, not for large sites: a scan costs as much as the site has
// pages.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// Store is a store in memory. Its methods are safe for concurrent use.
type Store struct {
	options store.Options

	mu     sync.Mutex // of all below, and of what the sites have
	sites  map[string]*siteData
	state  map[[2]string][]byte
	leases map[string]lease
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Usage = (*Store)(nil)
)

// New returns an empty store. nil options are the zero value.
func New(o *store.Options) *Store {
	s := &Store{
		sites: make(map[string]*siteData), state: make(map[[2]string][]byte),
		leases: make(map[string]lease),
	}
	if o != nil {
		s.options = *o
	}
	if s.options.Logger == nil {
		s.options.Logger = slog.New(slog.DiscardHandler)
	}
	if s.options.Now == nil {
		s.options.Now = time.Now
	}
	return s
}

// Close implements [store.Store]. It changes nothing.
func (s *Store) Close() error { return nil }

func (s *Store) now() time.Time { return s.options.Now().UTC() }

// get runs f while nothing changes, and returns its results. The error says what
// was done.
func get[T any](ctx context.Context, s *Store, what string, f func() (T, error)) (v T, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = ctx.Err(); err == nil {
		v, err = f()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return v, err
}

// list yields what get returns. The store is not locked meanwhile.
func list[T any](ctx context.Context, s *Store, what string, f func() ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		all, err := get(ctx, s, what, f)
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}

// change runs f, which may change the store if it returns nil.
func (s *Store) change(ctx context.Context, what string, f func() error) error {
	_, err := get(ctx, s, what, func() (struct{}, error) {
		if s.options.ReadOnly {
			return struct{}{}, millrace.Coded("store-read-only", fmt.Errorf("%w: the store is open for reading only", millrace.ErrForbidden))
		}
		return struct{}{}, f()
	})
	return err
}

// Sites implements [store.Store].
func (s *Store) Sites(ctx context.Context) iter.Seq2[string, error] {
	return list(ctx, s, "list sites", func() ([]string, error) {
		names := slices.Sorted(maps.Keys(s.sites))
		return slices.DeleteFunc(names, func(name string) bool { return s.sites[name].log.seq == 0 }), nil
	})
}

// Site implements [store.Store].
func (s *Store) Site(ctx context.Context, name, base string) (store.Site, error) {
	return get(ctx, s, "site "+name, func() (store.Site, error) {
		d := s.sites[name]
		switch {
		case name == "":
			return nil, fmt.Errorf("%w: the name is empty", millrace.ErrInvalid)
		case base == "" && d != nil && record.IsURL(name):
			base = name
		case base == "" && d != nil:
			base = d.base
		}
		if base == "" {
			return nil, fmt.Errorf("%w: the store has no such site, or no edition of it", millrace.ErrNotFound)
		}
		names, err := record.NewNames(name, base)
		if err != nil {
			return nil, err
		}
		if d == nil {
			d = &siteData{
				name: name, log: newLog(), sources: make(map[string]*source), weights: make(map[string]millrace.Weight),
				last: make(map[string]*generation), usage: newUsage(),
			}
			s.sites[name] = d
		}
		return &site{siteData: d, store: s, names: names}, nil
	})
}

// Manifests implements [store.Store].
func (s *Store) Manifests(ctx context.Context) iter.Seq2[[]byte, error] {
	return list(ctx, s, "list editions", func() (all [][]byte, _ error) {
		for _, name := range slices.Sorted(maps.Keys(s.sites)) {
			for _, g := range s.sites[name].generations {
				if len(g.editions) > 0 {
					all = append(all, g.edition().Manifest)
				}
			}
		}
		return all, nil
	})
}

type state struct{ *Store }

// State implements [store.Store].
func (s *Store) State() store.State { return state{s} }

// Keys implements [store.Store].
func (s *Store) Keys() store.Keys { return record.Keys{State: s.State(), Now: s.now} }

// Costs implements [store.Store].
func (s *Store) Costs() store.Costs { return record.Costs{State: s.State(), Now: s.now} }

func (s state) Value(ctx context.Context, namespace, key string) ([]byte, error) {
	return get(ctx, s.Store, "state "+key+" of "+namespace, func() ([]byte, error) {
		return bytes.Clone(s.state[[2]string{namespace, key}]), nil
	})
}

func (s state) Swap(ctx context.Context, namespace, key string, old, new []byte) error {
	return s.change(ctx, "state "+key+" of "+namespace, func() error {
		k := [2]string{namespace, key}
		switch {
		case namespace == "" || key == "":
			return millrace.Coded("state-name", fmt.Errorf("%w: the namespace or the key is empty", millrace.ErrInvalid))
		case !bytes.Equal(s.state[k], old):
			return fmt.Errorf("%w: it has another value", millrace.ErrConflict)
		}
		if s.state[k] = bytes.Clone(new); len(new) == 0 {
			delete(s.state, k)
		}
		return nil
	})
}

// lease is a lease as the store keeps it, also when it has expired: the fence
// rises with each holder.
type lease struct {
	store.Lease
	duration time.Duration
}

// holds reports whether the lease has a holder. One that expires later than its
// duration allows has none: the clock was set back.
func (l lease) holds(now time.Time) bool {
	return now.Before(l.Expires) && !l.Expires.After(now.Add(l.duration))
}

type leases struct{ *Store }

// Leases implements [store.Store].
func (s *Store) Leases() store.Leases { return leases{s} }

func (s leases) Acquire(ctx context.Context, name, holder string, d time.Duration) (l store.Lease, err error) {
	err = s.change(ctx, "lease "+name, func() error {
		if name == "" || holder == "" || d <= 0 {
			return millrace.Coded("bad-lease", fmt.Errorf("%w: the name or the holder is empty, or the duration is not positive", millrace.ErrInvalid))
		}
		is := s.leases[name]
		l = is.Lease
		if !is.holds(s.now()) {
			l.Fence++
		} else if l.Holder != holder {
			return millrace.Coded("lease-held", fmt.Errorf("%w: %s has it", millrace.ErrConflict, l.Holder))
		}
		l.Name, l.Holder, l.Expires = name, holder, s.now().Add(d)
		s.leases[name] = lease{l, d}
		return nil
	})
	return l, err
}

func (s leases) Release(ctx context.Context, l store.Lease) error {
	return s.change(ctx, "lease "+l.Name, func() error {
		if is := s.leases[l.Name]; is.Holder == l.Holder && is.Fence == l.Fence {
			is.Expires = time.Time{}
			s.leases[l.Name] = is
		}
		return nil
	})
}

// checkLease returns ErrConflict unless a lease is zero or its holder has it.
func (s *Store) checkLease(l store.Lease) error {
	is := s.leases[l.Name]
	if l == (store.Lease{}) || is.Holder == l.Holder && is.Fence == l.Fence && is.holds(s.now()) {
		return nil
	}
	return millrace.Coded("lease-lost", fmt.Errorf("lease %s: %w: it has expired or another holder has it", l.Name, millrace.ErrConflict))
}
