package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
)

// coder compresses what pages were made of. At its fastest it makes HTML less
// than a third of its size; slower levels gain a twentieth of that, for up to
// twice the time. A store that keeps no originals never makes one.
type coder struct {
	once sync.Once
	enc  *zstd.Encoder
	dec  *zstd.Decoder
	err  error
}

// originalWindow is how far the compression looks back: a larger one gains
// nothing on pages, and costs memory.
const originalWindow = 256 << 10

func (c *coder) open() error {
	c.once.Do(func() {
		c.enc, c.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(originalWindow), zstd.WithLowerEncoderMem(true))
		if c.err == nil {
			c.dec, c.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxMemory(millrace.MaxOriginal))
		}
	})
	return c.err
}

func (c *coder) close() {
	c.once.Do(func() { c.err = zstd.ErrDecoderClosed })
	if c.dec != nil {
		c.dec.Close() // the encoder has nothing to give back
	}
}

// keepOriginal brings row id, 0 = none yet, in line with what a page was made
// of, and gives the row's number from then on. What is kept already is not
// written again.
func (a *application) keepOriginal(id int64, original []byte) (int64, error) {
	if len(original) == 0 || len(original) > millrace.MaxOriginal {
		if id == 0 {
			return 0, nil
		}
		return 0, a.exec("DELETE FROM original WHERE id = ?", id)
	}
	coder := &a.store.coder
	if err := coder.open(); err != nil {
		return 0, err
	}
	a.packed = coder.enc.EncodeAll(original, a.packed[:0])
	if id == 0 {
		err := a.row("INSERT INTO original (data) VALUES (?) RETURNING id", []any{a.packed}, &id)
		return id, err
	}
	var held []byte
	if err := a.row("SELECT data FROM original WHERE id = ?", []any{id}, &held); err != nil {
		return 0, err
	}
	if bytes.Equal(held, a.packed) {
		return id, nil
	}
	return id, a.exec("UPDATE original SET data = ? WHERE id = ?", a.packed, id)
}

// Original implements [millrace.Originals].
func (s *Site) Original(ctx context.Context, from, url string) ([]byte, error) {
	what := "what " + url + " of " + from + " was made of"
	var packed []byte
	err := s.store.read.row(ctx, `SELECT original.data FROM source
		JOIN memory ON memory.source = source.id AND memory.url = ?3
		JOIN original ON original.id = memory.original
		WHERE source.site = ?1 AND source.name = ?2`, []any{s.id, from, url}, &packed)
	if absent(err) {
		return nil, fmt.Errorf("%s: %w", what, millrace.ErrNotFound)
	}
	if err == nil {
		err = s.store.coder.open()
	}
	if err != nil {
		return nil, explain(what, err)
	}
	original, err := s.store.coder.dec.DecodeAll(packed, nil)
	if err == nil && len(original) == 0 {
		err = errors.New("there is nothing in it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: it is damaged: %w", what, millrace.ErrInvalid, err)
	}
	return original, nil
}
