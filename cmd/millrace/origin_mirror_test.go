package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

// follower is a server over a mirror, without what answers.
type follower struct {
	o     *origin
	p     *process
	log   *buffer
	site  store.Site
	press *edition.Press
}

const mirrorName = "https://www.example.com/"

func newFollower(t *testing.T, file, docs string) *follower {
	t.Helper()
	db, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	f := &follower{log: &buffer{}, o: &origin{kind: "mirror", name: mirrorName, base: mirrorName, path: file, store: db}}
	f.p = &process{stderr: f.log, common: &common{Quiet: true}, log: slog.New(slog.NewTextHandler(f.log, nil))}
	if f.site, err = db.Site(t.Context(), mirrorName, store.Config{Base: mirrorName, Docs: docs}); err != nil {
		t.Fatal(err)
	}
	if f.press, err = edition.NewPress(f.site, nil, file+"-files", &edition.Options{Log: f.p.log}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *follower) run(ctx context.Context) error { return f.o.ingest(ctx, f.p, f.site, f.press) }

// pull does to a mirror what a pull does that finds the pages of a folder.
func (f *follower) pull(t *testing.T, dir string) {
	t.Helper()
	site, err := mirrored(t.Context(), f.o.store, mirrorName)
	if err != nil {
		t.Fatal(err)
	}
	src, err := folder.New(dir, &folder.Options{Base: mirrorName})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	o := &origin{kind: "folder", from: "folder", name: mirrorName, base: mirrorName, store: f.o.store, source: src}
	if _, err := o.sync(t.Context(), f.p, site); err != nil {
		t.Fatal(err)
	}
}

func (f *follower) mine(t *testing.T) bool {
	t.Helper()
	_, err := f.site.Head(t.Context())
	if err != nil && !errors.Is(err, millrace.ErrConflict) {
		t.Fatal(err)
	}
	return err == nil
}

// Of two servers over one mirror that want its pages otherwise, one stops and
// says why. Those who pull take the pages from the other as often as they like.
func TestFollowers(t *testing.T) {
	dir := copySite(t, "handbook")
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "m.db")
		one, two := newFollower(t, file, mirrorName), newFollower(t, file, "http://127.0.0.1:8081/")
		one.pull(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- one.run(ctx) }()

		time.Sleep(time.Second)
		synctest.Wait()
		if !one.mine(t) {
			t.Fatal("the first server has not begun")
		}
		for range 5 {
			one.pull(t, dir)
			if one.mine(t) {
				t.Fatal("a pull has not taken the pages")
			}
			time.Sleep(2 * peek)
			synctest.Wait()
			if !one.mine(t) || len(ended) > 0 {
				t.Fatalf("after a pull, the server does not go on: %s", one.log)
			}
		}

		go func() { ended <- two.run(ctx) }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(ended) != 1 {
			t.Fatalf("%d servers have stopped:\n%s%s", len(ended), one.log, two.log)
		}
		if err := <-ended; !errors.Is(err, millrace.ErrConflict) {
			t.Errorf("a server has stopped with %v", err)
		}
		if one.mine(t) || !two.mine(t) {
			t.Error("the pages are not those of the server that has come last")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the one that has gone on: %v", err)
		}
	})
}

// Builds take the pages now and then, twice in a row as well, and whoever is at it
// is let finish.
func TestRetaking(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "m.db")
	one, two := newFollower(t, file, mirrorName), newFollower(t, file, "http://127.0.0.1:8081/")
	one.pull(t, copySite(t, "handbook"))
	derive := func(f *follower, ctx context.Context) {
		t.Helper()
		if err := f.site.Derive(ctx, nil); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	var r retaking
	due := func(want bool) {
		t.Helper()
		if got, err := r.due(t.Context(), one.o, one.site, now); err != nil || got != want {
			t.Errorf("due: %t, %v", got, err)
		}
		if want {
			derive(one, t.Context())
			r.done(now, 10*time.Minute)
		}
	}

	due(true)     // from whoever has pulled
	for range 2 { // the day after, too
		for range 3 {
			derive(two, t.Context())
			due(true)
		}
		now = now.Add(1001 * time.Minute)
	}

	// One that ends in the middle.
	half, stop := context.WithCancel(t.Context())
	err := two.site.Derive(half, func(done, total int) { stop() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("it has ended with %v", err)
	}
	due(false)
	due(true)

	for range 2 {
		derive(two, t.Context())
		due(true)
	}
	derive(two, t.Context())
	if got, err := r.due(t.Context(), one.o, one.site, now.Add(999*time.Minute)); got || !errors.Is(err, millrace.ErrConflict) {
		t.Errorf("due: %t, %v, want an error", got, err)
	}
	// A pull in between makes no difference, and what it brings is nobody's.
	one.pull(t, copySite(t, "handbook"))
	due(true)
	derive(two, t.Context())
	if got, err := r.due(t.Context(), one.o, one.site, now); got || !errors.Is(err, millrace.ErrConflict) {
		t.Errorf("after a pull: %t, %v, want an error", got, err)
	}
}
