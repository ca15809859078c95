package sqlite

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace/millrace"
)

// decode decodes a body, an original or a tag. No rows may be open, because decode may read a
// dictionary.
func (s *Store) decode(q querier, frame []byte) ([]byte, error) {
	data, err := s.bodies.Decode(q.row, frame)
	if err != nil {
		err = millrace.Coded("store-damaged", fmt.Errorf("%w: damaged: %w", millrace.ErrInvalid, err))
	}
	return data, err
}

// body reads the blocks of a body.
func (s *Store) body(q querier, id int64) (frame []byte, err error) {
	if err := q.row("SELECT data FROM body WHERE id = ?", []any{id}, &frame); err != nil {
		return nil, err
	}
	return s.decode(q, frame)
}

// addBody stores blocks and returns the number of the body, or 0 if there are no blocks.
func (a *application) addBody(blocks []byte) (id int64, err error) {
	if len(blocks) == 0 {
		return 0, nil
	}
	a.packed = a.store.bodies.Encode(a.packed[:0], blocks)
	if err = a.row("INSERT INTO body (data) VALUES (?) RETURNING id", []any{a.packed}, &id); err == nil {
		err = a.store.bodies.Grow(a.row, id)
	}
	return id, err
}

// keepOriginal stores the original of a page in row id, or in a new row if id is 0. It returns
// the row's number. It does not rewrite an equal value.
func (a *application) keepOriginal(id int64, original []byte) (int64, error) {
	if len(original) == 0 || len(original) > millrace.MaxOriginal {
		if id == 0 {
			return 0, nil
		}
		return 0, a.exec("DELETE FROM original WHERE id = ?", id)
	}
	a.packed = a.store.bodies.Encode(a.packed[:0], original)
	if id == 0 {
		err := a.row("INSERT INTO original (data) VALUES (?) RETURNING id", []any{a.packed}, &id)
		return id, err
	}
	var stored []byte
	if err := a.row("SELECT data FROM original WHERE id = ?", []any{id}, &stored); err != nil {
		return 0, err
	}
	if bytes.Equal(stored, a.packed) {
		return id, nil
	}
	return id, a.exec("UPDATE original SET data = ? WHERE id = ?", a.packed, id)
}

// Original implements [millrace.OriginalStore].
func (s *Site) Original(ctx context.Context, from, url string) ([]byte, error) {
	what := "original of " + url + " from " + from
	var packed []byte
	err := s.store.read.row(ctx, `SELECT original.data FROM source
		JOIN memory ON memory.source = source.id AND memory.url = ?3
		JOIN original ON original.id = memory.original
		WHERE source.site = ?1 AND source.name = ?2`, []any{s.id, from, url}, &packed)
	if absent(err) {
		return nil, fmt.Errorf("%s: %w", what, millrace.ErrNotFound)
	}
	var original []byte
	if err == nil {
		original, err = s.store.decode(readQuerier{ctx, s.store.read}, packed)
	}
	if err != nil {
		return nil, explain(what, err)
	}
	return original, nil
}
