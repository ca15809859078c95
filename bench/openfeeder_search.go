package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/bench/feeder"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
	stores "github.com/millrace/millrace/store/all"
)

// feederSearch compares responses to ?q= with the search call that each of them makes, by the
// processor time of a server with one core.
func (b *bench) feederSearch(ctx context.Context) error {
	file, questions := filepath.Join(b.dir, "openfeeder-search.db"), filepath.Join(b.dir, "questions")
	pages, err := feederManuals(ctx, file, questions)
	if err != nil {
		return err
	}
	s, err := b.startFeeder(ctx, feeder.Task{File: file, Base: searchBase, Index: true, Cores: 1})
	if err != nil {
		return err
	}
	defer s.stop()
	asked, err := os.ReadFile(questions)
	if err != nil {
		return err
	}
	var targets []target
	for q := range strings.Lines(string(asked)) {
		targets = append(targets, target{"/openfeeder?q=" + url.QueryEscape(strings.TrimSpace(q)), ""})
	}
	script, err := b.random("openfeeder-q", targets, nil)
	if err != nil {
		return err
	}
	alone := s.doing(func() (n float64, err error) { return n, s.do("search "+questions, &n) })
	served := requests{script: script, status: http.StatusOK, connections: 2, fresh: true}.of(s.server)
	if _, err := duel(ctx, 2, served, served); err != nil { // warm up the server's caches for both sides
		return err
	}
	found, err := duel(ctx, b.turns, alone, served)
	if err != nil {
		return err
	}
	b.add(found.row(fmt.Sprintf("OpenFeeder ?q=, %d uncached questions, %d pages of manuals, wrk -t1 -c2", len(targets), pages),
		"requests", "the search call alone", 0.8))
	return nil
}

// feederManuals ingests manuals into a new store until there are enough pages, and writes some of
// their headings to another file, one per line.
func feederManuals(ctx context.Context, file, questions string) (pages int, err error) {
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	site, err := st.Site(ctx, searchBase, searchBase)
	if err != nil {
		return 0, err
	}
	for _, m := range searchManuals {
		dir, err := filepath.EvalSymlinks(m.dir)
		if err != nil {
			return 0, fmt.Errorf("%w; install the Debian package with that folder", err)
		}
		src, err := folder.New(dir, &folder.Options{Base: searchBase + m.name + "/"})
		if err != nil {
			return 0, err
		}
		r, err := mirror.Sync(ctx, m.name, src, site, nil)
		_ = src.Close()
		if err != nil {
			return 0, err
		}
		if pages += r.Counts.Added; pages >= openfeederPages {
			break
		}
	}
	v, err := site.Head(ctx)
	if err != nil {
		return 0, err
	}
	var headings []string
	for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return 0, err
		}
		for _, c := range chunk.Passages(p) {
			if n := len(c.Headings); n > 0 {
				headings = append(headings, strings.Join(strings.Fields(c.Headings[n-1]), " "))
			}
		}
	}
	rand.New(rand.NewPCG(1, 1000)).Shuffle(len(headings), func(i, k int) { headings[i], headings[k] = headings[k], headings[i] })
	headings = headings[:min(len(headings), searchQuestions)]
	return pages, os.WriteFile(questions, []byte(strings.Join(headings, "\n")+"\n"), 0o600)
}
