package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/memory"
)

// The rate limits of a site set the minimum time between two pulls.
func TestWatchGap(t *testing.T) {
	t.Parallel()
	robots := "User-agent: *\nCrawl-delay: 20\n"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, robots)
	}))
	defer site.Close()
	a, err := New(memory.New(nil), &Options{AllowPrivate: true, Dial: new(net.Dialer).DialContext})
	if err != nil {
		t.Fatal(err)
	}
	w := a.newWatch(nil)
	leased := &turn{until: time.Now().Add(time.Hour)}
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
		if delay, got := w.limits(t.Context(), leased, site.URL, &tt.report); got != tt.want || delay > got {
			t.Errorf("%+v: %s, want %s; a delay of %s", tt.report, got, tt.want, delay)
		}
	}
	now := time.Now()
	again := now.Add(5 * time.Hour)
	if got := nextAllowed(&Report{ContinueAfter: &again}, time.Hour, now); !got.Equal(again) {
		t.Errorf("asked for %s", got.Sub(now))
	}
	if got := nextAllowed(&Report{}, time.Hour, now); !got.Equal(now.Add(time.Hour)) {
		t.Errorf("asked for %s", got.Sub(now))
	}
}

// An event is repeated until the loop body accepts it. An event that is too large is repeated in
// parts. The next Watch of the same receiver yields only new changes.
func TestWatchDelivers(t *testing.T) {
	t.Parallel()
	mill := fstest.MapFS{
		"index.html": {Data: []byte(`<title>Mill</title><p>The mill has <a href="wheel.html">a wheel</a>, which turns the stone day and night.</p>`)},
		"wheel.html": {Data: []byte(`<title>Wheel</title><p>The wheel has forty buckets, each of which holds eight liters of water.</p>`)},
	}
	site := httptest.NewServer(http.FileServerFS(mill))
	defer site.Close()
	a, err := New(memory.New(nil), &Options{AllowPrivate: true, Dial: new(net.Dialer).DialContext})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var titles []string
	refused := 0
	for e, err := range a.Watch(ctx, []string{site.URL}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Lines) > 1 {
			refused++
			e.Refuse(millrace.ErrTooLarge)
			continue
		}
		changes, err := e.Changes()
		if err != nil || changes[0].Change != "added" {
			t.Fatalf("%+v, %v", changes, err)
		}
		if titles = append(titles, changes[0].Title); len(titles) == 2 {
			break
		}
	}
	if slices.Sort(titles); !slices.Equal(titles, []string{"Mill", "Wheel"}) {
		t.Errorf("%q, %d refused", titles, refused)
	}
	again, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for e, err := range a.Watch(again, []string{site.URL}, nil) {
		t.Errorf("again: %+v, %v", e, err)
	}
	gone := 0
	last, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for e, err := range a.Watch(last, []string{site.URL}, &WatchOptions{Receiver: "other"}) {
		if err != nil {
			t.Fatal(err)
		}
		gone++
		e.Refuse(millrace.ErrNotFound)
	}
	if gone != 1 {
		t.Errorf("%d events for a receiver that is gone", gone)
	}
}
