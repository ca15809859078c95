package agent

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/store"
)

// Hosts that send nothing, that send a byte in a while for an hour, and that redirect every
// request to another host, delay no other site of the same workers.
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
			case fleetnet.Name(2): // is always somewhere else
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
		for i := 3; i < f.hosts; i++ {
			f.checkSite(i)
		}
		stats, err := f.store.Fleet().Stats(t.Context())
		if err != nil || stats.Failing != 3 || stats.Lag[3] > 2*time.Minute {
			t.Errorf("%+v, %v", stats, err)
		}
		hosts, err := f.store.Fleet().Hosts(t.Context(), 10)
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

// Sixty names of a wildcard share an address. They become a network with a rate, and one name
// whose address changes with every look-up does not move all day.
func TestFleetWildcard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 61, 0, time.Hour, nil)
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
		time.Sleep(4 * time.Hour)
		stop()
		f.tasks.Wait()
		stats, err := f.store.Fleet().Stats(t.Context())
		if err != nil || stats.New > 0 || stats.Failing > 0 || stats.Groups != 61 || stats.Lag[3] > time.Minute {
			t.Errorf("%+v, %v", stats, err)
		}
		for i := range f.hosts {
			f.checkSite(i)
		}
		if lookups < 4 {
			t.Errorf("%d look-ups", lookups)
		}
	})
}

// The clock of the store is a day ahead of those of the workers, or behind.
func TestFleetClocks(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleetTest(t, 10, 2, time.Hour, &store.Options{Now: func() time.Time { return time.Now().Add(apart) }})
			defer f.net.Close()
			stops := []func(){f.start(&worker{}), f.start(&worker{})}
			time.Sleep(90 * time.Minute)
			f.net.Edit(4, 4)
			time.Sleep(65 * time.Minute)
			before := f.net.Log().Requests
			time.Sleep(2 * time.Hour)
			for _, stop := range stops {
				stop()
			}
			f.tasks.Wait()
			f.check()
			if n := f.net.Log().Requests - before; n < 10 || n > 40 {
				t.Errorf("%d requests to %d unchanged sites in 2 hours", n, f.hosts)
			}
		})
	}
}
