package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"

	"github.com/millrace/millrace/internal/pgcluster"
)

// postgres compares stores in PostgreSQL with stores in SQLite files. The database server runs on
// this machine and commits to disk, as SQLite does. The ratios compare the wall clock, because the
// processor time of the database server is not measured.
func (b *bench) postgres(ctx context.Context) (err error) {
	if err := os.Chmod(b.dir, 0o711); err != nil { //nolint:gosec // the server runs as another user
		return err
	}
	c, err := pgcluster.New(ctx, b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	n := 0
	file := func() (string, error) { n++; return filepath.Join(b.dir, fmt.Sprintf("against-%d.db", n)), nil }
	database := func() (string, error) { n++; return c.Create(ctx, fmt.Sprint("bench", n)) }

	const pages = 10_000
	filling := func(next func() (string, error)) side {
		return func(ctx context.Context) (work, error) {
			dsn, err := next()
			if err != nil {
				return work{}, err
			}
			runtime.GC()
			return during(pages, func() error { return fillStore(ctx, dsn, pages) })
		}
	}
	found, err := duel(ctx, ingests, filling(file), filling(database))
	if err != nil {
		return err
	}
	b.add(found.byClock(fmt.Sprintf("first fill of a store in PostgreSQL, %d pages", pages), "pages", "SQLite", 0.5))

	manual, err := filepath.EvalSymlinks(b.manual)
	if err != nil {
		return err
	}
	serving := func(next func() (string, error)) side {
		return func(ctx context.Context) (work, error) {
			dsn, err := next()
			if err != nil {
				return work{}, err
			}
			s, err := b.startServer(ctx, manual, "--store", dsn)
			if err != nil {
				return work{}, err
			}
			s.stop()
			return work{1, s.ready, s.spent}, nil
		}
	}
	if found, err = duel(ctx, ingests, serving(file), serving(database)); err != nil {
		return err
	}
	b.add(found.byClock("ingest of postgresql-doc-15 by serve until its first edition, in PostgreSQL", "sites", "SQLite", 0.5))

	var servers [2]*server
	for i, next := range []func() (string, error){file, database} {
		dsn, err := next()
		if err == nil {
			err = fillStore(ctx, dsn, pages)
		}
		if err == nil {
			servers[i], err = b.startServer(ctx, dsn)
		}
		if err != nil {
			return err
		}
		defer servers[i].stop()
	}
	for _, status := range []int{http.StatusOK, http.StatusNotModified} {
		var sides [2]side
		for i, s := range servers {
			q, _, err := b.warm(ctx, s, murls(pages), http.Header{"Accept-Encoding": {"identity"}}, status)
			if err != nil {
				return err
			}
			sides[i] = q.of(s)
		}
		if found, err = duel(ctx, b.turns, sides[0], sides[1]); err != nil {
			return err
		}
		b.add(found.byClock(fmt.Sprintf("M-URL %d, warm, identity, %d pages in PostgreSQL", status, pages), "requests", "SQLite", 0.95))
	}
	return nil
}

// byClock returns a line of the table. It compares rates by the wall clock.
func (s *score) byClock(what, unit, peer string, reach float64) row {
	return row{
		what: what, limit: s.Peer.string(unit) + " (" + peer + ")", ours: s.Ours.string(unit),
		ratio: fmt.Sprintf("%.2f (processor time %.2f)", s.Rate, s.Cost), reach: fmt.Sprint(reach), good: s.Rate >= reach,
	}
}
