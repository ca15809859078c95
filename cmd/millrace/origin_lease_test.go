package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// fullStore is a store on a full disk: writing a lease fails.
type fullStore struct {
	store.Store
	full atomic.Bool
}

func (s *fullStore) Leases() store.Leases { return fullLeases{s.Store.Leases(), s} }

type fullLeases struct {
	store.Leases
	store *fullStore
}

func (l fullLeases) Acquire(ctx context.Context, name, holder string, d time.Duration) (store.Lease, error) {
	if l.store.full.Load() {
		return store.Lease{}, fmt.Errorf("%w: the disk is full", millrace.ErrUnavailable)
	}
	return l.Leases.Acquire(ctx, name, holder, d)
}

// If its lease cannot be written, a server with an edition keeps serving it and reads
// the source again later. A server without an edition ends.
func TestLeaseUnavailable(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	synctest.Test(t, func(t *testing.T) {
		var log buffer
		const base = "https://www.example.com/"
		p := &process{stderr: terminal.New(&buffer{}, environment(nil)), commonFlags: &commonFlags{Quiet: true}, log: slog.New(slog.NewJSONHandler(&log, nil))}
		f, err := folder.New(dir, &folder.Options{Base: base})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		st := &fullStore{Store: memory.New(nil)}
		o := p.newSource("folder", base, ingest.Rules{})
		o.From, o.Name, o.Source, o.Store = "folder", "folder", f, st
		site, err := st.Site(t.Context(), o.Name, base)
		if err != nil {
			t.Fatal(err)
		}
		pub, err := site.Publication(t.Context(), store.Config{Base: base})
		if err != nil {
			t.Fatal(err)
		}
		server := edition.NewServer(edition.Source{Store: st, Site: site, Publication: pub}, nil, artifactmemory.New(nil), &edition.Options{Logger: p.log})
		st.full.Store(true)
		if err := o.Run(t.Context(), site, server); err == nil {
			t.Error("the server continues without an edition")
		}
		st.full.Store(false)
		if _, err := server.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx, site, server) }()
		var was *ingest.Scan
		for range 2 {
			time.Sleep(time.Minute)
			if o.Last() == was {
				t.Error("the source was not read")
			}
			was = o.Last()
			st.full.Store(true)
			time.Sleep(time.Minute)
			st.full.Store(false)
		}
		if strings.Contains(log.String(), `"err":null`) {
			t.Errorf("the log lacks a reason: %s", log.String())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
