package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/store/memory"
)

// What a site says of requests keeps two pulls apart.
func TestWatchGap(t *testing.T) {
	t.Parallel()
	robots := "User-agent: *\nCrawl-delay: 20\n"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, robots)
	}))
	defer site.Close()
	a, err := New(memory.New(nil), &Options{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	w := a.newWatch(nil)
	s, err := w.open(t.Context(), site.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		report Report
		want   time.Duration
	}{
		{Report{}, 20 * time.Second},
		{Report{Policy: &Policy{PerSecond: 0.04}}, 25 * time.Second},
		{Report{Policy: &Policy{PerSecond: 0.0001}}, time.Minute},
		{Report{Policy: &Policy{PerDay: 100}, Requests: 10}, 144 * time.Minute},
		{Report{Policy: &Policy{PerDay: 100}, Requests: 1000}, 24 * time.Hour},
		{Report{Error: "failed"}, 0},
	} {
		if got := w.gap(t.Context(), s, &tt.report); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.report, got, tt.want)
		}
	}
	now := time.Now()
	again := now.Add(5 * time.Hour)
	if got := asked(&Report{GoOn: &again}, &fetch.StatusError{RetryAfter: time.Hour}, now); !got.Equal(again) {
		t.Errorf("asked for %s", got.Sub(now))
	}
	if got := asked(&Report{}, &fetch.StatusError{RetryAfter: time.Hour}, now); !got.Equal(now.Add(time.Hour)) {
		t.Errorf("asked for %s", got.Sub(now))
	}
}
