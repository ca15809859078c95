package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/store"
)

// spent is a store.Costs in memory.
type spent struct {
	store.Costs
	mu    sync.Mutex
	sum   store.Traffic
	times int
	err   error
}

func (l *spent) Add(_ context.Context, _, _ string, t store.Traffic) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum.Add(t) // even on error: the write may have been durable
	l.times++
	return l.err
}

func (l *spent) Of(context.Context, string) ([]store.SiteCost, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return []store.SiteCost{{Site: "site", Protocol: "scp", Traffic: l.sum}}, nil
}

func (l *spent) so() (store.Traffic, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum, l.times
}

// A running pull adds its costs to the store in parts. A killed pull loses only the last part,
// and a failed write does not add a part twice.
func TestMeterBooksOnce(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "body") }))
	defer srv.Close()
	for _, fails := range []error{nil, errors.New("perhaps")} {
		client, book := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true}), &spent{err: fails}
		m := measure(t.Context(), book, client, "site", slog.New(slog.DiscardHandler), time.Millisecond)
		m.begin("site", "scp")
		sum, times := book.so()
		for deadline := time.Now().Add(5 * time.Minute); times < 3 && time.Now().Before(deadline); sum, times = book.so() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.HTTP().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fetch.ReadBody(resp, 0); err != nil {
				t.Fatal(err)
			}
		}
		if times < 3 || sum.Received == 0 || sum.Pulls != 0 || sum.Pages != 0 {
			t.Fatalf("while it goes on: %d times, %+v", times, sum)
		}
		total, _ := m.end(t.Context(), true)
		stats := client.Stats()
		want := store.Traffic{Pulls: 1, Failed: 1, Requests: stats.Requests, Received: stats.Received()}
		sum, _ = book.so()
		if d := cmp.Diff([]store.Traffic{want, want}, []store.Traffic{total, sum}); d != "" {
			t.Errorf("in the end (-want +got):\n%s", d)
		}
	}
}
