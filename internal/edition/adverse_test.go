package edition

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// hooked is a store of artifacts that calls a function before each call, and returns the
// error of the function.
type hooked struct {
	artifact.Store
	before func() error // may be nil
}

func (h *hooked) call() error {
	if h.before == nil {
		return nil
	}
	return h.before()
}

func (h *hooked) Put(ctx context.Context, name string, r io.Reader) error {
	if err := h.call(); err != nil {
		return err
	}
	return h.Store.Put(ctx, name, r)
}

func (h *hooked) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := h.call(); err != nil {
		return nil, err
	}
	return h.Store.Open(ctx, name, offset, length)
}

func (h *hooked) Stat(ctx context.Context, name string) (artifact.Info, error) {
	if err := h.call(); err != nil {
		return artifact.Info{}, err
	}
	return h.Store.Stat(ctx, name)
}

func (h *hooked) Delete(ctx context.Context, name string) error {
	if err := h.call(); err != nil {
		return err
	}
	return h.Store.Delete(ctx, name)
}

// serverWithArtifacts returns a server with a chunked list and artifacts.
func serverWithArtifacts(site *memSite, artifacts artifact.Store) *Server {
	protocols := []Protocol{{Name: "list", Publisher: listProtocol{}}, {Name: "files", Publisher: &artifactProtocol{}}}
	return NewServer(site.source(), protocols, artifacts, &Options{Logger: slog.New(slog.DiscardHandler)})
}

// consistent checks that a server serves its list and its artifacts.
func consistent(t *testing.T, s *Server, want ...string) {
	t.Helper()
	if w := ask(t, s, "GET", "/list.txt"); w.Code != http.StatusOK || !slices.Contains(want, w.Body.String()) {
		t.Errorf("the list: %d, %d bytes", w.Code, w.Body.Len())
	}
	for _, path := range s.Current().ArtifactPaths() {
		if w := ask(t, s, "GET", path); w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// For every n: if the n-th call of the store fails, once or permanently, the server has the
// previous or the next edition, and so does a process that starts afterwards. The next publication
// has all changes.
func TestArtifactsFail(t *testing.T) {
	full := millrace.Coded("disk-full", millrace.ErrUnavailable)
	for once, step := range map[bool]int{true: 1, false: 5} {
		for n := 0; ; n += step {
			site, artifacts := tall(), &hooked{Store: newArtifacts()}
			s := serverWithArtifacts(site, artifacts)
			publish(t, s)
			before := listOf(t, site)
			site.set("/x", strings.Repeat("another text ", 4000))
			after := listOf(t, site)
			var calls atomic.Int64
			artifacts.before = func() error {
				if is := int(calls.Add(1)); is == n+1 || is > n && !once {
					return full
				}
				return nil
			}
			_, err := s.Publish(t.Context())
			artifacts.before = nil
			if err == nil {
				consistent(t, s, after)
			}
			consistent(t, s, before, after)
			again := serverWithArtifacts(site, artifacts)
			if err := again.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			consistent(t, again, before, after)
			for _, s := range []*Server{s, again} {
				publish(t, s)
				consistent(t, s, after)
			}
			if int(calls.Load()) <= n {
				if n < 10 {
					t.Errorf("%d calls", calls.Load())
				}
				break
			}
		}
	}
}

// Lag returns the age of a change that cannot be published, even after another attempt and another
// change. After publication, it returns the delay.
func TestLag(t *testing.T) {
	site, artifacts := tall(), &hooked{Store: newArtifacts()}
	var now time.Time
	s := serverIn(t, site, listProtocol{}, artifacts, &Options{Now: func() time.Time { return now }})
	publish(t, s)
	want := func(what string, last, waiting time.Duration) {
		t.Helper()
		if l, w := s.Lag(); l != last || w != waiting {
			t.Errorf("%s: the last delay is %v and a change waits for %v, want %v and %v", what, l, w, last, waiting)
		}
	}
	want("at first", 0, 0)
	committed := timeOf(site.set("/x", "another text"))
	now = committed.Add(time.Second)
	s.checkForChanges(t.Context())
	want("committed", 0, time.Second)
	artifacts.before = func() error { return millrace.ErrUnavailable }
	if _, err := s.Publish(t.Context()); err == nil {
		t.Fatal("published")
	}
	site.set("/x", "another text again")
	now = committed.Add(time.Minute)
	s.checkForChanges(t.Context())
	want("failed", 0, time.Minute)
	artifacts.before = nil
	publish(t, s)
	want("published", time.Minute, 0)
	s.checkForChanges(t.Context())
	want("nothing new", time.Minute, 0)
}

// If all pages change in one batch, the edition equals a first edition.
func TestEveryPageChanges(t *testing.T) {
	site := tall()
	s := newTestServer(t, site, listProtocol{}, nil)
	publish(t, s)
	for url := range site.view(uint64(len(site.states) - 1)).m {
		site.set(url, strings.Repeat("other words for all of them ", 40+len(url)))
	}
	publish(t, s)
	fresh := newTestServer(t, site, listProtocol{}, nil)
	if err := fresh.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, want := ask(t, s, "GET", "/list.txt"), ask(t, fresh, "GET", "/list.txt")
	if got.Body.String() != listOf(t, site) || got.Header().Get("ETag") != want.Header().Get("ETag") {
		t.Errorf("%d bytes with %s, want %d with %s", got.Body.Len(), got.Header().Get("ETag"), want.Body.Len(), want.Header().Get("ETag"))
	}
}

// slowClient is a client that reads a response slowly.
type slowClient struct {
	*httptest.ResponseRecorder
	rest time.Duration // for each write
}

func (c *slowClient) Write(b []byte) (int, error) {
	time.Sleep(c.rest)
	return c.ResponseRecorder.Write(b)
}

// A client that reads a list for an hour gets the edition with which it started, even if every
// page changes in the meantime: neither its server nor another one deletes the chunks of that
// edition.
func TestSlowClient(t *testing.T) {
	for _, follower := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			site, artifacts := newMemSite(0), newArtifacts()
			for i := range 40 { // more than fits into the response cache
				site.set("/"+strings.Repeat("x", i+1), strings.Repeat("the water comes down to the wheel ", 400))
			}
			builder := serverIn(t, site, listProtocol{}, artifacts, nil)
			publish(t, builder)
			ctx, cancel := context.WithCancel(t.Context())
			var all, renewing sync.WaitGroup
			s := builder
			if follower {
				s = serverIn(t, site, listProtocol{}, artifacts, nil)
				if err := s.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			renewing.Go(func() { s.renewSuperseded(ctx) })
			want := listOf(t, site)
			var done atomic.Bool
			all.Go(func() {
				begun := time.Now()
				w := &slowClient{httptest.NewRecorder(), 12 * time.Minute}
				_, err := s.Serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/list.txt", nil))
				if err != nil || w.Body.String() != want {
					t.Errorf("%d of %d bytes: %v", w.Body.Len(), len(want), err)
				}
				if took := time.Since(begun); took < time.Hour {
					t.Errorf("the response took %v", took)
				}
				done.Store(true)
			})
			for i := 0; !done.Load(); i++ {
				time.Sleep(4 * time.Minute)
				for url := range site.view(uint64(len(site.states) - 1)).m {
					site.set(url, strings.Repeat("other words for all of them ", 400+len(url)+i))
				}
				publish(t, builder)
				s.checkForChanges(ctx)
			}
			all.Wait()
			for range 3 {
				time.Sleep(grace)
				if err := builder.collect(t.Context(), nil, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			if needed, err := builder.needed(t.Context(), builder.Current(), time.Now()); err != nil || len(stored(t, builder)) != len(needed) {
				t.Errorf("%d artifacts, %d are needed: %v", len(stored(t, builder)), len(needed), err)
			}
			cancel()
			renewing.Wait()
		})
	}
}

// Superseded artifacts are deleted within minutes, so that their number does not grow.
func TestSupersededAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := tall()
		s := newTestServer(t, site, listProtocol{}, nil)
		publish(t, s)
		most := [2]int{}
		for i := range 200 {
			time.Sleep(grace / 25)
			site.set("/x", fmt.Sprint("edit ", i))
			publish(t, s)
			most[i/100] = max(most[i/100], len(stored(t, s)))
		}
		if most[1] > most[0] {
			t.Errorf("%d artifacts in the first half, then %d", most[0], most[1])
		}
	})
}

// An edition names no deleted artifact, even if another publication collects old
// artifacts at any moment while the edition is made.
func TestCollectWhileBuilding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n := 0; ; n++ {
			st, artifacts := memory.New(nil), newArtifacts()
			site, err := st.Site(t.Context(), "site", "https://x.test/")
			if err != nil {
				t.Fatal(err)
			}
			open := func(name string, artifacts artifact.Store) (*memSite, *Server) {
				pub, err := site.Publication(t.Context(), store.Config{Base: "https://x.test/" + name})
				if err != nil {
					t.Fatal(err)
				}
				s := tall()
				s.st, s.durable, s.name = st, pub, name
				return s, serverIn(t, s, listProtocol{}, artifacts, nil)
			}
			collector := &hooked{Store: artifacts}
			first, one := open("one/", collector)
			publish(t, one)
			for url := range first.view(uint64(len(first.states) - 1)).m {
				first.set(url, "")
			}
			first.set("/1", "no artifact of the earlier edition remains")
			publish(t, one)
			time.Sleep(2 * grace)
			second, two := open("two/", artifacts)
			var builder sync.WaitGroup
			calls := 0
			collector.before = func() error {
				if calls++; calls == n+1 {
					builder.Go(func() { publish(t, two) })
					synctest.Wait() // wait until the publication has built its artifacts and waits for the lease
				}
				return nil
			}
			one.listedAt = time.Time{}
			if err := one.collect(t.Context(), nil, time.Now()); err != nil {
				t.Error(err)
			}
			builder.Wait()
			if calls <= n {
				if n < 3 {
					t.Errorf("%d calls", calls)
				}
				break
			}
			if w := ask(t, two, "GET", "/list.txt"); w.Code != http.StatusOK || w.Body.String() != listOf(t, second) {
				t.Errorf("at call %d: %d, %d bytes", n, w.Code, w.Body.Len())
			}
		}
	})
}
