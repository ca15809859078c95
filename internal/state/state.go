// Package state reads and writes typed values in the State of a store.
package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Make returns the value of a key. If the value is absent, or valid rejects it, Make stores and
// returns the result of make. All processes get the same value.
func Make(
	ctx context.Context, s store.State, namespace, key string, valid func([]byte) bool, make func() ([]byte, error),
) ([]byte, error) {
	for {
		old, err := s.Value(ctx, namespace, key)
		if err != nil || valid(old) {
			return old, err
		}
		value, err := make()
		if err != nil {
			return nil, err
		}
		if err := s.Swap(ctx, namespace, key, old, value); !errors.Is(err, millrace.ErrConflict) {
			return value, err
		}
	}
}

// JSON is one value, stored as JSON.
type JSON[T any] struct {
	State          store.State
	Namespace, Key string
	Strict         bool // return ErrInvalid for a value that is not a T
}

// Load returns the value, or the zero T if it is absent. Unless Strict is set, a value that is not
// a T, for example from another version, counts as absent.
func (j JSON[T]) Load(ctx context.Context) (T, error) {
	value, _, err := j.load(ctx)
	return value, err
}

func (j JSON[T]) load(ctx context.Context) (value T, stored []byte, err error) {
	stored, err = j.State.Value(ctx, j.Namespace, j.Key)
	if err != nil || len(stored) == 0 {
		return value, stored, err
	}
	if err = json.Unmarshal(stored, &value); err != nil {
		value = *new(T)
		if j.Strict {
			return value, stored, fmt.Errorf("state %s of %s: %w: %w", j.Key, j.Namespace, millrace.ErrInvalid, err)
		}
	}
	return value, stored, nil
}

// Update replaces the value with the result of change. If another process has changed the value in
// the meantime, it calls change again. If change fails, Update writes nothing and returns the
// error.
func (j JSON[T]) Update(ctx context.Context, change func(value *T) error) error {
	for {
		value, old, err := j.load(ctx)
		if err != nil {
			return err
		}
		if err := change(&value); err != nil {
			return err
		}
		b, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if bytes.Equal(b, old) {
			return nil
		}
		if err := j.State.Swap(ctx, j.Namespace, j.Key, old, b); !errors.Is(err, millrace.ErrConflict) {
			return err
		}
	}
}

// Save replaces the value. If Strict is set and the stored value is not a T, it returns ErrInvalid
// and writes nothing.
func (j JSON[T]) Save(ctx context.Context, value T) error {
	return j.Update(ctx, func(v *T) error { *v = value; return nil })
}
