package scp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

const vector = `{"collection":{"id":"id-1","section":"blog","type":"snapshot","generated":"2026-11-21T08:54:18.581313Z","version":"0.1","checksum":"sha256:be42285adede447d7486bd0ad029c2a4634ca5f129f74f422ac11165b21cd15c"}}
{"url":"https://example.com/","title":"T","description":"D","modified":"2025-01-15T10:00:00Z","language":"en","content":[{"type":"text","text":"x"}]}`

func TestVector(t *testing.T) {
	c, err := Open(bytes.NewReader([]byte(vector)), int64(len(vector)), nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.Verify(t.Context())
	if err != nil || v != (CheckResult{Checksum: "cut", Pages: 1, Bytes: int64(len(vector))}) {
		t.Errorf("%+v, %v", v, err)
	}
	m := Metadata{ID: "id-1", Section: "blog", Type: "snapshot", Generated: time.Date(2026, 11, 21, 8, 54, 18, 581313000, time.UTC), Version: "0.1"}
	line, digits := m.line(false)
	h := sha256.New()
	h.Write(cutChecksum(line))
	var w *page
	p := parser{limits: new(OpenOptions).resolve(), keep: true}
	if !p.parsePage([]byte(vector[bytes.IndexByte([]byte(vector), '\n')+1:])) {
		t.Fatal(p.fatal)
	}
	w = &p.page
	pl := appendPage(nil, w)
	h.Write(pl[:len(pl)-1])
	hex.Encode(line[digits:], h.Sum(nil))
	if got := string(line) + string(pl[:len(pl)-1]); got != vector {
		t.Errorf("%s", got)
	}
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}
