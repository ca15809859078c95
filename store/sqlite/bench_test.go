package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
)

const benchBase = "https://example.com/"

// hashTagger returns a tagger with the minimum cost of a protocol: it hashes the text of the page.
func hashTagger() millrace.Tagger {
	return millrace.Tagger{Protocol: "hash-01", Tag: func(_ millrace.Site, p *millrace.Page) (string, error) {
		h := sha256.New()
		h.Write([]byte(p.URL + p.Title))
		for _, b := range p.Blocks {
			h.Write([]byte(b.Text))
		}
		return "sha256-" + hex.EncodeToString(h.Sum(nil)), nil
	}}
}

// prose returns a page with about size bytes of text, including links.
func prose(rng *rand.Rand, path string, size int) *millrace.Page {
	p := &millrace.Page{
		URL: benchBase + path, Title: "Page " + path, Description: "What " + path + " is about", Language: "en", Section: "docs",
		Detail: millrace.DetailBlocks, Version: fmt.Sprintf("%x-%x", rng.Uint64(), size),
		Known: millrace.FieldTitle | millrace.FieldDescription | millrace.FieldLanguage | millrace.FieldSection | millrace.FieldContent | millrace.FieldAccess,
	}
	for n := 0; n < size; {
		var b strings.Builder
		for b.Len() < 350 {
			for range 2 + rng.IntN(9) {
				b.WriteByte("etaoinshrdlucmfwyp"[rng.IntN(18)])
			}
			b.WriteByte(' ')
		}
		block := millrace.Block{Type: millrace.TextBlock, Text: b.String()}
		for i := range 2 {
			block.Spans = append(block.Spans, millrace.Span{Type: millrace.LinkSpan, Start: 30 * i, End: 30*i + 8, URL: benchBase + "docs/" + path})
		}
		n += b.Len()
		p.Blocks = append(p.Blocks, block)
	}
	return p
}

// openSite is an open site with its store.
type openSite struct {
	store.Site
	store *Store
}

func benchSite(b testing.TB, path string) openSite {
	b.Helper()
	s, err := Open(context.Background(), path, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	site, err := s.Site(context.Background(), "bench", benchBase)
	if err != nil {
		b.Fatal(err)
	}
	return openSite{site, s}
}

// benchConfig is the configuration of the publications in the benchmarks.
var benchConfig = store.Config{Base: benchBase, Taggers: []millrace.Tagger{hashTagger()}}

func benchPublication(b testing.TB, site store.Site) store.Publication {
	b.Helper()
	p, err := site.Publication(b.Context(), benchConfig)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// refreshed refreshes a publication and returns its head.
func refreshed(b testing.TB, p store.Publication) millrace.View {
	b.Helper()
	if _, err := p.Refresh(b.Context(), store.Lease{}, 0, nil); err != nil {
		b.Fatal(err)
	}
	v, err := p.Head(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// BenchmarkApply applies batches of 200 pages; ns/op is per page.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1000, 4000, 10000} {
		for _, kind := range []string{"new", "unchanged", "edited"} {
			b.Run(fmt.Sprintf("%s-%d", kind, size), func(b *testing.B) {
				site := benchSite(b, filepath.Join(b.TempDir(), "bench.db"))
				rng := rand.New(rand.NewPCG(1, 2))
				var batches [][]millrace.Change
				for i := range 50 {
					var batch []millrace.Change
					for j := range 200 {
						p := prose(rng, fmt.Sprintf("docs/%03d/page-%03d.html", i, j), size)
						batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL, Version: p.Version}, Page: p})
					}
					batches = append(batches, batch)
				}
				if kind != "new" {
					for _, batch := range batches {
						if _, err := site.Apply(b.Context(), "bench", batch); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ResetTimer()
				n := 0
				for round := 0; n < b.N; round++ {
					batch := batches[round%len(batches)]
					b.StopTimer()
					for i := range batch {
						p := batch[i].Page.Clone()
						switch {
						case kind == "new" && round >= len(batches):
							p.URL += fmt.Sprint("?", round)
							batch[i].URL = p.URL
						case kind == "edited":
							p.Blocks[0].Text += fmt.Sprint(" ", round)
						}
						batch[i].Page = p
					}
					b.StartTimer()
					if _, err := site.Apply(b.Context(), "bench", batch); err != nil {
						b.Fatal(err)
					}
					n += len(batch)
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "pages/s")
			})
		}
	}
}

// BenchmarkLarge creates a store of a million pages and measures operations on it.
func BenchmarkLarge(b *testing.B) {
	testkit.Soak(b)
	const total = 1_000_000
	path := func(i int) string { return fmt.Sprintf("docs/%03d/page-%06d.html", i%997, i) }
	file := filepath.Join(b.TempDir(), "large.db")
	site := benchSite(b, file)
	ctx := b.Context()
	pub := benchPublication(b, site)
	v := refreshed(b, pub)
	if have := v.Site().Pages; have < total {
		start := time.Now()
		rng := rand.New(rand.NewPCG(3, 4))
		for i := have; i < total; {
			var batch []millrace.Change
			for ; len(batch) < 500 && i < total; i++ {
				p := prose(rng, path(i), 700)
				batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL, Version: p.Version}, Page: p})
			}
			if _, err := site.Apply(ctx, "bench", batch); err != nil {
				b.Fatal(err)
			}
		}
		b.Logf("made %d pages in %v", total-have, time.Since(start))
		v = refreshed(b, pub)
		if _, err := pub.Publish(ctx, store.Lease{}, 0, v.Site().Seq, []byte("m")); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("OpenPublished", func(b *testing.B) {
		for b.Loop() {
			site := benchSite(b, file)
			if _, _, err := benchPublication(b, site).Published(ctx); err != nil {
				b.Fatal(err)
			}
			site.store.Close()
		}
	})
	b.Run("Head", func(b *testing.B) {
		for b.Loop() {
			if _, err := site.Head(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	rng := rand.New(rand.NewPCG(5, 6))
	look := func(b *testing.B, n int) {
		for b.Loop() {
			if _, err := v.Tag(ctx, "hash-01", benchBase+path(rng.IntN(n))); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("TagRandom", func(b *testing.B) { look(b, total) })
	b.Run("TagWarm", func(b *testing.B) { look(b, 1000) })
	b.Run("TagParallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			rng := rand.New(rand.NewPCG(rand.Uint64(), 6))
			for pb.Next() {
				if _, err := v.Tag(ctx, "hash-01", benchBase+path(rng.IntN(total))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	b.Run("PageRandom", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Page(ctx, millrace.Ref{URL: benchBase + path(rng.IntN(total))}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("TagsAll", func(b *testing.B) {
		var peak uint64
		for b.Loop() {
			n := 0
			for _, err := range v.Tags(ctx, "hash-01", "") {
				if err != nil {
					b.Fatal(err)
				}
				if n++; n%100_000 == 0 {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapAlloc)
				}
			}
			if n != total {
				b.Fatalf("%d tags", n)
			}
		}
		b.ReportMetric(float64(peak)/1e6, "heap-MB")
	})
	for name, s := range map[string]millrace.Scan{
		"ScanByURL": {}, "ScanByPublished": {Order: millrace.ByPublished}, "ScanBySeq": {Order: millrace.BySeq}, "ScanSection": {Section: "none"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, err := range v.Scan(ctx, s) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkRecord records requests of one bot for 10,000 pages, in batches like those of a
// server under load. ns/op is per event, including its share of the sums and of the writes to
// disk.
func BenchmarkRecord(b *testing.B) {
	ctx, now := b.Context(), time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)
	s := usageStore(b, filepath.Join(b.TempDir(), "x.db"), &store.Options{Now: func() time.Time { return now }})
	rng := rand.New(rand.NewPCG(1, 2))
	events := make([]store.Event, 4096)
	b.ReportAllocs()
	for done := 0; done < b.N; done += len(events) {
		b.StopTimer()
		for i := range events {
			now = now.Add(25 * time.Microsecond)
			page := rng.IntN(10_000)
			events[i] = store.Event{
				Time: now, Bot: "GPTBot", Family: "openai", Protocol: "tct-01", Endpoint: store.EndpointFetch,
				Path: fmt.Sprintf("http://bench.example/p/%d/", page), Results: 1, Status: 304, Cached: true,
				HTML: int64(20_000 + page), Received: int64(6000 + page), Took: time.Duration(10+rng.IntN(100)) * time.Microsecond,
			}
		}
		b.StartTimer()
		if err := s.Record(ctx, "main", events); err != nil {
			b.Fatal(err)
		}
	}
}
