package sqlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace"
)

// encodeMeta gives the canonical bytes of a page without its blocks. Equal
// bytes mean equal pages, but for the blocks and for a Modified that nobody
// speaks for.
func encodeMeta(p *millrace.Page) []byte {
	c := *p
	c.Blocks = nil
	return c.Canonical()
}

// encodeBlocks gives the bytes of blocks, nil for none.
func encodeBlocks(blocks []millrace.Block) ([]byte, error) {
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

// decode is the inverse of encodeMeta and encodeBlocks.
func decode(meta, blocks []byte) (*millrace.Page, error) { return decodePage(meta, blocks, false) }

// decodeBare is decode for who has no use for spans, and keeps no text.
func decodeBare(meta, blocks []byte) (*millrace.Page, error) { return decodePage(meta, blocks, true) }

func decodePage(meta, blocks []byte, bare bool) (*millrace.Page, error) {
	p := new(millrace.Page)
	if err := json.Unmarshal(meta, p); err != nil {
		return nil, fmt.Errorf("a page of the store does not decode: %w", err)
	}
	var err error
	if p.Blocks, err = decodeBlocks(blocks, bare); err != nil {
		return nil, fmt.Errorf("the blocks of %s do not decode: %w", p.URL, err)
	}
	return p, nil
}

// revisionOf tells one state of a page from every other, its date included.
// It is about the identity, so that another base changes no revision.
func revisionOf(meta, blocks []byte, modified int64) []byte {
	h := sha256.New()
	var head [16]byte
	binary.BigEndian.PutUint64(head[:], uint64(modified))
	binary.BigEndian.PutUint64(head[8:], uint64(len(meta)))
	h.Write(head[:])
	h.Write(meta)
	h.Write(blocks)
	return h.Sum(nil)
}

// unix gives a time in seconds, 0 for none.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// instant is the inverse of unix.
func instant(sec int64) time.Time {
	if sec == 0 {
		return time.Time{}
	}
	return time.Unix(sec, 0).UTC()
}
