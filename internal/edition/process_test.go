package edition

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// run runs a server until the test ends.
func run(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); all.Wait() })
}

// While another process builds, the server loads its editions. Afterwards it publishes
// the remaining changes.
func TestAnotherHolder(t *testing.T) {
	dir := newArtifacts()
	synctest.Test(t, func(t *testing.T) {
		site := newMemSite(4)
		s, other := serverIn(t, site, &memProtocol{}, dir, nil), serverIn(t, site, &memProtocol{}, dir, nil)
		err := lease.Hold(t.Context(), site.st.Leases(), site.Name(), func(ctx context.Context, l store.Lease) error {
			run(t, s)
			time.Sleep(time.Minute)
			if s.Current() != nil {
				t.Error("published without the lease of the publication")
			}
			if _, _, err := other.advance(ctx, l); err != nil {
				return err
			}
			time.Sleep(2 * time.Second)
			if s.Current() == nil || s.Current().View.Site().Seq != 4 {
				t.Error("the editions of another process are not loaded")
			}
			site.set("/1", "changed")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if seq := s.Current().View.Site().Seq; seq != 5 {
			t.Errorf("published %d, want 5", seq)
		}
	})
}

// The first edition waits for the end of the first scan. Later editions do not wait.
func TestBusy(t *testing.T) {
	dir := newArtifacts()
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		busy.Store(true)
		site := newMemSite(4)
		s := serverIn(t, site, &memProtocol{}, dir, &Options{SourceBusy: busy.Load})
		run(t, s)
		time.Sleep(time.Minute)
		if s.Current() != nil {
			t.Error("published while busy")
		}
		s.Changed()
		time.Sleep(time.Second)
		if s.Current() == nil {
			t.Fatal("not published")
		}
		site.set("/1", "changed")
		time.Sleep(time.Minute)
		if seq := s.Current().View.Site().Seq; seq != 5 {
			t.Errorf("published %d, want 5: the next editions do not wait", seq)
		}
	})
}

// Progress ends with each refresh, even if the refresh did less than expected.
func TestProgressEnds(t *testing.T) {
	var got [][2]int
	s := serverIn(t, newMemSite(4), &memProtocol{}, newArtifacts(), &Options{Progress: func(done, total int) { got = append(got, [2]int{done, total}) }})
	publish(t, s)
	publish(t, s)
	if want := [][2]int{{1, 2}, {0, 0}, {1, 2}, {0, 0}}; !slices.Equal(got, want) {
		t.Errorf("progress %v, want %v", got, want)
	}
}

// The manifest of the previous generation is reused for building, and not served.
func TestFork(t *testing.T) {
	dir, site, proto := newArtifacts(), newMemSite(10), &memProtocol{}
	first := serverIn(t, site, proto, dir, nil)
	publish(t, first)
	even := ask(t, first, "GET", "/even.txt").Header()
	site.forked = true
	site.set("/1", "")
	proto.renders.Store(0)
	s := serverIn(t, site, proto, dir, nil)
	if err := s.Refresh(t.Context()); err == nil || s.Current() != nil {
		t.Errorf("an edition of another generation is served: %v", err)
	}
	publish(t, s)
	if n := proto.renders.Load(); n != 1 {
		t.Errorf("%d renderings, want 1 list", n)
	}
	got := ask(t, s, "GET", "/even.txt").Header()
	for _, field := range []string{"ETag", "Last-Modified"} {
		if got.Get(field) != even.Get(field) {
			t.Errorf("%s of an untouched list: %s, was %s", field, got.Get(field), even.Get(field))
		}
	}
	if w := ask(t, s, "GET", "/odd.txt"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "page 1\n") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Two publications of a store share a folder of artifacts.
func TestSharedFolder(t *testing.T) {
	dir, st := newArtifacts(), memory.New(nil)
	site, err := st.Site(t.Context(), "site", "https://x.test/")
	if err != nil {
		t.Fatal(err)
	}
	open := func(exclude string) *memSite {
		s := newMemSite(4)
		s.st = st
		pub, err := site.Publication(t.Context(), store.Config{Base: "https://x.test/" + exclude})
		if err != nil {
			t.Fatal(err)
		}
		s.durable = pub
		s.set("/1", exclude)
		return s
	}
	one, two := serverIn(t, open("one/"), &memProtocol{}, dir, nil), serverIn(t, open("two/"), &memProtocol{}, dir, nil)
	publish(t, one)
	publish(t, two)
	for _, s := range []*Server{one, two} {
		if err := s.collect(t.Context(), nil, time.Now().Add(2*unknownFor*grace)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*Server{one, two} {
		if w := ask(t, s, "GET", "/odd.txt"); w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%d", w.Code)
		}
	}
}

// The artifacts that a process serves are kept while another process with other options publishes
// and deletes old artifacts.
func TestServedFilesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, site := newArtifacts(), newMemSite(4)
		one := serverIn(t, site, &headed{}, dir, &Options{Key: "one"})
		publish(t, one)
		two := serverIn(t, site, &headed{line: "another option\n"}, dir, &Options{Key: "two"})
		publish(t, two)
		for range 6 {
			time.Sleep(unknownFor / 2 * grace)
			one.checkForChanges(t.Context())
			if err := two.collect(t.Context(), nil, time.Now()); err != nil {
				t.Fatal(err)
			}
			if w := ask(t, one, "GET", "/odd.txt"); w.Code != http.StatusOK || w.Body.Len() == 0 {
				t.Errorf("%d", w.Code)
			}
		}
	})
}

// The server opens a publication again after the store has dropped it, whether or not another
// process has published it in the meantime.
func TestDropped(t *testing.T) {
	for _, published := range []bool{false, true} {
		first, second, dir := newMemSite(3), newMemSite(2), newArtifacts()
		second.epoch = "second"
		s := serverIn(t, first, &memProtocol{}, dir, nil)
		publish(t, s)
		second.set("/0", "in the reopened publication")
		if published {
			publish(t, serverIn(t, second, &memProtocol{}, dir, nil))
		}
		first.dropped = second
		s.checkForChanges(t.Context())
		select {
		case <-s.changed:
			publish(t, s)
		default:
		}
		if w := ask(t, s, "GET", "/0.txt"); !strings.Contains(w.Body.String(), "reopened") || s.Current().stored != 1 {
			t.Errorf("published by another process: %t: edition %d has %d %q", published, s.Current().stored, w.Code, w.Body)
		}
	}
}

// After a publication is dropped, the processes elect one builder of the publication that replaces
// it. The one that waited for the other stays a follower.
func TestElectionAfterDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, dir := newMemSite(1), newMemSite(1), newArtifacts()
		second.epoch, second.name = "second", "second"
		servers := []*Server{serverIn(t, first, &memProtocol{}, dir, nil), serverIn(t, first, &memProtocol{}, dir, nil)}
		publish(t, servers[0])
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, s := range servers {
			all.Go(func() { s.elect(ctx) })
		}
		builders := func() (n int) {
			time.Sleep(time.Minute)
			for _, s := range servers {
				if s.Builder() {
					n++
				}
			}
			return n
		}
		before := builders()
		first.dropped = second
		for _, s := range servers {
			s.checkForChanges(ctx)
		}
		if after := builders(); before != 1 || after != 1 {
			t.Errorf("%d builders, and %d after the publication was dropped", before, after)
		}
		cancel()
		all.Wait()
	})
}

// Processes that start together do not report that another one updates the publication.
func TestRefreshElsewhere(t *testing.T) {
	site := newMemSite(1)
	s := newTestServer(t, site, &memProtocol{}, nil)
	err := lease.Hold(t.Context(), site.st.Leases(), site.Name(), func(ctx context.Context, _ store.Lease) error { return s.Refresh(ctx) })
	if !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("without an edition: %v", err)
	}
}

// A check for changes that fails again and again is logged once.
func TestFailingChecks(t *testing.T) {
	var log bytes.Buffer
	site := newMemSite(1)
	s := newTestServer(t, site, &memProtocol{}, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	publish(t, s)
	log.Reset()
	working, failed := store.Publication(site), store.Publication(failing{site})
	s.publication.Store(&failed)
	for range 3 {
		s.checkForChanges(t.Context())
	}
	s.publication.Store(&working)
	for range 3 {
		s.checkForChanges(t.Context())
	}
	if warnings, notes := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO"); warnings != 1 || notes != 1 {
		t.Errorf("%d warnings and %d notes: %s", warnings, notes, log.String())
	}
}

// failing is a publication in a store that is down.
type failing struct{ *memSite }

func (failing) Published(context.Context) (millrace.View, store.Edition, error) {
	return nil, store.Edition{}, millrace.ErrUnavailable
}
