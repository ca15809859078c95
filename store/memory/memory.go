// Package memory is an engine of package store that stores everything in memory. It is the
// reference for other engines, and the store of most tests. It prefers readability over speed: the
// cost of a scan grows with the number of pages of the site.
//
// A transaction copies the newest state of a log, changes the copy and commits it. The maps in the
// states are trees that share nodes, so copies are cheap.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
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
	Volatile bool // publications show only dates that sources have set, and have no tokens; set before use

	options store.Options
	mu      sync.Mutex // guards the fields below, and the data of sites
	sites   map[string]*siteData
	values  map[[2]string][]byte // values of State, by namespace and key
	fleet   *fleet
}

// New returns an empty store. o may be nil.
func New(o *store.Options) *Store {
	s := &Store{options: record.Options(o), sites: make(map[string]*siteData), values: make(map[[2]string][]byte)}
	s.fleet = newFleet(s)
	return s
}

// Close implements [store.Store]. It does nothing.
func (s *Store) Close() error { return nil }

func (s *Store) now() time.Time {
	if s.options.Now == nil {
		return time.Now().UTC()
	}
	return s.options.Now().UTC()
}

// Now implements [store.Store].
func (s *Store) Now(context.Context) (time.Time, error) { return s.now(), nil }

// get runs f under the lock and returns its results. what describes the operation in errors.
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

// list computes a list under the lock, and yields its elements without the lock.
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

// change runs f if a lease is valid. f must not change the store if it returns an error.
func (s *Store) change(ctx context.Context, l store.Lease, what string, f func() error) error {
	_, err := get(ctx, s, what, func() (struct{}, error) {
		if s.options.ReadOnly {
			return struct{}{}, millrace.Coded("store-read-only", fmt.Errorf("%w: the store is open for reading only", millrace.ErrForbidden))
		}
		err := s.checkLease(l)
		if err == nil {
			err = f()
		}
		return struct{}{}, err
	})
	return err
}

// Sites implements [store.Store].
func (s *Store) Sites(ctx context.Context) iter.Seq2[string, error] {
	return list(ctx, s, "list sites", func() ([]string, error) {
		names := slices.Sorted(maps.Keys(s.sites))
		return slices.DeleteFunc(names, func(name string) bool { return s.sites[name].log.head().seq == 0 }), nil
	})
}

// Site implements [store.Store].
func (s *Store) Site(ctx context.Context, name, base string) (store.Site, error) {
	return get(ctx, s, "site "+name, func() (store.Site, error) {
		d := s.sites[name]
		if base == "" && d != nil {
			if base = d.base; record.IsURL(name) {
				base = name
			}
		}
		switch {
		case name == "":
			return nil, fmt.Errorf("%w: the name is empty", millrace.ErrInvalid)
		case base == "":
			return nil, fmt.Errorf("%w: the store has no such site, or no edition of it", millrace.ErrNotFound)
		}
		names, err := record.NewNames(name, base)
		if err != nil {
			return nil, err
		}
		if d == nil {
			d = &siteData{name: name, log: newLog(), sources: make(map[string]*source), last: make(map[string]*generation), usage: newUsage()}
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
				if e := g.edition(); e.Number > 0 {
					all = append(all, e.Manifest)
				}
			}
		}
		return all, nil
	})
}

// State implements [store.Store].
func (s *Store) State() store.State { return values{s} }

// Leases implements [store.Store].
func (s *Store) Leases() store.Leases { return record.Leases{State: s.State(), Now: s.Now} }

// Keys implements [store.Store].
func (s *Store) Keys() store.Keys { return record.Keys{State: s.State(), Now: s.Now} }

// Costs implements [store.Store].
func (s *Store) Costs() store.Costs { return record.Costs{State: s.State(), Now: s.Now} }

// Usage implements [store.Store].
func (s *Store) Usage() store.Usage { return s }

type values struct{ *Store }

func (s values) Value(ctx context.Context, namespace, key string) ([]byte, error) {
	return get(ctx, s.Store, "state "+key+" of "+namespace, func() ([]byte, error) {
		return bytes.Clone(s.values[[2]string{namespace, key}]), nil
	})
}

func (s values) Swap(ctx context.Context, namespace, key string, old, new []byte) error {
	return s.change(ctx, store.Lease{}, "state "+key+" of "+namespace, func() error {
		k := [2]string{namespace, key}
		if err := record.CheckSwap(namespace, key, s.values[k], old); err != nil {
			return err
		}
		if s.values[k] = bytes.Clone(new); len(new) == 0 {
			delete(s.values, k)
		}
		return nil
	})
}

func (s values) Namespaces(ctx context.Context, key string) iter.Seq2[string, error] {
	return list(ctx, s.Store, "namespaces with "+key, func() (names []string, _ error) {
		for k := range s.values {
			if k[1] == key {
				names = append(names, k[0])
			}
		}
		slices.Sort(names)
		return names, nil
	})
}
