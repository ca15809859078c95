package fetch

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A gap applies as soon as it is set; a longer Crawl-delay still takes precedence.
func TestLimitGap(t *testing.T) {
	for _, tt := range []struct {
		robots string
		gap    time.Duration
		want   []time.Duration // times of the page requests
	}{
		{"", 0, []time.Duration{0, 0, 0}},
		{"", 10 * time.Second, []time.Duration{0, 10 * time.Second, 20 * time.Second}},
		{"User-agent: *\nCrawl-delay: 30\n", 10 * time.Second, []time.Duration{30 * time.Second, time.Minute, 90 * time.Second}},
		{"", 24 * time.Hour, []time.Duration{0, time.Minute, 2 * time.Minute}},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var at []time.Duration
			c := New(&Options{Delay: -1, AllowPrivate: true, Dial: memory(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == robotsPath {
					_, _ = w.Write([]byte(tt.robots))
					return
				}
				at = append(at, time.Since(began))
			})})
			defer c.CloseIdleConnections()
			ask := func() {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://Site.example/", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := Do(t.Context(), c.HTTP(), req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			ask()
			c.SetLimit("site.example", Limit{Gap: tt.gap})
			ask()
			ask()
			for i := range at {
				if len(at) != len(tt.want) || at[i]-at[0] != tt.want[i]-tt.want[0] {
					t.Errorf("gap %s, %q: requests at %v, want %v", tt.gap, tt.robots, at, tt.want)
					break
				}
			}
		})
	}
}

// A request over the limit is not sent and fails at once with the error of Take.
func TestLimitTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent, taken atomic.Int64
		c := New(&Options{Delay: -1, AllowPrivate: true, Dial: memory(t, func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			if !strings.HasSuffix(r.URL.Path, "/x") && r.URL.Path != robotsPath {
				http.Redirect(w, r, r.URL.Path+"/x", http.StatusFound)
			}
		})})
		defer c.CloseIdleConnections()
		spent := errors.New("daily limit reached")
		c.SetLimit("site.example", Limit{Take: func(context.Context) error {
			if taken.Add(1) > 5 {
				return spent
			}
			return nil
		}})
		began := time.Now()
		var err error
		for i := range 4 { // one request for robots.txt, then two per page
			var req *http.Request
			if req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, "http://site.example/page", nil); err != nil {
				t.Fatal(err)
			}
			var resp *http.Response
			if resp, err = Do(t.Context(), c.HTTP(), req); err == nil {
				_ = resp.Body.Close()
			}
			if (i < 2) != (err == nil) {
				t.Fatalf("request %d: %v", i+1, err)
			}
		}
		if !errors.Is(err, spent) || sent.Load() != 5 || time.Since(began) != 0 {
			t.Errorf("%d requests in %s, then %v", sent.Load(), time.Since(began), err)
		}
		if n := c.Stats().Requests; n != 5 {
			t.Errorf("%d requests are counted", n)
		}
		// The limit does not apply to other hosts.
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://other.example/x", nil)
		if resp, err := Do(t.Context(), c.HTTP(), req); err != nil {
			t.Error(err)
		} else {
			_ = resp.Body.Close()
		}
	})
}
