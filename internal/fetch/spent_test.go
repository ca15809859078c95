package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// At the limit, a client sends no more requests. Requests in flight may receive as many bytes
// again, and bodies that they complete are valid.
func TestMaxReceived(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := 10_000
		if r.URL.Path == "/large" {
			size = 10_000_000
		}
		_, _ = fmt.Fprint(w, strings.Repeat("x", size))
	}))
	defer srv.Close()
	c := New(&Options{AllowPrivate: true, IgnoreRobots: true, MaxReceived: 25_000})
	ask := func(path string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := Do(t.Context(), c.HTTP(), req)
		if err != nil {
			return 0, err
		}
		b, err := ReadBody(resp, 0)
		return len(b), err
	}
	for range 3 { // the third was in flight at the limit
		if n, err := ask("/"); n != 10_000 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	n, err := ask("/")
	for again := range 2 {
		if again > 0 {
			c = New(&Options{AllowPrivate: true, IgnoreRobots: true, MaxReceived: 25_000})
			n, err = ask("/large")
		}
		if spent, ok := errors.AsType[*QuotaError](err); !ok || spent.Limit != 25_000 || !errors.Is(err, millrace.ErrUnavailable) {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	if s := c.Stats(); s.Requests != 1 || s.Received() > 2*25_000+100_000 {
		t.Errorf("%d requests, %d bytes", s.Requests, s.Received())
	}
}

// Clients that share queues keep the gap between their requests.
func TestSharedQueues(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	a := New(&Options{AllowPrivate: true, IgnoreRobots: true, Delay: 30 * time.Millisecond})
	b := New(&Options{AllowPrivate: true, IgnoreRobots: true, SharedQueues: a})
	begin := time.Now()
	for i := range 6 {
		c := []*Client{a, b}[i%2]
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.HTTP().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if d := time.Since(begin); d < 150*time.Millisecond {
		t.Errorf("6 requests in %s", d)
	}
	if n, m := a.Stats().Requests, b.Stats().Requests; n != 3 || m != 3 {
		t.Errorf("%d and %d requests are counted", n, m)
	}
}
