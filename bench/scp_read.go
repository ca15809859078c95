package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/protocol/scp"
)

// referenceRate is the speed of the reference parser of SCP with all of its validation
// removed, in bytes a second.
const referenceRate = 120e6

// scpRead compares reading a file of n bytes, in a separate process, with decompression and
// SHA-256 alone, and with the reference parser.
func (b *bench) scpRead(ctx context.Context, words, file string, n int) error {
	p, err := scpChild(ctx, scpTask{Words: words, Pages: scpPages, File: file, Bytes: n, Turns: b.turns})
	if err != nil {
		return err
	}
	for i, what := range []string{"read, verify and validate it in one pass, as scp verify does", "the same, with a second pass for its pages, as pull does"} {
		b.add(p.Rates[i].row(what, "MB", "decompression and SHA-256 alone", 0.3))
		ours := 1e6 / p.Rates[i].Ours.Each
		b.add(row{
			what: what, limit: "120 MB/s (reference parser without validation)", ours: fmt.Sprintf("%.0f MB/s of processor time", ours/1e6),
			ratio: fmt.Sprintf("%.2f", ours/referenceRate), reach: "above 2", good: ours > 2*referenceRate,
		})
	}
	return nil
}

// rates compares verifyAll and readAll with decompression and SHA-256 alone.
func (t *scpTask) rates() (p scpPeak, err error) {
	ctx := context.Background()
	f, err := os.Open(t.File)
	if err != nil {
		return p, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p, err
	}
	alone := handles(t.Bytes, func() error {
		d, err := zstd.NewReader(io.NewSectionReader(f, 0, info.Size()), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		defer d.Close()
		_, err = io.Copy(sha256.New(), d)
		return err
	})
	for i, read := range []func(context.Context, io.ReaderAt, int64, int) error{verifyAll, readAll} {
		ours := handles(t.Bytes, func() error { return read(ctx, f, info.Size(), t.Pages) })
		if p.Rates[i], err = duel(ctx, t.Turns, alone, ours); err != nil {
			return p, err
		}
	}
	return p, nil
}

var errPages = errors.New("not all pages were read")

// verifyAll reads a file once and checks everything.
func verifyAll(ctx context.Context, r io.ReaderAt, size int64, pages int) error {
	c, err := scp.Open(r, size, nil)
	if err != nil {
		return err
	}
	v, err := c.Verify(ctx)
	if err == nil && (v.Pages != pages || v.Checksum != "cut") {
		err = fmt.Errorf("%w: %+v", errPages, v)
	}
	return err
}

// readAll reads a file like a pull: it verifies the whole file before it reads the first page.
func readAll(ctx context.Context, r io.ReaderAt, size int64, pages int) error {
	plain, err := os.CreateTemp("", "millrace-*.scp")
	if err != nil {
		return err
	}
	defer func() {
		_ = plain.Close()
		_ = os.Remove(plain.Name())
	}()
	c, err := scp.Open(r, size, &scp.OpenOptions{Scratch: plain})
	if err != nil {
		return err
	}
	if _, err := c.Verify(ctx); err != nil {
		return err
	}
	n := 0
	for _, err := range c.Pages(ctx) {
		if err != nil {
			return err
		}
		n++
	}
	if n != pages {
		return fmt.Errorf("%w: %d of %d pages", errPages, n, pages)
	}
	return nil
}
