package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
)

// slowly returns a gateway with a long list and rate limits.
func slowly(t *testing.T, o Options) *Gateway {
	t.Helper()
	var pages []*millrace.Page
	for i := range 100 {
		pages = append(pages, page(fmt.Sprintf("/p%d/", i), "P"))
	}
	return setup{pages: pages, o: o}.gateway(t)
}

// A large document is sent at the rate of its client, and all together at the total rate.
// Small documents and responses without a body are not delayed.
func TestFilesRate(t *testing.T) {
	get := func(g *Gateway, method, target, from string) (size int, took time.Duration) {
		r := httptest.NewRequest(method, target, nil)
		r.RemoteAddr = from + ":1"
		w, start := httptest.NewRecorder(), time.Now()
		if g.ServeHTTP(w, r); w.Code != 200 {
			t.Errorf("%s: %d", target, w.Code)
		}
		return w.Body.Len(), time.Since(start)
	}
	near := func(what string, took, want time.Duration) {
		t.Helper()
		if took < want-time.Second || took > want+time.Second {
			t.Errorf("%s: %v, want %v", what, took, want)
		}
	}
	for _, c := range []struct {
		each, all float64
		one, two  float64 // bytes per second: of one client, and of each of two at once
	}{{2000, 0, 2000, 2000}, {0, 2000, 2000, 1000}, {2000, 3000, 2000, 1500}} {
		g := slowly(t, Options{Access: access.Options{FilesRate: c.each, FilesRateTotal: c.all}})
		synctest.Test(t, func(t *testing.T) {
			length, took := get(g, "GET", "/llm-pages.json", "192.0.2.1")
			if length < 10_000 {
				t.Fatalf("%d bytes", length)
			}
			expect := func(rate float64) time.Duration {
				return time.Duration((float64(length)/rate - 2) * float64(time.Second))
			}
			near("one", took, expect(c.one))
			time.Sleep(time.Hour)
			var both sync.WaitGroup
			for i := range 2 {
				both.Go(func() {
					_, took := get(g, "GET", "/llm-pages.json", fmt.Sprintf("192.0.2.%d", 8+i))
					// Only the last of the clients takes the full time.
					if want := expect(c.two); took > want+2*time.Second || took < want-2*time.Second-time.Duration(float64(2)*float64(time.Second)) {
						t.Errorf("two clients: %v, want %v", took, want)
					}
				})
			}
			both.Wait()
			_, took = get(g, "HEAD", "/llm-pages.json", "192.0.2.8")
			near("head", took, 0)
			_, took = get(g, "GET", "/p1/llm.json", "192.0.2.8")
			near("page", took, 0)
		})
	}
}

// Slow downloads leave slots for other requests. A client that disconnects frees its slot.
func TestFilesPlaces(t *testing.T) {
	g := slowly(t, Options{Access: access.Options{FilesRate: 1000, MaxRequests: 8}})
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		var slow sync.WaitGroup
		for i := range 2 {
			slow.Go(func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/llm-pages.json", nil)
				r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", 8+i)
				w := httptest.NewRecorder()
				g.ServeHTTP(w, r)
				if n, _ := io.Copy(io.Discard, w.Body); n == 0 {
					t.Error("nothing was sent")
				}
			})
		}
		synctest.Wait()
		if w := ask(g, "GET", "/llm-pages.json"); w.Code != 429 || w.Header().Get("Retry-After") == "" || w.Header().Get("Content-Digest") != "" {
			t.Errorf("a third download: %d %v", w.Code, w.Header())
		}
		if w := ask(g, "GET", "/p1/llm.json"); w.Code != 200 {
			t.Errorf("a page: %d", w.Code)
		}
		leave()
		slow.Wait()
		if w := ask(g, "HEAD", "/llm-pages.json"); w.Code != 200 {
			t.Errorf("after they have disconnected: %d", w.Code)
		}
	})
}

// A client with many downloads leaves slots for others. A client that disconnects while it
// waits uses no slot.
func TestFilesFlood(t *testing.T) {
	g := slowly(t, Options{Access: access.Options{FilesRate: 1e6, FilesRateTotal: 2000, MaxRequests: 64}})
	get := func(ctx context.Context, from string) int {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/llm-pages.json", nil)
		r.RemoteAddr = from + ":1"
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w.Code
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		var refused atomic.Int64
		for range 100 {
			flood.Go(func() {
				if get(ctx, "192.0.2.1") == http.StatusTooManyRequests {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if refused.Load() != 92 {
			t.Errorf("one client with 100 downloads was refused %d times, want 92 (8 of 16 slots)", refused.Load())
		}
		leave()
		flood.Wait()
		gone, leave := context.WithCancel(t.Context())
		leave()
		for range 1000 {
			get(gone, "192.0.2.1")
		}
		start := time.Now()
		if status := get(t.Context(), "192.0.2.2"); status != http.StatusOK || time.Since(start) > 20*time.Second {
			t.Errorf("another client: %d after %v", status, time.Since(start))
		}
	})
}
