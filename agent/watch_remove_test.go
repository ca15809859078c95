package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// pages returns the number of pages of a site in a store.
func pages(t *testing.T, st store.Store, name string) int {
	t.Helper()
	site, err := st.Site(t.Context(), name, "")
	if err != nil {
		t.Fatal(err)
	}
	v, err := site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.Site().Pages
}

// A site that is removed with its pages goes away when its receiver has the deletions, also
// while its host is down or another worker takes over. Added again, it is pulled from the start.
func TestFleetRemove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 3, 0, time.Minute, nil)
		defer f.net.Close()
		first := &worker{}
		stop := f.start(first)
		time.Sleep(10 * time.Minute)
		first.set(stopped)
		fleet, name := f.store.Fleet(), f.net.URL(0)
		q := store.FleetQuery{Sites: []string{name}}
		if _, err := fleet.Pause(t.Context(), q, true); err != nil {
			t.Fatal(err)
		}
		if n, err := fleet.Remove(t.Context(), q, true); err != nil || n != 1 {
			t.Fatalf("%d, %v", n, err)
		}
		first.set(dead)
		stop()
		listed := func() (sites int) {
			for _, err := range fleet.Sites(t.Context(), q) {
				if sites++; err != nil {
					t.Fatal(err)
				}
			}
			return sites
		}
		a, err := New(f.store, &Options{Dial: (&worker{}).dial(f.net), Resolve: f.net.Resolve, Via: "tct-01"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		var refusing sync.WaitGroup
		refusing.Go(func() {
			for e := range a.Watch(ctx, nil, nil) {
				e.Refuse(errors.New("the receiver is down"))
			}
		})
		time.Sleep(10 * time.Minute)
		if n, sites := pages(t, f.store, name), listed(); n != 0 || sites != 1 {
			t.Errorf("without the receiver: %d pages, %d sites", n, sites)
		}
		end()
		refusing.Wait()
		second := &worker{}
		stop = f.start(second)
		time.Sleep(time.Minute)
		deleted := 0
		f.mu.Lock()
		for _, c := range f.events {
			if c.Site == name && c.Change == "deleted" {
				deleted++
			}
		}
		f.mu.Unlock()
		if sites := listed(); sites != 0 || deleted != fleetnet.Pages {
			t.Errorf("%d sites, %d deleted", sites, deleted)
		}
		if n := pages(t, f.store, f.net.URL(1)); n != fleetnet.Pages {
			t.Errorf("another site has %d pages", n)
		}
		if _, _, err := fleet.Put(t.Context(), withoutErrors([]store.FleetSite{{URL: name}})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if n := pages(t, f.store, name); n != fleetnet.Pages {
			t.Errorf("added again: %d pages", n)
		}
		stop()
		f.tasks.Wait()
	})
}

// failing is a site whose Apply fails after some calls.
type failing struct {
	store.Site
	calls int
}

func (s *failing) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	if s.calls--; s.calls < 0 {
		return millrace.Counts{}, errLost
	}
	return s.Site.Apply(ctx, from, batch)
}

// A deletion that was interrupted continues with the pages that are left.
func TestDeletePages(t *testing.T) {
	t.Parallel()
	const name = "https://mill.example/"
	for calls := range 6 {
		st := memory.New(nil)
		site, err := st.Site(t.Context(), name, name)
		if err != nil {
			t.Fatal(err)
		}
		from := name + " " + Crawl
		batch := []millrace.Change{{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "x"}}}
		for i := range 450 {
			u := fmt.Sprintf("%s%03d", name, i)
			batch = append(batch, millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: u, Version: "1"}, Page: &millrace.Page{URL: u, Title: u, Known: millrace.FieldTitle}})
		}
		if _, err := site.Apply(t.Context(), from, batch); err != nil {
			t.Fatal(err)
		}
		err = deletePages(t.Context(), &failing{site, calls}, name)
		if done := calls > 3; done != (err == nil) {
			t.Errorf("%d calls: %v", calls, err)
		}
		if err := deletePages(t.Context(), site, name); err != nil {
			t.Fatal(err)
		}
		for ref, err := range site.KnownRefs(t.Context(), from) {
			t.Errorf("%d calls: %v is known, %v", calls, ref, err)
		}
		v, err := site.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		deleted := 0
		for c, err := range v.Changes(t.Context(), v.Site().At(450)) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == millrace.Delete {
				deleted++
			}
		}
		if c, err := site.Cursor(t.Context(), from); v.Site().Pages != 0 || deleted != 450 || c != "" || err != nil {
			t.Errorf("%d calls: %d pages, %d deleted, cursor %q, %v", calls, v.Site().Pages, deleted, c, err)
		}
	}
}

// hintedFleet is a fleet that reports hints.
type hintedFleet struct {
	store.Fleet
	hints chan string
}

func (f hintedFleet) Hint(_ context.Context, site string) error {
	f.hints <- site
	return nil
}

// The sites of one origin share an event stream, which another one takes over when the first one is
// removed.
func TestSharedStream(t *testing.T) {
	t.Parallel()
	open := make(chan bool, 10)
	events := make(chan string)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openfeeder.json":
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"version":"1.0","site":{"name":"x","url":"http://%s/","language":"en"},"feed":{"endpoint":"/openfeeder","type":"paginated"},"capabilities":[],"events":{"endpoint":"/events","type":"text/event-stream"}}`, r.Host)
		case "/events":
			rw.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(rw).Flush()
			open <- true
			defer func() { open <- false }()
			for {
				select {
				case <-r.Context().Done():
					return
				case id := <-events:
					fmt.Fprintf(rw, "id: %s\nevent: page.updated\ndata: {\"url\":\"/a/\"}\n\n", id)
					_ = http.NewResponseController(rw).Flush()
				}
			}
		default:
			http.NotFound(rw, r)
		}
	}))
	defer srv.Close()
	a, err := New(memory.New(nil), &Options{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	w := a.newWatch(&WatchOptions{RequestRate: 1000})
	fleet := a.store.Fleet()
	hints := make(chan string, 10)
	w.fleet = hintedFleet{fleet, hints}
	sites := []store.FleetSite{{URL: srv.URL + "/a/"}, {URL: srv.URL + "/b/"}}
	if _, _, err := fleet.Put(t.Context(), withoutErrors(sites)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	follow := func(i int, delay time.Duration) {
		w.follow(ctx, &tasks, &turn{Turn: store.Turn{Site: sites[i]}, record: watchRecord{Event: "7"}, result: store.TurnResult{Delay: delay}})
	}
	const delay = 100 * time.Millisecond // since the last request of the pull
	begun := time.Now()
	follow(0, delay)
	if !<-open || time.Since(begun) < delay {
		t.Fatalf("the stream was opened after %v", time.Since(begun))
	}
	follow(1, 0)
	events <- "8"
	if got := []string{<-hints, <-hints}; !slices.Contains(got, sites[0].URL) || !slices.Contains(got, sites[1].URL) {
		t.Errorf("due: %v", got)
	}
	if _, err := fleet.Remove(t.Context(), store.FleetQuery{Sites: []string{sites[0].URL}}, false); err != nil {
		t.Fatal(err)
	}
	if err := w.unfollow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if <-open {
		t.Error("two streams of one origin are open")
	}
	follow(1, 0)
	if !<-open {
		t.Error("the other site does not listen")
	}
	follow(1, 0)
	stop()
	tasks.Wait()
	if left := w.budget.left; left == 0 || left > 1000/4-4 || w.budget.spent.Load() == 0 {
		t.Errorf("%d requests left, %d bytes", left, w.budget.spent.Load())
	}
}

// A removed site is no longer listened to.
func TestUnfollow(t *testing.T) {
	t.Parallel()
	a, err := New(memory.New(nil), &Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done() // the sites never answer
		return nil, ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := a.newWatch(&WatchOptions{})
	fleet := a.store.Fleet()
	var sites []store.FleetSite
	for _, name := range []string{"kept", "paused", "removed", "removing"} {
		sites = append(sites, store.FleetSite{URL: "https://" + name + ".example/"})
	}
	if _, _, err := fleet.Put(t.Context(), withoutErrors(sites)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	ended := make(map[string]context.Context)
	for _, s := range sites {
		w.follow(ctx, &tasks, &turn{Turn: store.Turn{Site: s}})
		ended[s.URL] = w.sites[s.URL].ctx
	}
	query := func(i int) store.FleetQuery { return store.FleetQuery{Sites: []string{sites[i].URL}} }
	_, paused := fleet.Pause(t.Context(), query(1), true)
	_, removed := fleet.Remove(t.Context(), query(2), false)
	_, removing := fleet.Remove(t.Context(), query(3), true)
	if err := errors.Join(paused, removed, removing, w.unfollow(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i, s := range sites {
		if gone := i >= 2; (ended[s.URL].Err() != nil) != gone || (w.sites[s.URL] == nil) != gone {
			t.Errorf("%s: %v, %v", s.URL, ended[s.URL].Err(), w.sites[s.URL])
		}
	}
	stop()
	tasks.Wait()
}
