package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// second returns the time in whole seconds.
func (s *Store) second() time.Time { return s.now().Truncate(time.Second) }

type keys struct{ *Store }

// Keys implements [store.Store].
func (s *Store) Keys() store.Keys { return keys{s} }

func (s keys) Add(ctx context.Context, k store.Key) error {
	if err := k.Validate(); err != nil {
		return err
	}
	return s.change(ctx, "key "+k.Name, func() error {
		if slices.ContainsFunc(s.keys, func(o store.Key) bool { return o.Hash == k.Hash || o.Name == k.Name && o.Revoked.IsZero() }) {
			return fmt.Errorf("%w: the store has one of this name or hash; revoke it first, or choose another name", millrace.ErrConflict)
		}
		var rights []millrace.Right
		for _, r := range k.Rights {
			if !slices.Contains(rights, r) {
				rights = append(rights, r)
			}
		}
		k.Rights, k.Created, k.Expires, k.Revoked = rights, s.second(), k.Expires.UTC().Truncate(time.Second), time.Time{}
		s.keys = append(s.keys, k)
		return nil
	})
}

func (s keys) List(ctx context.Context) ([]store.Key, error) {
	return get(ctx, s.Store, "keys", func() ([]store.Key, error) {
		all := slices.Clone(s.keys)
		slices.SortStableFunc(all, func(a, b store.Key) int { return strings.Compare(a.Name, b.Name) })
		return all, nil
	})
}

func (s keys) Revoke(ctx context.Context, name string) error {
	return s.change(ctx, "key "+name, func() error {
		i := slices.IndexFunc(s.keys, func(k store.Key) bool { return k.Name == name && k.Revoked.IsZero() })
		if i < 0 {
			return fmt.Errorf("%w: the store has none of this name that is not revoked", millrace.ErrNotFound)
		}
		s.keys[i].Revoked = s.second()
		return nil
	})
}

type costs struct{ *Store }

// Costs implements [store.Store].
func (s *Store) Costs() store.Costs { return costs{s} }

func (s costs) Add(ctx context.Context, site, protocol string, t store.Traffic) error {
	return s.change(ctx, "traffic of "+site+" by "+protocol, func() error {
		switch {
		case protocol == "" || slices.ContainsFunc(t.Numbers(), func(n *int64) bool { return *n < 0 }):
			return fmt.Errorf("%w: the protocol has no name, or a number is negative", millrace.ErrInvalid)
		case s.sites[site] == nil:
			return fmt.Errorf("%w: the store has no such site", millrace.ErrNotFound)
		}
		key := [2]string{site, protocol}
		sum, ok := s.costs[key]
		if sum.Last = s.second(); !ok {
			sum.Site, sum.Protocol, sum.Since = site, protocol, sum.Last
		}
		sum.Traffic.Add(t)
		s.costs[key] = sum
		return nil
	})
}

func (s costs) List(ctx context.Context) ([]store.SiteCost, error) {
	return get(ctx, s.Store, "traffic", func() ([]store.SiteCost, error) {
		return slices.SortedFunc(maps.Values(s.costs), func(a, b store.SiteCost) int {
			return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Protocol, b.Protocol))
		}), nil
	})
}
