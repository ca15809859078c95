package sqlite

import (
	"context"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// stateTable stores the values of [store.State].
const stateTable = `
CREATE TABLE state (
	namespace TEXT NOT NULL,
	key       TEXT NOT NULL,
	value     BLOB NOT NULL,
	PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
`

const stateValue = "SELECT value FROM state WHERE namespace = ? AND key = ?"

// stateValues is the State of a store.
type stateValues struct{ store *Store }

// State implements [store.Store].
func (s *Store) State() store.State { return stateValues{s} }

// Leases implements [store.Store].
func (s *Store) Leases() store.Leases { return record.Leases{State: s.State(), Now: s.now} }

// Keys implements [store.Store].
func (s *Store) Keys() store.Keys { return record.Keys{State: s.State(), Now: s.now} }

// Costs implements [store.Store].
func (s *Store) Costs() store.Costs { return record.Costs{State: s.State(), Now: s.now} }

// Usage implements [store.Store].
func (s *Store) Usage() store.Usage { return s }

// Value implements [store.State].
func (s stateValues) Value(ctx context.Context, namespace, key string) (value []byte, err error) {
	err = s.store.read.row(ctx, stateValue, []any{namespace, key}, &value)
	if absent(err) {
		return nil, nil
	}
	return value, explain("state "+key+" of "+namespace, err)
}

// Swap implements [store.State].
func (s stateValues) Swap(ctx context.Context, namespace, key string, old, new []byte) error {
	what := "state " + key + " of " + namespace
	return explain(what, s.store.writer.do(ctx, func(tx *tx) error {
		var is []byte
		if err := tx.row(stateValue, []any{namespace, key}, &is); err != nil && !absent(err) {
			return err
		}
		if err := record.CheckSwap(namespace, key, is, old); err != nil {
			return err
		}
		if len(new) == 0 {
			return tx.exec("DELETE FROM state WHERE namespace = ? AND key = ?", namespace, key)
		}
		return tx.exec("INSERT INTO state (namespace, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", namespace, key, new)
	}))
}
