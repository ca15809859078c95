package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/store"
)

// Some hosts send nothing, send one byte now and then for an hour, or redirect every request to
// another host. They do not delay other sites of the same workers.
func TestFleetBadHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 30, 0, time.Hour, nil)
		defer f.net.Close()
		var requests atomic.Int64
		f.net.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			switch r.Host {
			case fleetnet.Name(0): // sends nothing
				<-r.Context().Done()
			case fleetnet.Name(1): // never ends
				for end := time.Now().Add(time.Hour); r.Context().Err() == nil && time.Now().Before(end); time.Sleep(20 * time.Second) {
					_, _ = w.Write([]byte(" "))
					_ = http.NewResponseController(w).Flush()
				}
			case fleetnet.Name(2): // redirects forever
				n := requests.Add(1)
				http.Redirect(w, r, f.net.URL(2+int(n%2))+"again/"+strings.Repeat("x", int(n)), http.StatusFound)
			default:
				return r.Host == fleetnet.Name(3) && strings.HasPrefix(r.URL.Path, "/again")
			}
			return true
		}
		stop := f.start(&worker{})
		time.Sleep(2 * time.Hour)
		f.net.Edit(20, 1)
		time.Sleep(70 * time.Minute)
		stop()
		f.tasks.Wait()
		time.Sleep(20 * time.Second) // the response that never ends notices that its reader is gone
		for i := 3; i < f.hosts; i++ {
			f.checkSite(i)
		}
		stats, err := f.store.Fleet().Stats(t.Context(), "")
		if err != nil || stats.Failing != 3 || stats.Lag[3] > 2*time.Minute {
			t.Errorf("%+v, %v", stats, err)
		}
		hosts, err := f.store.Fleet().Hosts(t.Context(), "", 10)
		if err != nil || len(hosts) < 2 {
			t.Errorf("%+v, %v", hosts, err)
		}
		for _, h := range hosts {
			if h.Requests > 100 {
				t.Errorf("%d requests to %s", h.Requests, h.Host)
			}
		}
		if l := f.net.Log(); l.Most > 1 || l.Gap < 250*time.Millisecond {
			t.Errorf("%+v", l)
		}
	})
}

// A Retry-After of a single page applies to all sites of its host, and to all workers.
func TestFleetRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 2, 0, 5*time.Minute, nil)
		defer f.net.Close()
		const wait = 40 * time.Minute
		var refused time.Time
		var refusals int
		f.net.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Host != fleetnet.Name(0) {
				return false
			}
			if early := wait - time.Since(refused); early > 0 {
				t.Errorf("%s is requested %s too early", r.URL, early)
			}
			if r.URL.Path != "/p9/llm.json" {
				return false
			}
			refused = time.Now()
			refusals++
			w.Header().Set("Retry-After", fmt.Sprint(wait.Seconds()))
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		if _, _, err := f.store.Fleet().Put(t.Context(), withoutErrors([]store.FleetSite{{URL: f.net.URL(0) + "folder/"}})); err != nil {
			t.Fatal(err)
		}
		stops := []func(){f.start(&worker{}), f.start(&worker{})}
		time.Sleep(4 * time.Hour)
		for _, stop := range stops {
			stop()
		}
		f.tasks.Wait()
		if refusals < 3 {
			t.Errorf("%d responses with Retry-After", refusals)
		}
		f.checkSite(1)
	})
}

// A slow site that redirects to another machine does not keep the other sites of that machine from
// being pulled.
func TestFleetSlowVisitor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 2, 0, 10*time.Minute, nil)
		defer f.net.Close()
		f.net.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Host == fleetnet.Name(0) {
				return false
			}
			if r.URL.Path == "/robots.txt" {
				http.Redirect(w, r, "http://"+fleetnet.Name(0)+r.URL.Path, http.StatusFound)
				return true
			}
			time.Sleep(25 * time.Second)
			return false
		}
		pause := func(paused bool) {
			if _, err := f.store.Fleet().Pause(t.Context(), store.FleetQuery{Sites: []string{f.net.URL(0)}}, paused); err != nil {
				t.Fatal(err)
			}
		}
		pause(true)
		stop := f.start(&worker{})
		time.Sleep(time.Minute)
		pause(false)
		time.Sleep(2 * time.Minute)
		stop()
		f.tasks.Wait()
		time.Sleep(25 * time.Second) // the slow response ends
		pulled := make(map[string]bool)
		for s, err := range f.store.Fleet().Sites(t.Context(), store.FleetQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			pulled[s.URL] = !s.Pulled.IsZero()
		}
		if !pulled[f.net.URL(0)] || pulled[f.net.URL(1)] {
			t.Errorf("pulled: %v", pulled)
		}
	})
}

// Sixty names of a wildcard share an address, so they become a network with a rate. A name whose
// address changes with every lookup does not move all day.
func TestFleetWildcard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 61, 0, 20*time.Minute, nil)
		defer f.net.Close()
		lookups := 0
		resolve := func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == fleetnet.Name(60) {
				lookups++
				return []netip.Addr{netip.AddrFrom4([4]byte{12, 0, byte(lookups >> 8), byte(lookups)})}, nil
			}
			return []netip.Addr{netip.AddrFrom4([4]byte{11, 1, 1, 1})}, nil
		}
		stop := f.start(&worker{resolve: resolve})
		time.Sleep(90 * time.Minute)
		stop()
		f.tasks.Wait()
		stats, err := f.store.Fleet().Stats(t.Context(), "")
		if err != nil || stats.New > 0 || stats.Failing > 0 || stats.Groups != 61 || stats.Lag[3] > time.Minute {
			t.Errorf("%+v, %v", stats, err)
		}
		for i := range f.hosts {
			f.checkSite(i)
		}
		if lookups < 4 {
			t.Errorf("%d lookups", lookups)
		}
	})
}

// The clock of the store is a day ahead of or behind those of the workers.
func TestFleetClocks(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleetTest(t, 10, 2, 20*time.Minute, &store.Options{Now: func() time.Time { return time.Now().Add(apart) }})
			defer f.net.Close()
			stops := []func(){f.start(&worker{}), f.start(&worker{})}
			time.Sleep(30 * time.Minute)
			f.net.Edit(4, 4)
			time.Sleep(23 * time.Minute)
			before := f.net.Log().Requests
			time.Sleep(40 * time.Minute)
			for _, stop := range stops {
				stop()
			}
			f.tasks.Wait()
			f.check()
			if n := f.net.Log().Requests - before; n < 10 || n > 40 {
				t.Errorf("%d requests to %d unchanged sites in 40 minutes", n, f.hosts)
			}
		})
	}
}

// The limits of requests and bytes a second hold for all workers together.
func TestFleetRate(t *testing.T) {
	t.Parallel()
	for _, w := range []*worker{{requests: 0.1}, {bytes: 60}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleetTest(t, 20, 0, 10*time.Minute, nil)
			defer f.net.Close()
			stops := []func(){f.start(&worker{requests: w.requests, bytes: w.bytes}), f.start(&worker{requests: w.requests, bytes: w.bytes})}
			const length = time.Hour
			time.Sleep(length)
			stats, err := f.store.Fleet().Stats(t.Context(), "")
			for _, stop := range stops {
				stop()
			}
			f.tasks.Wait()
			requests, bytes := float64(f.net.Log().Requests), float64(stats.Received)
			switch most := length.Seconds(); {
			case err != nil || stats.New > 0:
				t.Errorf("%+v, %v", stats, err)
			case w.requests > 0 && (requests > w.requests*most+2 || requests < w.requests*most/4):
				t.Errorf("%v requests, %v a second", requests, w.requests)
			case w.bytes > 0 && (bytes > w.bytes*most+20*20_000 || bytes < w.bytes*most/4):
				t.Errorf("%v bytes, %v a second", bytes, w.bytes)
			}
		})
	}
}

// A host with many sites gets one turn at a time. It delays no other host.
func TestFleetFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 6, 0, 5*time.Minute, nil)
		defer f.net.Close()
		many := make([]store.FleetSite, 100)
		for i := range many {
			many[i].URL = fmt.Sprintf("%sfolder%d/", f.net.URL(0), i)
		}
		if _, _, err := f.store.Fleet().Put(t.Context(), withoutErrors(many)); err != nil {
			t.Fatal(err)
		}
		stop := f.start(&worker{})
		for range 8 {
			time.Sleep(time.Minute)
			for s, err := range f.store.Fleet().Sites(t.Context(), store.FleetQuery{}) {
				now := time.Now()
				if err != nil || s.Host != fleetnet.Name(0) && (s.Pulled.IsZero() || now.Sub(s.Due) > 15*time.Second) {
					t.Errorf("%s is due for %s, pulled %s: %v", s.URL, now.Sub(s.Due), s.Pulled, err)
				}
			}
		}
		stop()
		f.tasks.Wait()
	})
}

// The log of a site keeps changes for the longest retention of its labels.
func TestFleetRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 3, 0, time.Hour, nil)
		defer f.net.Close()
		for i, labels := range [][]string{nil, {"short"}, {"short", "long"}} {
			if _, _, err := f.store.Fleet().Put(t.Context(), withoutErrors([]store.FleetSite{{URL: f.net.URL(i), Labels: labels}})); err != nil {
				t.Fatal(err)
			}
		}
		stop := f.start(&worker{retention: map[string]time.Duration{"short": time.Hour, "long": 50 * time.Hour}})
		time.Sleep(time.Hour)
		var cursors []millrace.Cursor
		heads := func() (all []millrace.View) {
			for i := range f.hosts {
				site, err := f.store.Site(t.Context(), f.net.URL(i), "")
				if err != nil {
					t.Fatal(err)
				}
				v, err := site.Head(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, v)
			}
			return all
		}
		for _, v := range heads() {
			cursors = append(cursors, v.Site().At(v.Site().Seq))
		}
		for i := range f.hosts {
			f.net.Edit(i, 0)
		}
		for page := range 3 {
			time.Sleep(90 * time.Minute)
			for i := range f.hosts {
				f.net.Edit(i, page)
			}
		}
		time.Sleep(2 * time.Hour)
		stop()
		f.tasks.Wait()
		for i, v := range heads() {
			var failed error
			for _, err := range v.Changes(t.Context(), cursors[i]) {
				failed = err
			}
			if got, want := errors.Is(failed, millrace.ErrConflict), i == 1; got != want {
				t.Errorf("site %d: %v", i, failed)
			}
		}
	})
}
