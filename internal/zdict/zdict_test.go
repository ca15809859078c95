package zdict

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// file is a file with a table of records and its dictionaries.
type file struct {
	records      [][]byte // frames; record 1 is the first
	dictionaries map[uint32][]byte
	made         []int64
	newest       uint32
}

func newFile() *file { return &file{dictionaries: make(map[uint32][]byte)} }

func (f *file) row(query string, args []any, dest ...any) error {
	switch {
	case strings.HasPrefix(query, "SELECT id, made"):
		if len(f.made) == 0 {
			return sql.ErrNoRows
		}
		*dest[0].(*uint32), *dest[1].(*int64) = f.newest, f.made[len(f.made)-1]
	case strings.HasPrefix(query, "SELECT data FROM dictionary"):
		frame, ok := f.dictionaries[args[0].(uint32)]
		if !ok {
			return sql.ErrNoRows
		}
		*dest[0].(*[]byte) = frame
	case strings.HasPrefix(query, "SELECT data FROM record"):
		*dest[0].(*[]byte) = f.records[args[0].(int64)]
	case strings.HasPrefix(query, "INSERT INTO dictionary"):
		f.newest = args[0].(uint32)
		f.made = append(f.made, args[2].(int64))
		f.dictionaries[f.newest] = args[3].([]byte)
		*dest[0].(*int64) = args[2].(int64)
	default:
		return errors.New(query)
	}
	return nil
}

func (f *file) add(c *Encoder, record []byte) error {
	f.records = append(f.records, c.Encode(nil, record))
	return c.Grow(f.row, int64(len(f.records)))
}

func record(i int) []byte {
	switch i % 50 {
	case 7:
		return []byte("x")
	case 8:
		return bytes.Repeat([]byte(fmt.Sprint("long ", i)), 60_000)
	}
	return fmt.Appendf(nil, `[{"type":"heading","text":"Page %d of the site"},{"type":"text","text":"%s"}]`, i,
		strings.Repeat(fmt.Sprint("The gate of mill ", i*i, " opens. "), 5+i%40))
}

// Two processes write to a file in turn. Dictionaries are created at growing intervals, and each
// process reads all frames.
func TestCoder(t *testing.T) {
	f := newFile()
	writers := []Coder{{Series: "record"}, {Series: "record"}}
	const n = 4200
	var w *Encoder
	for i := range n {
		if i%30 == 0 {
			var err error
			if w, err = writers[i/30%2].Begin(f.row); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.add(w, record(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(f.made); got != "[64 512 4096]" {
		t.Error("dictionaries at", got)
	}
	var readers [3]Coder
	var wg sync.WaitGroup
	for _, c := range []*Coder{&writers[0], &writers[1], &readers[0], &readers[0], &readers[1], &readers[2]} {
		wg.Go(func() {
			for i, frame := range f.records {
				if got, err := c.Decode(f.row, frame); err != nil || !bytes.Equal(got, record(i)) {
					t.Errorf("record %d: %q, %v", i, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if first, later := len(f.records[20]), len(f.records[120]); later > first*2/3 {
		t.Errorf("%d bytes without a dictionary, %d with one", first, later)
	}
}

// After a rollback of a transaction that created a dictionary, the next one encodes with the
// file's dictionary.
func TestRollback(t *testing.T) {
	f := newFile()
	c := Coder{Series: "record"}
	for round := range 3 {
		e, err := c.Begin(f.row)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			if err := f.add(e, record(round*100+i)); err != nil {
				t.Fatal(err)
			}
		}
		if round == 1 {
			f = &file{records: f.records[:40], dictionaries: make(map[uint32][]byte)}
		}
	}
	var other Coder
	for i, frame := range f.records {
		if _, err := other.Decode(f.row, frame); err != nil {
			t.Error(i, err)
		}
	}
	if len(f.records) != 80 || len(f.made) != 1 {
		t.Error(len(f.records), f.made)
	}
}

// Damage of any byte is an error, or decodes to the same content.
func TestDamaged(t *testing.T) {
	f := newFile()
	c := Coder{Series: "record"}
	e, err := c.Begin(f.row)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 70 {
		if err := f.add(e, record(i)); err != nil {
			t.Fatal(err)
		}
	}
	frame := f.records[69]
	for i := range frame {
		for _, flip := range []byte{1, 0x80} {
			damaged := bytes.Clone(frame)
			damaged[i] ^= flip
			if got, err := c.Decode(f.row, damaged); err == nil && !bytes.Equal(got, record(69)) {
				t.Errorf("byte %d: %q", i, got)
			}
		}
		if got, err := c.Decode(f.row, frame[:i]); err == nil {
			t.Errorf("%d bytes of it: %q", i, got)
		}
	}
	f.dictionaries[f.newest] = frame // a dictionary that is compressed with itself
	var other Coder
	if _, err := other.Decode(f.row, frame); !errors.Is(err, zstd.ErrUnknownDictionary) {
		t.Error(err)
	}
	if _, err := other.Begin(f.row); !errors.Is(err, zstd.ErrUnknownDictionary) {
		t.Error(err)
	}
	delete(f.dictionaries, f.newest)
	if _, err := other.Decode(f.row, frame); err == nil || errors.Is(err, sql.ErrNoRows) {
		t.Error(err)
	}
}
