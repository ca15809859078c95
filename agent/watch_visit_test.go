package agent

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/store"
)

// A turn that is redirected to a host keeps the Crawl-delay of that host, and the delay of the other
// hosts of its machine.
func TestFleetVisitDelay(t *testing.T) {
	t.Parallel()
	for _, slow := range []int{0, 1} { // host with the Crawl-delay; host 0 has a site, host 1 is only visited
		synctest.Test(t, func(t *testing.T) {
			f := newFleetTest(t, 6, 2, 20*time.Minute, nil)
			defer f.net.Close()
			var mu sync.Mutex
			var last time.Time
			visits := 0
			f.net.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				shared := r.Host == fleetnet.Name(0) || r.Host == fleetnet.Name(1)
				switch {
				case shared && r.URL.Path == "/robots.txt":
					if r.Host == fleetnet.Name(slow) {
						fmt.Fprint(w, "User-agent: *\nCrawl-delay: 20\n")
					}
					return r.Host == fleetnet.Name(slow)
				case shared:
					if gap := time.Since(last); gap < 20*time.Second {
						t.Errorf("Crawl-delay of host %d: %s%s %s after the last request", slow, r.Host, r.URL, gap)
					}
					if last = time.Now(); r.Host == fleetnet.Name(1) {
						visits++
					}
				case strings.HasPrefix(r.URL.Path, "/p"):
					http.Redirect(w, r, f.net.URL(1)+r.URL.Path[1:], http.StatusFound)
					return true
				}
				return false
			}
			pause := func(paused bool, hosts ...int) {
				var q store.FleetQuery
				for _, i := range hosts {
					q.Sites = append(q.Sites, f.net.URL(i))
				}
				if _, err := f.store.Fleet().Pause(t.Context(), q, paused); err != nil {
					t.Fatal(err)
				}
			}
			if pause(true, 1, 2, 3, 4, 5); slow == 1 {
				pause(true, 0)
			}
			stops := []func(){f.start(&worker{}), f.start(&worker{})}
			time.Sleep(10 * time.Minute)
			pause(false, 2, 3, 4, 5)
			time.Sleep(20 * time.Minute)
			for _, stop := range stops {
				stop()
			}
			f.tasks.Wait()
			if visits < 20 {
				t.Errorf("%d visits", visits)
			}
		})
	}
}

// The requests for subscriptions and event streams, which belong to no pull, also keep to one request
// at a time and to the delay.
func TestFleetPush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 21, 5, 20*time.Minute, nil)
		defer f.net.Close()
		const hub = 20
		if _, err := f.store.Fleet().Remove(t.Context(), store.FleetQuery{Sites: []string{f.net.URL(hub)}}, false); err != nil {
			t.Fatal(err)
		}
		var asked, streams atomic.Int64
		f.net.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			time.Sleep(100 * time.Millisecond)
			switch r.URL.Path {
			case "/hub":
				asked.Add(1)
				w.WriteHeader(http.StatusAccepted)
			case "/.well-known/openfeeder.json":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"version":"1.0","site":{"name":"x","url":"http://%s/","language":"en"},"feed":{"endpoint":"/openfeeder","type":"paginated"},"capabilities":[],"events":{"endpoint":"/events","type":"text/event-stream"}}`, r.Host)
			case "/openfeeder":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"schema":"openfeeder/1.0","type":"index","page":1,"total_pages":1,"items":[]}`)
			case "/events":
				streams.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
			case "/":
				w.Header().Set("Link", fmt.Sprintf(`<%shub>; rel="hub", <http://%s/>; rel="self"`, f.net.URL(hub), r.Host))
				w.Header().Set("Content-Type", "text/html")
			default:
				return false
			}
			return true
		}
		w := &worker{callback: "https://reader.example/push", via: "openfeeder"}
		stops := []func(){f.start(w), f.start(w)}
		time.Sleep(2 * time.Hour)
		for _, stop := range stops {
			stop()
		}
		f.tasks.Wait()
		time.Sleep(time.Second) // responses to requests that were canceled end
		if l := f.net.Log(); l.Most > 1 || l.Gap < 250*time.Millisecond || asked.Load() < 40 || streams.Load() < 40 {
			t.Errorf("%+v; %d requests to the hub, %d streams", l, asked.Load(), streams.Load())
		}
	})
}

// Sites without an event stream do not keep a worker from listening to those that have one.
func TestFleetManyWithoutStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hosts, with = maxFollowed + 40, 40 // the last ones have a stream
		f := newFleetTest(t, hosts, 0, 20*time.Minute, nil)
		defer f.net.Close()
		var mu sync.Mutex
		streams := make(map[string]bool)
		f.net.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			events := ""
			var i int
			if _, err := fmt.Sscanf(r.Host, "h%d.example", &i); err == nil && i >= hosts-with {
				events = `,"events":{"endpoint":"/events","type":"text/event-stream"}`
			}
			switch r.URL.Path {
			case "/.well-known/openfeeder.json":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"version":"1.0","site":{"name":"x","url":"http://%s/","language":"en"},"feed":{"endpoint":"/openfeeder","type":"paginated"},"capabilities":[]%s}`, r.Host, events)
			case "/openfeeder":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"schema":"openfeeder/1.0","type":"index","page":1,"total_pages":1,"items":[]}`)
			case "/events":
				mu.Lock()
				streams[r.Host] = true
				mu.Unlock()
				w.Header().Set("Content-Type", "text/event-stream")
			default:
				return false
			}
			return true
		}
		stop := f.start(&worker{via: "openfeeder"})
		time.Sleep(45 * time.Minute)
		stop()
		f.tasks.Wait()
		time.Sleep(time.Second) // responses to requests that were canceled end
		if len(streams) != with {
			t.Errorf("%d sites are listened to", len(streams))
		}
	})
}

// The keys of signatures are fetched in the turn of their site: the machine gets one request at a
// time, with at least the delay between them.
func TestFleetKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 20, 5, 20*time.Minute, nil)
		defer f.net.Close()
		key, err := webauth.NewKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		stamp := webauth.NewStamp(key, "")
		var asked atomic.Int64
		f.net.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			time.Sleep(100 * time.Millisecond)
			if r.URL.Path == webauth.DirectoryPath {
				asked.Add(1)
				http.NotFound(w, r)
				return true
			}
			header := http.Header{"Content-Type": {"text/html"}, "Content-Digest": {canon.Digest(nil)}}
			input, value, _, err := stamp.Sign(r.URL.RequestURI(), http.StatusOK, header)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Signature-Input", input)
			w.Header().Set("Signature", value)
			return false
		}
		stops := []func(){f.start(&worker{}), f.start(&worker{})}
		time.Sleep(time.Hour)
		for _, stop := range stops {
			stop()
		}
		f.tasks.Wait()
		if asked.Load() < 20 {
			t.Errorf("%d requests for keys", asked.Load())
		}
		f.check()
	})
}
