package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/store"
)

// A site with a webhook has its changes posted there and nowhere else. Neither a webhook that hangs
// nor a loop that does not end delays the changes for other receivers.
func TestFleetWebhooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 4, 0, time.Minute, nil)
		defer f.net.Close()
		const slow, quick, refusing = "https://slow.example/", "https://quick.example/", "https://refusing.example/"
		var sites []store.FleetSite
		for i, url := range []string{slow, quick, refusing} {
			sites = append(sites, store.FleetSite{URL: f.net.URL(i), Webhook: url})
		}
		if _, _, err := f.store.Fleet().Put(t.Context(), withoutErrors(sites)); err != nil {
			t.Fatal(err)
		}
		a, err := New(f.store, &Options{Dial: (&worker{}).dial(f.net), Resolve: f.net.Resolve, Via: "tct-01", Parallel: 10})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		got, posting := map[string]map[string]int{}, map[string]bool{} // changes by receiver and site
		record := func(receiver string, e *Event) {
			mu.Lock()
			defer mu.Unlock()
			if got[receiver] == nil {
				got[receiver] = map[string]int{}
			}
			got[receiver][e.Site] += len(e.Lines)
		}
		answers, reading := make(chan struct{}), make(chan struct{})
		refuse := true
		o := &WatchOptions{MinInterval: time.Minute, MaxInterval: time.Minute}
		o.Webhook = func(ctx context.Context, url string, e *Event) error {
			mu.Lock()
			if posting[url] {
				t.Errorf("two events for %s at the same time", url)
			}
			posting[url] = true
			mu.Unlock()
			defer func() {
				mu.Lock()
				posting[url] = false
				mu.Unlock()
			}()
			if url == refusing && refuse {
				return errors.New("not now")
			}
			if url == slow {
				select {
				case <-answers:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			record(url, e)
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		f.tasks.Go(func() {
			read := 0
			for e, err := range a.Watch(ctx, nil, o) {
				if err != nil {
					t.Error(err)
					return
				}
				record("", e)
				if read += len(e.Lines); read >= fleetnet.Pages {
					<-reading
				}
			}
		})
		check := func(want map[string]map[string]int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		}
		all := func(i, edits int) map[string]int { return map[string]int{f.net.URL(i): fleetnet.Pages + edits} }
		time.Sleep(5 * time.Minute)
		check(map[string]map[string]int{quick: all(1, 0), "": all(3, 0)})
		for i := range 4 {
			f.net.Edit(i, 0)
		}
		time.Sleep(5 * time.Minute) // the loop still handles an event
		check(map[string]map[string]int{quick: all(1, 1), "": all(3, 0)})
		close(reading)
		time.Sleep(time.Minute)
		check(map[string]map[string]int{quick: all(1, 1), "": all(3, 1)})
		close(answers)
		mu.Lock()
		refuse = false
		mu.Unlock()
		time.Sleep(time.Minute)
		check(map[string]map[string]int{slow: all(0, 1), quick: all(1, 1), refusing: all(2, 0), "": all(3, 1)})
		stop()
		f.tasks.Wait()
	})
}

// Changes that a program has stored and not delivered are delivered when the next program begins, not
// only after the next pull of their site.
func TestFleetDeliversStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 3, 0, time.Minute, nil)
		defer f.net.Close()
		a, err := New(f.store, &Options{Dial: (&worker{}).dial(f.net), Resolve: f.net.Resolve, Via: "tct-01", Parallel: 10})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		watch := func(refusal error, limit time.Duration) {
			ctx, stop := context.WithTimeout(t.Context(), limit)
			defer stop()
			for e, err := range a.Watch(ctx, nil, &WatchOptions{MinInterval: 24 * time.Hour, MaxInterval: 24 * time.Hour}) {
				switch {
				case err != nil:
					t.Error(err)
				case refusal != nil:
					e.Refuse(refusal)
				default:
					got[e.Site] += len(e.Lines)
				}
			}
		}
		watch(errors.New("not now"), 10*time.Minute)
		requests := f.net.Log().Requests
		watch(nil, 10*time.Second)
		want := map[string]int{}
		for i := range 3 {
			want[f.net.URL(i)] = fleetnet.Pages
		}
		if d := cmp.Diff(want, got); d != "" || f.net.Log().Requests != requests {
			t.Errorf("%d requests, %s", f.net.Log().Requests-requests, d)
		}
	})
}
