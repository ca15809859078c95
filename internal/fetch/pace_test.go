package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
)

func zero() float64 { return 0 }

// begin starts and ends a request.
func begin(ctx context.Context, p *pacer, host string) error {
	x, err := p.start(ctx, host, 0)
	if err == nil {
		x.done(fine)
	}
	return err
}

func TestDelayContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(time.Minute, 0, zero)
		if err := begin(t.Context(), p, "a.example"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := begin(ctx, p, "a.example")
		wantErr(t, err, context.DeadlineExceeded, "queue-timeout")
		if time.Since(began) != 0 {
			t.Error("waited without a need")
		}
		// A caller that gave up does not delay the next one.
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		wantErr(t, begin(ctx, p, "a.example"), context.Canceled, "")
		if err := begin(t.Context(), p, "a.example"); err != nil || time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		wantErr(t, begin(ctx, p, "b.example"), context.Canceled, "")
		// A third request fails at once because its turn would come after its deadline.
		for range 2 {
			go func() { _ = begin(t.Context(), p, "a.example") }()
		}
		synctest.Wait()
		ctx, cancel = context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		began = time.Now()
		wantErr(t, begin(ctx, p, "a.example"), context.DeadlineExceeded, "queue-timeout")
		if time.Since(began) != 0 {
			t.Error("waited without a need")
		}
	})
}

func TestDelayDropsHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(0, 0, zero)
		for i := range 10 * manyHosts {
			if err := begin(t.Context(), p, fmt.Sprintf("h%d.example", i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if n := len(p.hosts); n > 2*manyHosts {
			t.Errorf("%d hosts stored", n)
		}
	})
}

// Requests to a host start in order. A Crawl-delay longer than Delay sets the gap.
func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(time.Second, 0, zero)
		began := time.Now()
		var order []int
		var at []time.Duration
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				x, err := p.start(t.Context(), "a.example", []time.Duration{0, 0, 3 * time.Second}[min(i, 2)])
				if err != nil {
					t.Error(err)
					return
				}
				order, at = append(order, i), append(at, time.Since(began))
				x.done(fine)
			})
			synctest.Wait()
		}
		wg.Wait()
		if got := fmt.Sprint(order, at); got != "[0 1 2 3 4] [0s 1s 2s 5s 8s]" {
			t.Error(got)
		}
	})
}

// A body that is not closed is in flight until its timeout.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		c := newClient(t, Options{Concurrency: 3, Dial: memory(t, func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			_, _ = io.WriteString(w, strings.Repeat("x", 10000))
		})})
		client := c.HTTP()
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 12 {
			wg.Go(func() {
				resp, err := client.Do(get(t, "http://site.example/"))
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					_, _ = io.Copy(io.Discard, resp.Body)
				} else {
					_ = resp.Body.Close()
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); most.Load() != 3 || took != 4*time.Second {
			t.Errorf("%d concurrent requests, took %s", most.Load(), took)
		}
		var open []*http.Response
		began = time.Now()
		for range 4 {
			resp, err := client.Do(get(t, "http://site.example/"))
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, resp)
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+5*time.Second {
			t.Errorf("the fourth came after %s", took)
		}
		for _, resp := range open {
			_ = resp.Body.Close()
			_ = resp.Body.Close()
		}
		if h := c.pace.hosts["site.example"]; h.users != 0 || len(h.slots) != 0 || len(c.pace.slots) != 0 {
			t.Errorf("%d users, %d and %d slots taken", h.users, len(h.slots), len(c.pace.slots))
		}
	})
}

// All hosts share the slots of the client. Requests that wait for a slow host take no slots
// from other hosts.
func TestInFlightOfAllHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(0, 0, zero)
		var open []*pass
		for i := range maxInFlight {
			x, err := p.start(t.Context(), fmt.Sprintf("h%d.example", i), 0)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, x)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := p.start(ctx, "more.example", 0)
		wantErr(t, err, context.DeadlineExceeded, "")
		open[0].done(fine)
		for range 20 {
			go func() { _ = begin(t.Context(), p, "slow.example") }()
		}
		synctest.Wait()
		if err := begin(t.Context(), p, "other.example"); err != nil {
			t.Error(err)
		}
		for _, x := range open {
			x.done(fine)
		}
	})
}

// A Retry-After delays all requests to the host.
func TestRetryAfterHoldsTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		code  int
		after string
		want  time.Duration
	}{
		"429":       {429, "20", 20 * time.Second},
		"503":       {503, "20", 20 * time.Second},
		"long":      {503, "300", maxHold},
		"shorter":   {503, "0", time.Second}, // shorter than the backoff
		"not asked": {404, "20", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := New(&Options{Delay: -1, IgnoreRobots: true, Rand: zero, Dial: memory(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/busy" {
						w.Header().Set("Retry-After", c.after)
						w.WriteHeader(c.code)
					}
				})})
				defer cl.CloseIdleConnections()
				resp, err := cl.RoundTrip(get(t, "http://site.example/busy"))
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				began := time.Now()
				if _, err := fetchBody(t, cl, "http://other.example/"); err != nil || time.Since(began) != 0 {
					t.Errorf("another host after %s: %v", time.Since(began), err)
				}
				for range 3 { // only the first request is delayed
					if _, err := fetchBody(t, cl, "http://site.example:8080/"); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("waited %s, want %s", took, c.want)
				}
			})
		})
	}
}

// A request fails at once if Retry-After is longer than its limit.
func TestRetryAfterOfDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		c := newClient(t, Options{Rand: zero, Dial: memory(t, func(w http.ResponseWriter, _ *http.Request) {
			if busy {
				w.Header().Set("Retry-After", "864000")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})})
		began := time.Now()
		_, err := fetchBody(t, c, "http://site.example/1")
		wantErr(t, err, millrace.ErrUnavailable, "http-429")
		for range 20 {
			_, err := fetchBody(t, c, "http://site.example/2")
			wantErr(t, err, millrace.ErrUnavailable, "retry-after")
		}
		if s := c.Stats(); s.Requests != 1 || time.Since(began) != 0 {
			t.Errorf("%d requests in %s", s.Requests, time.Since(began))
		}
		time.Sleep(maxAsked)
		busy = false
		if _, err := fetchBody(t, c, "http://site.example/3"); err != nil {
			t.Error(err)
		}
	})
}

// A Retry-After also delays requests that already wait.
func TestRetryAfterHoldsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(time.Second, 0, zero)
		x, _ := p.start(t.Context(), "a.example", 0)
		began := time.Now()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _ = begin(t.Context(), p, "a.example") })
		}
		synctest.Wait()
		x.report(failing, 10*time.Second)
		x.done(failing)
		wg.Wait()
		if took := time.Since(began); took != 11*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// Successive failures delay the next request by 1, 2, 4, … 30 s until one succeeds. A wave of
// failures is one step.
func TestBackoffOfHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(-1, 0, zero)
		try := func(o outcome, n int) time.Duration {
			t.Helper()
			time.Sleep(time.Millisecond) // so that the last wave is over
			began := time.Now()
			var open []*pass
			for range n {
				x, err := p.start(t.Context(), "a.example", 0)
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, x)
			}
			took := time.Since(began)
			time.Sleep(time.Millisecond)
			for _, x := range open {
				x.done(o)
			}
			return took
		}
		var got []time.Duration
		for _, o := range []outcome{failing, failing, failing, failing, failing, failing, failing, fine, fine, failing, fine, fine, faulty, faulty, failing, unknown, fine} {
			got = append(got, try(o, 1))
		}
		want := "[0s 999ms 1.999s 3.999s 7.999s 15.999s 29.999s 29.999s 0s 0s 999ms 0s 0s 0s 999ms 3.999s 0s]"
		if fmt.Sprint(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := []time.Duration{try(failing, 10), try(fine, 1), try(fine, 1)}; fmt.Sprint(got) != "[0s 999ms 0s]" {
			t.Errorf("a wave of ten: %s", got)
		}
	})
}

func TestHostPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, asked := true, 0
		c := newClient(t, Options{Rand: zero, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if asked++; down {
				return nil, errors.New("unavailable")
			}
			return raw(t, func(c net.Conn, _ *http.Request) {
				say(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			})(ctx, network, addr)
		}})
		for i := range 8 {
			_, err := fetchBody(t, c, "http://site.example/")
			wantErr(t, err, millrace.ErrUnavailable, "unavailable")
			if asked != i+1 {
				t.Fatalf("%d requests after %d", asked, i+1)
			}
		}
		rest := func(failures int, wait time.Duration) {
			t.Helper()
			began := time.Now()
			_, err := fetchBody(t, c, "http://site.example/")
			wantErr(t, err, millrace.ErrUnavailable, "host-paused")
			if r, ok := errors.AsType[*PauseError](err); !ok || r.Host != "site.example" || r.Failures != failures || r.Wait != wait || time.Since(began) != 0 {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		}
		fails := 8
		for _, d := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
			for range 10 {
				rest(fails, d)
			}
			time.Sleep(d - time.Second)
			rest(fails, time.Second)
			time.Sleep(time.Second)
			if _, err := fetchBody(t, c, "http://site.example/"); millrace.ErrorCode(err) != "unavailable" {
				t.Error(err)
			}
			if fails++; asked != fails {
				t.Errorf("%d requests, %d failed", asked, fails)
			}
		}
		down = false
		time.Sleep(5 * time.Minute)
		for range 3 {
			if body, err := fetchBody(t, c, "http://site.example/"); err != nil || body != "ok" {
				t.Errorf("%q, %v", body, err)
			}
		}
		if asked != fails+3 {
			t.Errorf("%d asked", asked-fails)
		}
	})
}

// One request tests a paused host. If that request is canceled, the next one tests the host.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(-1, 0, zero)
		for range restAfter {
			x, err := p.start(t.Context(), "a.example", 0)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			x.done(failing)
		}
		time.Sleep(firstPause)
		for range 3 {
			probe, err := p.start(t.Context(), "a.example", 0)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			wantErr(t, begin(t.Context(), p, "a.example"), millrace.ErrUnavailable, "host-paused")
			probe.done(unknown)
		}
		if err := begin(t.Context(), p, "a.example"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := begin(t.Context(), p, "a.example"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A page that always fails delays its host only briefly. Three failing pages in a row pause the
// host.
func TestRepeatedFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Options{Rand: zero, Dial: raw(t, func(conn net.Conn, r *http.Request) {
			if r.URL.Path == "/fine" {
				say(conn, "HTTP/1.1 204 x\r\nConnection: close\r\n\r\n")
			}
		})})
		began := time.Now()
		ask := func(path, text string, want time.Duration) {
			t.Helper()
			_, err := fetchBody(t, c, "http://site.example"+path)
			if millrace.ErrorCode(err) != text {
				t.Errorf("%v: code %q, want %q", err, millrace.ErrorCode(err), text)
			}
			if took := time.Since(began); took != want*time.Second {
				t.Errorf("%s after %s, want %s", path, took, want*time.Second)
			}
		}
		ask("/1", "connection-closed", 7)
		ask("/fine", "", 8)
		ask("/1", "connection-closed", 8+7)
		ask("/2", "connection-closed", 15+1+2+2+4)
		ask("/3", "host-paused", 24+2+1)
	})
}

// Many requests that fail at the same moment do not pause the host.
func TestShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(-1, 100, zero)
		var open []*pass
		for range 100 {
			x, err := p.start(t.Context(), "a.example", 0)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, x)
		}
		time.Sleep(time.Second)
		for _, x := range open {
			x.done(failing)
		}
		began := time.Now()
		if err := begin(t.Context(), p, "a.example"); err != nil || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// All times of a pass and its host have a monotonic reading, so setting the clock does not
// change them.
func TestMonotonic(t *testing.T) {
	p := newPacer(time.Nanosecond, 0, zero)
	x, err := p.start(t.Context(), "a.example", 0)
	if err != nil {
		t.Fatal(err)
	}
	x.report(failing, time.Second)
	for _, at := range []time.Time{x.began, x.h.next, x.h.hold, x.h.retry, x.h.failed} {
		if !strings.Contains(at.String(), " m=") {
			t.Error(at)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	p := newPacer(0, 0, zero)
	for b.Loop() {
		x, err := p.start(b.Context(), "localhost", 0)
		if err != nil {
			b.Fatal(err)
		}
		x.done(fine)
	}
}

// A server may receive a request late. A client that sends one at a time still leaves the gap
// between two requests, as the server sees them, whatever their hosts.
func TestGapAtServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var received []time.Time
		dial := raw(t, func(c net.Conn, r *http.Request) {
			time.Sleep([]time.Duration{0, 900 * time.Millisecond, 100 * time.Millisecond}[len(received)%3]) // on the way
			received = append(received, time.Now())
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		})
		c := newClient(t, Options{SharedQueues: newClient(t, Options{Dial: dial}), Dial: dial, Concurrency: 1, Gap: func(string) time.Duration { return time.Second }})
		for i := range 8 {
			res, err := c.HTTP().Get([]string{"http://a.example/", "http://a.example/", "http://b.example/"}[i%3])
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
		}
		for i, at := range received[1:] {
			if gap := at.Sub(received[i]); gap < time.Second {
				t.Errorf("request %d follows after %s", i+1, gap)
			}
		}
	})
}
