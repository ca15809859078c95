// Package zdict compresses each record of a database file separately with zstd. The dictionaries
// are samples of these records.
//
// A dictionary is 64 kB of pieces of records. For pages, passages and JSON, it is as good as a
// trained zstd dictionary, and much faster to create. The number of a dictionary is a hash of its
// content, so that an uncommitted dictionary is never mistaken for another one. A frame names its
// dictionary, so records with different dictionaries stay readable.
package zdict

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Schema creates the table of the dictionaries and its index.
const Schema = `CREATE TABLE dictionary (
	id     INTEGER PRIMARY KEY,
	series TEXT NOT NULL,    -- name of the series of records
	made   INTEGER NOT NULL, -- number of records when it was created
	data   BLOB NOT NULL
);
CREATE INDEX dictionary_series ON dictionary (series, made)`

// Row runs a statement that reads one row of the file. Its error is [sql.ErrNoRows] if
// there is no row.
type Row func(query string, args []any, dest ...any) error

// Coder encodes the records of one series of a file, and decodes the records of any series. It is
// safe for concurrent use.
type Coder struct {
	// Series is the name of the table that contains the records. Each series has its own
	// dictionaries.
	Series string

	encoders sync.Pool // contains *encoder values, about a megabyte each

	mu     sync.Mutex
	newest dictionary    // the last one that Begin has loaded
	dec    *zstd.Decoder // contains the dictionaries used so far; no file has many
}

// dictionary is a dictionary to encode with. The zero value means no dictionary.
type dictionary struct {
	id   uint32
	data []byte
}

// Encoder encodes the records of one write transaction.
type Encoder struct {
	*Coder
	with dictionary
	made int64 // number of records when the newest dictionary was created, or 0
}

const (
	// window is the encoder's window. A larger window does not compress pages better, and uses more
	// memory.
	window = 256 << 10
	// maxRecord is the maximum size of a record in bytes, which is the limit of SQLite.
	maxRecord = 1 << 30
	// samples is the number of records in a dictionary; each contributes at most piece bytes.
	samples, piece = 128, 512
)

// Due reports whether the table needs a dictionary at record n. A dictionary is created when there
// are 64 records, 512, 4096, and so on.
func (e *Encoder) Due(n int64) bool { return n >= max(64, 8*e.made) }

// Begin selects the newest dictionary of the series, including those of other processes. Call it at
// the start of each transaction that encodes records.
func (c *Coder) Begin(row Row) (*Encoder, error) {
	e := &Encoder{Coder: c}
	var id uint32
	err := row("SELECT id, made FROM dictionary WHERE series = ? ORDER BY made DESC LIMIT 1", []any{c.Series}, &id, &e.made)
	if errors.Is(err, sql.ErrNoRows) {
		return e, nil
	} else if err != nil {
		return nil, err
	}
	c.mu.Lock()
	e.with = c.newest
	c.mu.Unlock()
	if e.with.id == id {
		return e, nil
	}
	e.with.id = id
	if e.with.data, err = c.load(id, row); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.newest = e.with
	c.mu.Unlock()
	return e, nil
}

// encoder encodes with one dictionary.
type encoder struct {
	*zstd.Encoder
	with uint32
}

func newEncoder(with dictionary) *zstd.Encoder {
	o := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true),
	}
	if with.id != 0 {
		o = append(o, zstd.WithEncoderDictRaw(with.id, with.data))
	}
	enc, err := zstd.NewWriter(nil, o...)
	if err != nil {
		panic(err) // all options are valid
	}
	return enc
}

// Grow creates a dictionary from the existing records if one is due. Call it after record n was
// added to the table, which has the columns id and data.
func (e *Encoder) Grow(row Row, n int64) error {
	if !e.Due(n) {
		return nil
	}
	records := make([][]byte, samples)
	for i := range int64(samples) {
		var frame []byte
		err := row("SELECT data FROM "+e.Series+" WHERE id > ? ORDER BY id LIMIT 1", []any{i * (n - 1) / samples}, &frame)
		if err == nil {
			records[i], err = e.Decode(row, frame)
		}
		if err != nil {
			return err
		}
	}
	return e.learn(row, n, records)
}

// Learn creates a dictionary from records that will be encoded next, unless the series has one, or
// there are too few.
func (e *Encoder) Learn(row Row, records [][]byte) error {
	if e.with.id != 0 || len(records) < samples/4 {
		return nil
	}
	return e.learn(row, 0, records[:min(len(records), samples)])
}

// learn creates a dictionary from a piece of each record.
func (e *Encoder) learn(row Row, n int64, records [][]byte) error {
	var data []byte
	for i, record := range records {
		if more := len(record) - piece; more > 0 {
			at := i * 7919 % (more + 1) // a different offset in each record
			record = record[at : at+piece]
		}
		data = append(data, record...)
	}
	e.with = dictionary{}
	id := numberOf(data)
	err := row("INSERT INTO dictionary (id, series, made, data) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET made = excluded.made RETURNING made",
		[]any{id, e.Series, n, e.Encode(nil, data)}, &e.made)
	if err != nil {
		return err
	}
	e.with = dictionary{id, data}
	return nil
}

// Encode appends the frame of a record to dst.
func (e *Encoder) Encode(dst, record []byte) []byte {
	enc, ok := e.encoders.Get().(*encoder)
	if !ok || enc.with != e.with.id {
		enc = &encoder{newEncoder(e.with), e.with.id}
	}
	defer e.encoders.Put(enc)
	return enc.EncodeAll(record, dst)
}

// Decode returns the record of a frame. An error is one from row, or reports that the frame or its
// dictionary is damaged or missing.
func (c *Coder) Decode(row Row, frame []byte) ([]byte, error) {
	record, err := c.decode(frame)
	if !errors.Is(err, zstd.ErrUnknownDictionary) {
		return record, err
	}
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, err
	}
	dictionary, err := c.load(h.DictionaryID, row)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	err = c.dec.ResetWithOptions(nil, zstd.WithDecoderDictRaw(h.DictionaryID, dictionary)) // other calls decode concurrently
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c.decode(frame)
}

// Check returns an error if a dictionary is damaged.
func (c *Coder) Check(id uint32, row Row) error {
	data, err := c.load(id, row)
	if err == nil && numberOf(data) != id {
		err = fmt.Errorf("dictionary %d has other content", id)
	}
	return err
}

// numberOf returns the number of a dictionary.
func numberOf(data []byte) uint32 {
	sum := sha256.Sum256(data)
	return 1<<16 | binary.BigEndian.Uint32(sum[:])>>1 // smaller numbers are reserved
}

// load reads a dictionary. Dictionaries themselves are compressed without a dictionary.
func (c *Coder) load(id uint32, row Row) ([]byte, error) {
	var frame []byte
	switch err := row("SELECT data FROM dictionary WHERE id = ?", []any{id}, &frame); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("dictionary %d is missing", id)
	case err != nil:
		return nil, err
	}
	return c.decode(frame)
}

// decode decodes with the loaded dictionaries.
func (c *Coder) decode(frame []byte) (record []byte, err error) {
	c.mu.Lock()
	if c.dec == nil {
		c.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(4), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxRecord))
	}
	dec := c.dec
	c.mu.Unlock()
	if err == nil {
		record, err = dec.DecodeAll(frame, nil)
	}
	if err == nil && len(record) == 0 {
		err = errors.New("the frame is empty")
	}
	return record, err
}
