package sqlstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

const stateValue = "SELECT value FROM state WHERE namespace = ? AND key = ?"

// stateValues is the State of a store.
type stateValues struct{ store *Store }

// State implements [store.Store].
func (s *Store) State() store.State { return stateValues{s} }

// Leases implements [store.Store].
func (s *Store) Leases() store.Leases { return record.Leases{State: s.State(), Now: s.Now} }

// Keys implements [store.Store].
func (s *Store) Keys() store.Keys { return record.Keys{State: s.State(), Now: s.Now} }

// Costs implements [store.Store].
func (s *Store) Costs() store.Costs { return record.Costs{State: s.State(), Now: s.Now} }

// Usage implements [store.Store].
func (s *Store) Usage() store.Usage { return s }

// Value implements [store.State].
func (s stateValues) Value(ctx context.Context, namespace, key string) (value []byte, err error) {
	err = s.store.db.Reader(ctx).Row(stateValue, []any{namespace, key}, &value)
	if absent(err) {
		return nil, nil
	}
	return value, wrap("state "+key+" of "+namespace, err)
}

// Namespaces implements [store.State].
func (s stateValues) Namespaces(ctx context.Context, key string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for after := ""; ; {
			names, err := column[string](s.store.db.Reader(ctx), "SELECT namespace FROM state WHERE key = ? AND namespace > ? ORDER BY namespace LIMIT 1000", key, after)
			for _, name := range names {
				if after = name; !yield(name, nil) {
					return
				}
			}
			if err != nil {
				yield("", wrap("namespaces with "+key, err))
			}
			if err != nil || len(names) == 0 {
				return
			}
		}
	}
}

// Swap implements [store.State]. A single statement compares and writes, so no lock is needed.
func (s stateValues) Swap(ctx context.Context, namespace, key string, old, new []byte) error {
	what := "state " + key + " of " + namespace
	return wrap(what, s.store.db.Write(ctx, Lock{}, func(t Tx) error {
		if err := record.CheckSwap(namespace, key, nil, nil); err != nil {
			return err
		}
		var n int64
		var err error
		switch {
		case len(old) == 0 && len(new) > 0:
			n, err = t.Count("INSERT INTO state (namespace, key, value) VALUES (?, ?, ?) ON CONFLICT (namespace, key) DO NOTHING", namespace, key, new)
		case len(new) > 0:
			n, err = t.Count("UPDATE state SET value = ? WHERE namespace = ? AND key = ? AND value = ?", new, namespace, key, old)
		case len(old) > 0:
			n, err = t.Count("DELETE FROM state WHERE namespace = ? AND key = ? AND value = ?", namespace, key, old)
		}
		if err != nil || n > 0 {
			return err
		}
		var is []byte
		if err := t.Row(stateValue, []any{namespace, key}, &is); err != nil && !absent(err) {
			return err
		}
		if err := record.CheckSwap(namespace, key, is, old); err != nil || len(old)+len(new) == 0 {
			return err
		}
		return fmt.Errorf("%w: the value has changed in the meantime", millrace.ErrConflict)
	}))
}
