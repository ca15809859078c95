package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
	"golang.org/x/net/html"
)

// ingest compares the time that serve needs to publish the PostgreSQL manual with the time to read
// and parse its files.
func (b *bench) ingest(ctx context.Context) error {
	manual, err := filepath.EvalSymlinks(b.manual)
	if err != nil {
		return fmt.Errorf("%w; install Debian's postgresql-doc-15, or give its folder with -manual", err)
	}
	var files []string
	err = filepath.WalkDir(manual, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".html") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	n := 0
	serve := func(ctx context.Context) (work, error) {
		n++
		s, err := b.startServer(ctx, manual, "--store", filepath.Join(b.dir, fmt.Sprintf("ingest-%d.db", n)))
		if err != nil {
			return work{}, err
		}
		s.stop()
		return work{float64(len(files)), s.ready, s.spent}, nil
	}
	parse := func(context.Context) (work, error) {
		runtime.GC()
		return during(float64(len(files)), func() error { return parse(files) })
	}
	what := fmt.Sprintf("ingest of postgresql-doc-15 by serve until its first edition, %d pages", len(files))
	found, err := duel(ctx, ingests, parse, serve)
	if err != nil {
		return err
	}
	b.add(found.row(what, "pages", "read and html.Parse alone", 0.4))
	return b.indexing(ctx, manual)
}

// ingests is the number of turns of each side in the comparison.
const ingests = 3

// indexing measures the work of serve after the first edition is published: the index, the vectors
// and deferred documents. Then it measures a restart without changes. It also fits the vectors in
// this process, to measure that work separately.
func (b *bench) indexing(ctx context.Context, manual string) error {
	file := filepath.Join(b.dir, "indexed.db")
	idle := func() (s *server, end time.Duration, peak float64, err error) {
		if s, err = b.startServer(ctx, manual, "--store", file); err != nil {
			return nil, 0, 0, err
		}
		defer s.stop()
		if end, err = quiet(ctx, s.pid); err == nil {
			peak, err = statusMB(s.pid, "VmHWM:")
		}
		return s, end, peak, err
	}
	s, end, peak, err := idle()
	if err != nil {
		return err
	}
	if err := b.storeSize(ctx, file); err != nil {
		return err
	}
	_, again, _, err := idle()
	if err != nil {
		return err
	}
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	head, err := onlySite(ctx, st)
	if err != nil {
		return err
	}
	x, err := index.Open(ctx, index.File(file, "again"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	if err := x.Update(ctx, head, nil); err != nil {
		return err
	}
	fit, err := during(1, func() error { return x.Fit(ctx, nil) })
	if err != nil {
		return err
	}
	b.add(row{what: "the same, from the first edition until it is idle: index, vectors, deferred documents", ours: short(end-s.spent).String() + " of processor time"})
	b.add(row{what: "of that, fitting vectors", ours: short(fit.spent).String() + " of processor time"})
	b.add(row{
		what:  "the same, restarted without changes, until it is idle",
		limit: short(s.spent).String() + " of processor time (first edition)", ours: short(again).String(), ratio: fmt.Sprintf("%.2f", again.Seconds()/s.spent.Seconds()),
	})
	b.add(row{
		what: "peak resident memory of the first start, until it is idle", limit: "150 MB", ours: fmt.Sprintf("%.0f MB", peak), ratio: fmt.Sprintf("%.2f", peak/150),
		reach: "at most 1", good: peak <= 150,
	})
	return nil
}

// onlySite returns a view of the site of a store that has one site.
func onlySite(ctx context.Context, st store.Store) (millrace.View, error) {
	for name, err := range st.Sites(ctx) {
		if err != nil {
			return nil, err
		}
		site, err := st.Site(ctx, name, "")
		if err != nil {
			return nil, err
		}
		return site.Head(ctx)
	}
	return nil, errors.New("the store has no site")
}

// storeSize compares the size of a store's files with the size of its pages, each compressed by
// itself. No other process may have the store open.
func (b *bench) storeSize(ctx context.Context, file string) error {
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	head, err := onlySite(ctx, st)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	var separately int64
	pages := 0
	for p, err := range head.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return errors.Join(err, st.Close())
		}
		coded, err := compressed(p.Canonical())
		if err != nil {
			return errors.Join(err, st.Close())
		}
		separately += int64(len(coded))
		pages++
	}
	if err := st.Close(); err != nil { // Close checkpoints the store's log
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	index, err := folderSize(file + ".index")
	if err != nil {
		return err
	}
	artifacts, err := folderSize(file + "-files")
	if err != nil {
		return err
	}
	for _, r := range []struct {
		what  string
		size  int64
		reach float64
	}{
		{"store with its index", info.Size() + index, 3},
		{"store with its index and artifacts", info.Size() + index + artifacts, 5},
	} {
		ratio := float64(r.size) / float64(separately)
		b.add(row{
			what: fmt.Sprintf("size of the %s, %d pages", r.what, pages), limit: megabytes(separately) + " (each page by itself, brotli)",
			ours: megabytes(r.size), ratio: fmt.Sprintf("%.1f", ratio), reach: fmt.Sprintf("at most %.0f", r.reach), good: ratio <= r.reach,
		})
	}
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// parse reads and parses every file, on all cores.
func parse(files []string) error {
	jobs := make(chan string)
	var wg sync.WaitGroup
	errs := make([]error, runtime.NumCPU())
	for i := range errs {
		wg.Go(func() {
			for name := range jobs {
				f, err := os.Open(name)
				if err == nil {
					_, err = html.ParseWithOptions(f, html.ParseOptionEnableScripting(false))
					_ = f.Close()
				}
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	for _, name := range files {
		jobs <- name
	}
	close(jobs)
	wg.Wait()
	return errors.Join(errs...)
}
