package sqlstore

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace/millrace"
)

// decode decodes a body, an original or a tag. It may read a dictionary, so no rows may be open.
func (s *Store) decode(q Querier, frame []byte) ([]byte, error) {
	data, err := s.bodies.Decode(q.Row, frame)
	if err != nil {
		err = millrace.Coded("store-damaged", fmt.Errorf("%w: damaged: %w", millrace.ErrInvalid, err))
	}
	return data, err
}

// addBody adds the blocks of a page to the rows to write. It returns the ID of the body, or 0 if
// there are no blocks.
func (a *application) addBody(blocks []byte) (id int64, err error) {
	if len(blocks) == 0 {
		return 0, nil
	}
	if id, err = a.take("body", &a.bodyIDs); err != nil {
		return 0, err
	}
	if a.bodyRows = append(a.bodyRows, id, a.bodies.Encode(nil, blocks)); a.bodies.Due(id) {
		if err = a.flushBodies(); err == nil {
			err = a.bodies.Grow(a.Row, id)
		}
	}
	return id, err
}

func (a *application) flushBodies() error {
	rows := a.bodyRows
	a.bodyRows = nil
	return a.Insert("body (id, data)", "", 2, rows)
}

func (a *application) flushOriginals() error {
	rows := a.originalRows
	a.originalRows = nil
	return a.Insert("original (id, data)", "", 2, rows)
}

// keepOriginal stores the original of a page in row id, or in a new row if id is 0. It returns the
// ID of the row. If the value is unchanged, nothing is written. If the value is empty or too large,
// keepOriginal deletes the row and returns 0.
func (a *application) keepOriginal(id int64, original []byte) (_ int64, err error) {
	drop := len(original) == 0 || len(original) > millrace.MaxOriginal
	switch {
	case drop && id == 0:
		return 0, nil
	case id == 0:
		if id, err = a.take("original", &a.originalIDs); err == nil {
			a.originalRows = append(a.originalRows, id, a.bodies.Encode(nil, original))
		}
		return id, err
	}
	if err := a.flushOriginals(); err != nil {
		return 0, err
	}
	if drop {
		return 0, a.Exec("DELETE FROM original WHERE id = ?", id)
	}
	var stored []byte
	if err := a.Row("SELECT data FROM original WHERE id = ?", []any{id}, &stored); err != nil {
		return 0, err
	}
	frame := a.bodies.Encode(nil, original)
	if bytes.Equal(stored, frame) {
		return id, nil
	}
	return id, a.Exec("UPDATE original SET data = ? WHERE id = ?", frame, id)
}

// Original implements [millrace.OriginalStore].
func (s *Site) Original(ctx context.Context, from, url string) ([]byte, error) {
	what := "original of " + url + " from " + from
	var packed []byte
	err := s.store.db.Reader(ctx).Row(`SELECT original.data FROM source
		JOIN memory ON memory.source = source.id AND memory.url = ?3
		JOIN original ON original.id = memory.original
		WHERE source.site = ?1 AND source.name = ?2`, []any{s.id, from, url}, &packed)
	if absent(err) {
		return nil, fmt.Errorf("%s: %w", what, millrace.ErrNotFound)
	}
	var original []byte
	if err == nil {
		original, err = s.store.decode(s.store.db.Reader(ctx), packed)
	}
	if err != nil {
		return nil, wrap(what, err)
	}
	return original, nil
}
