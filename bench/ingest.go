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

	"github.com/millrace/millrace/internal/index"
	stores "github.com/millrace/millrace/store/all"
	"golang.org/x/net/html"
)

// ingest compares what serve takes to publish the PostgreSQL manual with reading
// and parsing its files.
func (b *bench) ingest(ctx context.Context) error {
	manual, err := filepath.EvalSymlinks(b.manual)
	if err != nil {
		return fmt.Errorf("install Debian's postgresql-doc-15, or name its folder with -manual: %w", err)
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
	serve := func(again bool, args ...string) side {
		return func(ctx context.Context) (work, error) {
			if !again {
				n++
			}
			args := append([]string{"--store", filepath.Join(b.dir, fmt.Sprintf("ingest-%d.db", n))}, args...)
			s, err := b.startServer(ctx, manual, args...)
			if err != nil {
				return work{}, err
			}
			defer s.stop()
			if again { // it is ready at once, and looks at the folder then
				s.spent, err = quiet(ctx, s.pid)
			}
			return work{float64(len(files)), s.ready, s.spent}, err
		}
	}
	parse := func(context.Context) (work, error) {
		runtime.GC()
		return during(float64(len(files)), func() error { return parse(files) })
	}
	what := fmt.Sprintf("ingest of postgresql-doc-15 by serve until its first edition, %d pages", len(files))
	for _, l := range []struct {
		how   string
		args  []string
		reach float64
	}{{", --no-learn", []string{"--no-learn"}, 0.4}, {"", nil, 0}} {
		found, err := duel(ctx, ingests, parse, serve(false, l.args...))
		if err != nil {
			return err
		}
		b.add(found.row(what+l.how, "pages", "read and html.Parse alone", l.reach))
	}
	found, err := duel(ctx, ingests, serve(false), serve(true))
	if err != nil {
		return err
	}
	b.add(found.row("the same, started once more with nothing changed, until it is idle", "pages", "its first ingest", 0))
	return b.indexing(ctx, manual)
}

// ingests is how many turns each side has.
const ingests = 3

// indexing measures what serve does once the first edition is published: the
// index, the vectors, and what documents have to be made of. The vectors are
// fitted once more in this process, since no server goes without them.
func (b *bench) indexing(ctx context.Context, manual string) error {
	file := filepath.Join(b.dir, "indexed.db")
	s, err := b.startServer(ctx, manual, "--store", file)
	if err != nil {
		return err
	}
	end, err := quiet(ctx, s.pid)
	most, peak := statusMB(s.pid, "VmHWM:")
	s.stop()
	if err := errors.Join(err, peak); err != nil {
		return err
	}
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	var name string
	for site, err := range st.Sites(ctx) {
		if err != nil {
			return err
		}
		name = site
	}
	site, err := st.Site(ctx, name, "")
	if err != nil {
		return err
	}
	head, err := site.Head(ctx)
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
		what: "most resident memory of all of it", limit: "150 MB", ours: fmt.Sprintf("%.0f MB", most), ratio: fmt.Sprintf("%.2f", most/150),
		reach: "at most 1", good: most <= 150,
	})
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
