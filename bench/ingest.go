package main

import (
	"context"
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
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
	"golang.org/x/net/html"
)

// ingest compares taking in the PostgreSQL manual with reading and parsing it.
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
	var again []float64
	n := 0
	ours := func() (float64, error) {
		n++
		first, second, err := take(ctx, manual, filepath.Join(b.dir, fmt.Sprintf("ingest-%d.db", n)))
		again = append(again, second)
		return first, err
	}
	peer, first, err := alternate(func() (float64, error) { return parse(files) }, ours)
	if err != nil {
		return err
	}
	b.add(row{
		what:  fmt.Sprintf("ingest of postgresql-doc-15, %d pages, no search index", len(files)),
		limit: fmt.Sprintf("%.0f pages/s (read and parse alone)", peer), ours: fmt.Sprintf("%.0f pages/s", first),
		ratio: fmt.Sprintf("%.2f", first/peer), reach: "0.4", good: first/peer >= 0.4,
	})
	second := median(again)
	b.add(row{
		what:  "the same with nothing changed",
		limit: fmt.Sprintf("%.0f pages/s (its first ingest)", first), ours: fmt.Sprintf("%.0f pages/s", second),
		ratio: fmt.Sprintf("%.0f", second/first), reach: "20", good: second/first >= 20,
	})
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// parse reads and parses every file, on all cores, and gives pages per second.
func parse(files []string) (float64, error) {
	runtime.GC()
	start := time.Now()
	jobs := make(chan string)
	var wg sync.WaitGroup
	errs := make(chan error, runtime.NumCPU())
	for range runtime.NumCPU() {
		wg.Go(func() {
			var failed error
			for name := range jobs {
				f, err := os.Open(name)
				if err == nil {
					_, err = html.ParseWithOptions(f, html.ParseOptionEnableScripting(false))
					_ = f.Close()
				}
				if err != nil {
					failed = err
				}
			}
			errs <- failed
		})
	}
	for _, name := range files {
		jobs <- name
	}
	close(jobs)
	wg.Wait()
	took := time.Since(start)
	for range runtime.NumCPU() {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	return float64(len(files)) / took.Seconds(), nil
}

// take ingests a folder into a new store with one publication, twice, and
// returns the pages per second of both.
func take(ctx context.Context, dir, file string) (first, second float64, err error) {
	runtime.GC()
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, "folder "+dir, benchSite)
	if err != nil {
		return 0, 0, err
	}
	conf := store.Config{Base: benchSite}
	for _, room := range all.Protocols() {
		conf.Taggers = append(conf.Taggers, room.Tagger)
	}
	pub, err := site.Publication(ctx, conf)
	if err != nil {
		return 0, 0, err
	}
	src, err := folder.New(dir, &folder.Options{Base: benchSite})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = src.Close() }()
	look := func() (float64, millrace.Tally, error) {
		start := time.Now()
		r, err := mirror.Sync(ctx, "folder", src, site, nil)
		if err == nil {
			err = pub.Refresh(ctx, store.Lease{}, nil)
		}
		t := r.Tally
		return float64(t.Added+t.Updated+t.Unchanged) / time.Since(start).Seconds(), t, err
	}
	first, tally, err := look()
	if err != nil {
		return 0, 0, err
	}
	if tally.Added == 0 {
		return 0, 0, fmt.Errorf("nothing was added: %+v", tally)
	}
	second, tally, err = look()
	if err == nil && tally.Added+tally.Updated > 0 {
		err = fmt.Errorf("the second look changed something: %+v", tally)
	}
	return first, second, err
}
