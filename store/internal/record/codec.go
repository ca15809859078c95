package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace"
)

// EncodeMeta returns the canonical encoding of a page without its blocks.
func EncodeMeta(p *millrace.Page) []byte {
	c := *p
	c.Blocks = nil
	return c.Canonical()
}

// EncodeBlocks returns the encoding of blocks, or nil if there are no blocks.
func EncodeBlocks(blocks []millrace.Block) ([]byte, error) {
	if len(blocks) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(blocks); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Decode is the inverse of EncodeMeta and EncodeBlocks.
func Decode(meta, blocks []byte) (*millrace.Page, error) {
	p := new(millrace.Page)
	if err := json.Unmarshal(meta, p); err != nil {
		return nil, fmt.Errorf("decode stored page: %w", err)
	}
	var err error
	if p.Blocks, err = decodeBlocks(blocks); err != nil {
		return nil, fmt.Errorf("decode blocks of %s: %w", p.URL, err)
	}
	return p, nil
}

// Revision returns a hash of one state of a page, including its date.
func Revision(meta, blocks []byte, modified int64) []byte {
	h := sha256.New()
	var head [16]byte
	binary.BigEndian.PutUint64(head[:], uint64(modified))
	binary.BigEndian.PutUint64(head[8:], uint64(len(meta)))
	h.Write(head[:])
	h.Write(meta)
	h.Write(blocks)
	return h.Sum(nil)
}

// Unix returns a time in seconds since 1970, or 0 for the zero time.
func Unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// Instant is the inverse of Unix.
func Instant(sec int64) time.Time {
	if sec == 0 {
		return time.Time{}
	}
	return time.Unix(sec, 0).UTC()
}
