package record

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// Keys implements [store.Keys] as one value in the State of a store.
type Keys struct {
	State store.State
	Now   func(ctx context.Context) (time.Time, error)
}

// list returns the stored list of keys, in the order of their creation.
func (k Keys) list() state.JSON[[]store.Key] {
	return state.JSON[[]store.Key]{State: k.State, Namespace: "access", Key: "keys", Strict: true}
}

// Add implements [store.Keys].
func (k Keys) Add(ctx context.Context, key store.Key) error {
	if err := key.Validate(); err != nil {
		return err
	}
	now, err := k.second(ctx)
	if err != nil {
		return err
	}
	var scopes []millrace.Scope
	for _, r := range key.Scopes {
		if !slices.Contains(scopes, r) {
			scopes = append(scopes, r)
		}
	}
	key.Scopes, key.Created, key.Revoked = scopes, now, time.Time{}
	key.Expires = key.Expires.UTC().Truncate(time.Second)
	return k.list().Update(ctx, func(all *[]store.Key) error {
		if slices.ContainsFunc(*all, func(o store.Key) bool { return o.Hash == key.Hash || o.Name == key.Name && o.Revoked.IsZero() }) {
			return fmt.Errorf("key %s: %w: a key with this name or hash exists; revoke it first, or choose another name", key.Name, millrace.ErrConflict)
		}
		*all = append(*all, key)
		return nil
	})
}

// List implements [store.Keys].
func (k Keys) List(ctx context.Context) ([]store.Key, error) {
	all, err := k.list().Load(ctx)
	slices.SortStableFunc(all, func(a, b store.Key) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Revoke implements [store.Keys].
func (k Keys) Revoke(ctx context.Context, name string) error {
	now, err := k.second(ctx)
	if err != nil {
		return err
	}
	return k.list().Update(ctx, func(all *[]store.Key) error {
		i := slices.IndexFunc(*all, func(o store.Key) bool { return o.Name == name && o.Revoked.IsZero() })
		if i < 0 {
			return fmt.Errorf("key %s: %w: no unrevoked key has this name", name, millrace.ErrNotFound)
		}
		(*all)[i].Revoked = now
		return nil
	})
}

// second returns the current time in whole seconds.
func (k Keys) second(ctx context.Context) (time.Time, error) {
	now, err := k.Now(ctx)
	return now.Truncate(time.Second), err
}
