package scp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
)

// prose returns n pages of about 3.8 kB, the size of a page of a manual.
func prose(n int) []*page {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4000)
	for i := range words {
		var b strings.Builder
		for range 2 + r.IntN(9) {
			b.WriteByte("etaoinshrdlucmfwypvbgkjqxz"[min(r.IntN(26), r.IntN(26))])
		}
		words[i] = b.String()
	}
	words[7], words[70] = "déjà", "“quoted”"
	sentence := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(words[min(r.IntN(len(words)), r.IntN(len(words)), r.IntN(len(words)))])
		}
		return b.String() + "."
	}
	site := millrace.Site{Base: "https://example.com/"}
	out := make([]*page, n)
	for i := range out {
		p := &millrace.Page{
			URL: fmt.Sprintf("/docs/%d/%s", i, sentence(1)), Title: sentence(5), Description: sentence(14), Language: "en",
			Modified: time.Unix(int64(1_700_000_000+i), 0),
		}
		for j := range 5 {
			p.Blocks = append(p.Blocks,
				millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: sentence(4)},
				millrace.Block{Type: millrace.TextBlock, Text: sentence(70)})
			if j%2 == 1 {
				p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.ListBlock, Items: []millrace.Item{
					{Text: sentence(6)}, {Text: sentence(9)}, {Text: sentence(5)},
				}})
			}
		}
		p.Blocks = append(p.Blocks, millrace.Block{
			Type: millrace.CodeBlock, Language: "go", Text: "if err != nil {\n\treturn \"" + words[i%4000] + "\"\n}\n" + strings.Repeat(sentence(3)+"\n\t", 6),
		})
		out[i] = pageOf(site, p)
	}
	return out
}

// snapshot returns a file with these pages.
func snapshot(pages []*page) []byte {
	m := Metadata{ID: "a", Section: "all", Type: "snapshot", Generated: time.Unix(1_800_000_000, 0), Version: version}
	b, digits := m.line(false)
	sum := sha256.New()
	sum.Write(cutChecksum(b))
	n := len(b)
	for _, w := range pages {
		b = appendPage(b, w)
	}
	sum.Write(b[n:])
	hex.Encode(b[digits:], sum.Sum(nil))
	return b
}

func packed(b []byte) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	return e.EncodeAll(b, nil)
}

func BenchmarkRead(b *testing.B) {
	plain := snapshot(prose(20_000))
	coded := packed(plain)
	b.Logf("%d bytes a line, %d bytes, %d coded", len(plain)/20_000, len(plain), len(coded))
	b.Run("limit", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			d, err := zstd.NewReader(bytes.NewReader(coded), zstd.WithDecoderConcurrency(1))
			if err != nil {
				b.Fatal(err)
			}
			h := sha256.New()
			if _, err := io.Copy(h, d); err != nil {
				b.Fatal(err)
			}
			d.Close()
		}
	})
	open := func(b *testing.B) *Collection {
		b.SetBytes(int64(len(plain)))
		b.ReportAllocs()
		c, err := Open(bytes.NewReader(coded), int64(len(coded)), nil)
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	verify := func(b *testing.B, c *Collection) {
		if v, err := c.Verify(b.Context()); err != nil || v.Checksum != "cut" || v.Pages != 20_000 {
			b.Fatal(v, err)
		}
	}
	walk := func(b *testing.B, c *Collection) {
		for _, err := range c.Pages(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("verify", func(b *testing.B) {
		c := open(b)
		for b.Loop() {
			verify(b, c)
		}
	})
	b.Run("pages", func(b *testing.B) {
		c := open(b)
		for b.Loop() {
			walk(b, c)
		}
	})
	b.Run("both", func(b *testing.B) {
		c := open(b)
		for b.Loop() {
			verify(b, c)
			walk(b, c)
		}
	})
	b.Run("both, decoded once", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		f, err := os.Create(filepath.Join(b.TempDir(), "plain"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for b.Loop() {
			c, err := Open(bytes.NewReader(coded), int64(len(coded)), &OpenOptions{Scratch: f})
			if err != nil {
				b.Fatal(err)
			}
			verify(b, c)
			walk(b, c)
		}
	})
	b.Run("parse", func(b *testing.B) { // parsing only
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			p := parser{limits: new(OpenOptions).resolve()}
			for i, line := range bytes.Split(plain, []byte("\n")) {
				if i > 0 && len(line) > 0 && (!p.parsePage(line) || p.skip.reason != "") {
					b.Fatal(p.fatal, p.skip)
				}
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	pages := prose(2000)
	n := len(snapshot(pages))
	b.SetBytes(int64(n))
	b.ReportAllocs()
	buf := make([]byte, 0, 1<<16)
	for b.Loop() {
		for _, w := range pages {
			buf = appendPage(buf[:0], w)
		}
	}
}
