package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/protocol/scp"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

const scpPages = 20_000

// scp measures writing and reading collections of SCP. Rates are by processor time on one core,
// including the share of the garbage collector.
func (b *bench) scp(ctx context.Context, large bool) error {
	words := filepath.Join(b.dir, "manual.json")
	if err := readManual(ctx, b.manual, words); err != nil {
		return err
	}
	a, err := newAuthor(words)
	if err != nil {
		return err
	}
	if err := b.scpRates(ctx, words, a); err != nil {
		return err
	}
	sizes := []int{2_000, scpPages}
	if large {
		sizes = append(sizes, 1_000_000)
	}
	if err := b.scpMemory(ctx, words, sizes); err != nil {
		return err
	}
	return b.scpDeltas(ctx, a, 100_000)
}

func (b *bench) scpRates(ctx context.Context, words string, a *author) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// The pages of this part need more memory than the limit of the whole bench.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	dir, err := os.MkdirTemp(b.dir, "scp-")
	if err != nil {
		return err
	}
	pages := make([]*millrace.Page, scpPages)
	for i := range pages {
		pages[i] = a.page(i, 0)
	}
	memory := &pagesView{n: len(pages), page: func(i int) *millrace.Page { return pages[i] }}
	file, err := snapshot(ctx, memory, dir)
	if err != nil {
		return err
	}
	coded, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	plain, err := decompress(coded)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("snapshot of %d pages of %d bytes, zstd, from memory", scpPages, len(plain)/scpPages)
	if err := b.scpWrite(ctx, memory, dir, plain, what, 0.7); err != nil {
		return err
	}
	if err := b.scpSize(ctx, plain, len(coded)); err != nil {
		return err
	}
	pages = nil
	if err := b.scpRead(ctx, words, file, len(plain)); err != nil {
		return err
	}
	from, stop, err := scpStore(ctx, filepath.Join(b.dir, "scp-rates.db"), a, scpPages, nil)
	if err != nil {
		return err
	}
	defer stop()
	stored, err := from.Publication.Head(ctx)
	if err != nil {
		return err
	}
	return b.scpWrite(ctx, stored, dir, plain, "the same from the store", 0)
}

// handles returns a side that processes n bytes in each turn. Its unit of work is a megabyte.
func handles(n int, do func() error) side {
	return func(context.Context) (work, error) {
		runtime.GC() // collect the garbage of the previous turn
		return during(float64(n)/1e6, do)
	}
}

// scpWrite compares writing a snapshot with the compressor alone. If reach is 0, there is no target.
func (b *bench) scpWrite(ctx context.Context, v millrace.View, dir string, plain []byte, what string, reach float64) error {
	found, err := duel(ctx, b.turns,
		handles(len(plain), func() error { return compress(plain) }),
		handles(len(plain), func() error {
			_, err := snapshot(ctx, v, dir)
			return err
		}))
	if err != nil {
		return err
	}
	b.add(found.row(what, "MB", "the compressor alone", reach))
	return nil
}

func decompress(coded []byte) ([]byte, error) {
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(coded, nil)
}

// compress compresses the collection. Its cost is a lower bound for the cost of writing the collection.
func compress(plain []byte) error {
	enc, err := newEncoder(io.Discard)
	if err != nil {
		return err
	}
	if _, err := io.Copy(struct{ io.Writer }{enc}, bytes.NewReader(plain)); err != nil {
		return err
	}
	return enc.Close()
}

// scpSize compares the size of the snapshot with the size of the zstd command's output.
func (b *bench) scpSize(ctx context.Context, plain []byte, ours int) error {
	c := exec.CommandContext(ctx, "zstd", "-6", "-q", "-c")
	c.Stdin = bytes.NewReader(plain)
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("zstd -6 (Debian's zstd): %w", err)
	}
	ratio := float64(ours) / float64(len(out))
	b.add(row{
		what: fmt.Sprintf("size of that snapshot, %d bytes uncompressed", len(plain)), limit: fmt.Sprintf("%d bytes (zstd -6)", len(out)),
		ours: fmt.Sprintf("%d bytes", ours), ratio: fmt.Sprintf("%.3f", ratio), reach: "at most 1.03", good: ratio <= 1.03,
	})
	return nil
}

// scpStore opens or creates a store, writes n pages to it, and publishes the site.
func scpStore(ctx context.Context, file string, a *author, n int, o *store.Options) (from edition.Source, stop func(), err error) {
	st, err := stores.Open(ctx, file, o)
	if err != nil {
		return from, nil, err
	}
	stop = func() { _ = st.Close() }
	defer func() {
		if err != nil {
			stop()
		}
	}()
	from.Store = st
	if from.Site, err = st.Site(ctx, scpSite, scpSite); err != nil {
		return from, nil, err
	}
	if err := put(ctx, from.Site, a, n, 0); err != nil {
		return from, nil, err
	}
	from.Publication, err = from.Site.Publication(ctx, store.Config{Base: scpSite, Taggers: []millrace.Tagger{scp.Protocol().Tagger}})
	if err == nil {
		_, err = from.Publication.Refresh(ctx, store.Lease{}, 0, nil)
	}
	return from, stop, err
}

// put writes the first n pages, with the content of the given edition.
func put(ctx context.Context, site store.Site, a *author, n, edition int) error {
	var batch []millrace.Change
	for i := range n {
		p := a.page(i, edition)
		batch = append(batch, millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL}, Page: p})
		if len(batch) == 500 || i == n-1 {
			if _, err := site.Apply(ctx, "bench", batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}
