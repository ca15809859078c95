package edition

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	artifacts "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/testkit"
)

// lines is a document with a part for each line.
type lines map[string]string

func (l lines) parts() *millrace.Parts {
	return &millrace.Parts{
		Version: "1", Head: []byte("[\n"), Separator: []byte(",\n"), Tail: []byte("\n]\n"), Empty: []byte("[]\n"),
		After: func(_ context.Context, key string) iter.Seq2[millrace.Part, error] {
			return func(yield func(millrace.Part, error) bool) {
				for _, k := range slices.Sorted(maps.Keys(l)) {
					if k > key && !yield(millrace.Part{Key: k, Body: []byte(l[k])}, nil) {
						return
					}
				}
			}
		},
		Changed: func(url string) []string { return []string{url} },
	}
}

// edit changes some lines, and returns their keys.
func (l lines) edit(rng *rand.Rand) (changed []string) {
	keys := slices.Sorted(maps.Keys(l))
	for range 1 + rng.IntN(4) {
		key := fmt.Sprintf("/%04d/%d", rng.IntN(5000), rng.IntN(3))
		if len(keys) > 0 && rng.IntN(2) == 0 {
			key = keys[rng.IntN(len(keys))]
		}
		if rng.IntN(3) == 0 {
			delete(l, key)
		} else {
			l[key] = fmt.Sprintf("%s %s", key, strings.Repeat("water ", rng.IntN(200)))
		}
		changed = append(changed, key)
	}
	if rng.IntN(20) == 0 { // delete a folder
		from := rng.IntN(5000)
		for _, k := range keys {
			if k >= fmt.Sprintf("/%04d", from) && k < fmt.Sprintf("/%04d", from+rng.IntN(400)) {
				delete(l, k)
				changed = append(changed, k)
			}
		}
	}
	return append(changed, "/nothing") // a page without a part
}

// counting counts calls of Put.
type counting struct {
	artifact.Store
	puts int
}

func (c *counting) Put(ctx context.Context, name string, r io.Reader) error {
	c.puts++
	return c.Store.Put(ctx, name, r)
}

// A document that is built from an earlier one equals one that is built from scratch.
// Unchanged chunks are not written.
func TestChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	l := lines{}
	for i := range 4000 {
		l[fmt.Sprintf("/%04d/", i)] = strings.Repeat("gate ", rng.IntN(100))
	}
	s := &Server{artifacts: artifacts.New(nil), cache: newCache(1 << 20)}
	store := &counting{Store: s.artifacts}
	g := newGrower(t.Context(), store, new(encoders))
	now, err := g.cut(l.parts(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if store.puts < 20 || now.Tree.Height == 0 {
		t.Fatalf("%d chunks and nodes, height %d", store.puts, now.Tree.Height)
	}
	puts := store.puts
	if again, err := g.cut(l.parts(), nil, nil); err != nil || again.Tree != now.Tree || store.puts > puts {
		t.Errorf("another form of the same parts: %+v, %d more artifacts, %v", again.Tree, store.puts-puts, err)
	}
	written := 0
	rounds := testkit.Size(100, 200, 3000)
	for round := range rounds {
		changed := l.edit(rng)
		if round == rounds-1 {
			for k := range l {
				delete(l, k)
				changed = append(changed, k)
			}
		}
		store.puts = 0
		next, err := newGrower(t.Context(), store, new(encoders)).cut(l.parts(), now, changed)
		if err != nil {
			t.Fatal(err)
		}
		written += store.puts
		rebuilt, err := newGrower(t.Context(), s.artifacts, &s.enc).cut(l.parts(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if next.Tree != rebuilt.Tree || next.etag() != rebuilt.etag() {
			t.Fatalf("round %d: %+v, built from scratch %+v", round, next.Tree, rebuilt.Tree)
		}
		for _, pair := range [][2]*tree{{&next.Tree, &now.Tree}, {&now.Tree, &next.Tree}} {
			var want, got []string
			other := names(t, s.artifacts, pair[1])
			for _, name := range names(t, s.artifacts, pair[0]) {
				if !slices.Contains(other, name) {
					want = append(want, name)
				}
			}
			if err := pair[0].forEachNotIn(t.Context(), s.artifacts, pair[1], func(b *branch, height int) error {
				got = append(got, b.name(height))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("round %d: %d branches not in the other tree, want %d", round, len(got), len(want))
			}
		}
		now = next
		if round%10 == 0 || round == rounds-1 {
			checkBodies(t, s, l, now, rng)
		}
	}
	if mean := float64(written) / float64(rounds); mean > 20 {
		t.Errorf("%.1f chunks and nodes are written for an edit", mean)
	}
}

// names returns the names of the chunks and nodes of a tree, sorted.
func names(t *testing.T, store artifact.Store, of *tree) (out []string) {
	t.Helper()
	err := of.walk(t.Context(), store, func(b *branch, height int) error {
		out = append(out, b.name(height))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// checkBodies checks the bytes of a document, whole and in ranges.
func checkBodies(t *testing.T, s *Server, l lines, c *chunked, rng *rand.Rand) {
	t.Helper()
	var want bytes.Buffer
	if err := l.parts().Write(t.Context(), &want); err != nil {
		t.Fatal(err)
	}
	for _, coding := range []coding{identity, gzipCoding} {
		b, err := c.in(coding, s)
		if err != nil {
			t.Fatal(err)
		}
		var full bytes.Buffer
		if err := b.write(t.Context(), &full, 0, b.length()); err != nil {
			t.Fatal(err)
		}
		if int64(full.Len()) != b.length() {
			t.Fatalf("%d bytes, but size returned %d", full.Len(), b.length())
		}
		got := full.Bytes()
		if coding == gzipCoding {
			z, err := gzip.NewReader(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			z.Multistream(false) // one member
			if got, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%s: %d bytes, want %d", codingTable[coding].name, len(got), want.Len())
		}
		for range 5 {
			from := rng.Int64N(b.length())
			n := 1 + rng.Int64N(b.length()-from)
			var part bytes.Buffer
			if err := b.write(t.Context(), &part, from, n); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(part.Bytes(), full.Bytes()[from:from+n]) {
				t.Fatalf("%s: bytes %d to %d differ", codingTable[coding].name, from, from+n)
			}
		}
	}
}

func TestCombineCRC(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		a, b := make([]byte, rng.IntN(300)), make([]byte, rng.IntN(70_000))
		for _, s := range [][]byte{a, b} {
			for i := range s {
				s[i] = byte(rng.Uint32())
			}
		}
		got := combineCRC(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), int64(len(b)))
		if want := crc32.ChecksumIEEE(append(a, b...)); got != want {
			t.Fatalf("%d and %d bytes: %x, want %x", len(a), len(b), got, want)
		}
	}
}

// A damaged node is an error.
func FuzzNode(f *testing.F) {
	f.Add(encodeNode([]branch{{First: "/a", Last: "/b", Parts: 2, Size: 100, Coded: 40, CRC: 7}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		below, err := decodeNode(raw)
		if err == nil && len(below) == 0 {
			t.Error("a node without children")
		}
		if err == nil && len(encodeNode(below)) > len(raw) {
			t.Errorf("%d children are %d bytes of %d", len(below), len(encodeNode(below)), len(raw))
		}
	})
}

// opens counts the artifacts that are read.
type opens struct {
	artifact.Store
	n int
}

func (o *opens) Open(ctx context.Context, name string, from, n int64) (io.ReadCloser, error) {
	o.n++
	return o.Store.Open(ctx, name, from, n)
}

// A short document is read once in each coding, also for ranges. Another document does
// not use its bytes.
func TestShortDocumentsAreCached(t *testing.T) {
	store := &opens{Store: artifacts.New(nil)}
	s := &Server{artifacts: store, cache: newCache(1 << 20)}
	for _, l := range []lines{{"/a/": "one", "/b/": "two"}, {"/a/": "one", "/b/": "three"}} {
		c, err := newGrower(t.Context(), store, new(encoders)).cut(l.parts(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, coding := range []coding{identity, gzipCoding} {
			b, err := c.in(coding, s)
			if err != nil {
				t.Fatal(err)
			}
			var want bytes.Buffer
			if err := b.collect(t.Context(), &want, 0, b.length()); err != nil {
				t.Fatal(err)
			}
			store.n = 0
			for i := range int64(3) {
				var got bytes.Buffer
				if err := b.write(t.Context(), &got, i, b.length()-i); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()[i:]) {
					t.Errorf("%v: %q, want %q", err, got.Bytes(), want.Bytes()[i:])
				}
			}
			if store.n != 1 {
				t.Errorf("%d artifacts were opened", store.n)
			}
		}
	}
}

// name returns the name of the artifact of a branch at a height.
func (b *branch) name(height int) string {
	if height == 0 {
		return b.chunk()
	}
	return b.node()
}
