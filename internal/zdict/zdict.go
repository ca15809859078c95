// Package zdict compresses the records of a database file with zstd, each by itself,
// with dictionaries that are samples of these records.
//
// A dictionary is 64 kB of pieces of records. On pages, passages and JSON that is as
// good as a trained dictionary of zstd, and much faster to make. Its number is a hash
// of its content, so that an uncommitted one is never mistaken for another one. A frame
// names its dictionary, so records with different dictionaries stay readable.
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
	series TEXT NOT NULL,    -- what it is for
	made   INTEGER NOT NULL, -- when the records of the series had come to this number
	data   BLOB NOT NULL
);
CREATE INDEX dictionary_series ON dictionary (series, made)`

// Row runs a statement that reads one row of the file. Its error is [sql.ErrNoRows] if
// there is no row.
type Row func(query string, args []any, dest ...any) error

// Coder encodes the records of one series of a file, and decodes those of any. Decode
// is safe for concurrent use. The other methods need the transaction that writes.
type Coder struct {
	// Series is the name of the table of the records. Each series has its own
	// dictionaries.
	Series string

	encoders   sync.Pool // of *encoder, a megabyte each
	with       uint32    // the dictionary to encode with, 0 = none
	dictionary []byte
	made       int64 // record number at the newest dictionary, 0 = none

	mu  sync.Mutex
	dec *zstd.Decoder // has the dictionaries used so far; a file has few
}

const (
	// window is the encoder's window. A larger one gains nothing on pages and costs
	// memory.
	window = 256 << 10
	// maxRecord is the maximum of bytes of a record, the limit of SQLite.
	maxRecord = 1 << 30
	// samples is the number of records in a dictionary, of piece bytes each.
	samples, piece = 128, 512
)

// due reports whether the table needs a dictionary at record n. There are few of them:
// at 64 records, 512, 4096.
func (c *Coder) due(n int64) bool { return n >= max(64, 8*c.made) }

// Begin selects the newest dictionary of the series, including those of other
// processes. Each transaction that encodes begins with it.
func (c *Coder) Begin(row Row) error {
	var id uint32
	c.made = 0
	err := row("SELECT id, made FROM dictionary WHERE series = ? ORDER BY made DESC LIMIT 1", []any{c.Series}, &id, &c.made)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if c.with == id {
		return nil
	}
	var dictionary []byte
	if id != 0 {
		if dictionary, err = c.load(id, row); err != nil {
			return err
		}
	}
	c.with, c.dictionary = id, dictionary
	return nil
}

// encoder encodes with one dictionary.
type encoder struct {
	*zstd.Encoder
	with uint32
}

func (c *Coder) newEncoder() *zstd.Encoder {
	o := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true),
	}
	if c.with != 0 {
		o = append(o, zstd.WithEncoderDictRaw(c.with, c.dictionary))
	}
	enc, err := zstd.NewWriter(nil, o...)
	if err != nil {
		panic(err) // no option can be wrong
	}
	return enc
}

// Grow must be called after record n was added to the table, which has the columns id
// and data. If it is due, Grow makes a dictionary of the existing records.
func (c *Coder) Grow(row Row, n int64) error {
	if !c.due(n) {
		return nil
	}
	records := make([][]byte, samples)
	for i := range int64(samples) {
		var frame []byte
		err := row("SELECT data FROM "+c.Series+" WHERE id > ? ORDER BY id LIMIT 1", []any{i * (n - 1) / samples}, &frame)
		if err == nil {
			records[i], err = c.Decode(row, frame)
		}
		if err != nil {
			return err
		}
	}
	return c.learn(row, n, records)
}

// Learn makes a dictionary of records that will be encoded next, unless the series has
// one, or there are too few.
func (c *Coder) Learn(row Row, records [][]byte) error {
	if c.with != 0 || len(records) < samples/4 {
		return nil
	}
	return c.learn(row, 0, records[:min(len(records), samples)])
}

// learn makes a dictionary of a piece of each record.
func (c *Coder) learn(row Row, n int64, records [][]byte) error {
	var dictionary []byte
	for i, record := range records {
		if more := len(record) - piece; more > 0 {
			at := i * 7919 % (more + 1) // a different offset in each
			record = record[at : at+piece]
		}
		dictionary = append(dictionary, record...)
	}
	c.with, c.dictionary = 0, nil
	sum := sha256.Sum256(dictionary)
	id := 1<<16 | binary.BigEndian.Uint32(sum[:])>>1 // smaller numbers are reserved
	err := row("INSERT INTO dictionary (id, series, made, data) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET made = excluded.made RETURNING made",
		[]any{id, c.Series, n, c.Encode(nil, dictionary)}, &c.made)
	if err != nil {
		return err
	}
	c.with, c.dictionary = id, dictionary
	return nil
}

// Encode appends the frame of a record to dst.
func (c *Coder) Encode(dst, record []byte) []byte {
	e, ok := c.encoders.Get().(*encoder)
	if !ok || e.with != c.with {
		e = &encoder{c.newEncoder(), c.with}
	}
	defer c.encoders.Put(e)
	return e.EncodeAll(record, dst)
}

// Decode returns the record of a frame. Its error is the row's, or reports a damaged
// frame.
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
	err = c.dec.ResetWithOptions(nil, zstd.WithDecoderDictRaw(h.DictionaryID, dictionary)) // concurrent calls decode meanwhile
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c.decode(frame)
}

// load reads a dictionary, which is coded without one.
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
