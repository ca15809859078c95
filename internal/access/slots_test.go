package access

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// One client gets at most half of the slots. The others are for clients with few requests.
func TestStreams(t *testing.T) {
	s := NewSlots(100, nil)
	greedy := Client{from: netip.MustParseAddr("192.0.2.1")}
	var ends []func()
	for range 50 {
		end, err := s.Enter(greedy)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, err := s.Enter(greedy); !errors.Is(err, ErrTooManyStreams) {
		t.Errorf("more than half: %v", err)
	}
	for key := range 9 {
		who := Client{key: string(rune('a' + key))}
		for n := range 7 {
			end, err := s.Enter(who)
			switch {
			case err == nil:
				ends = append(ends, end)
			case s.open == 100 && errors.Is(err, ErrBusy):
			case n < s.few() || !errors.Is(err, ErrTooManyStreams):
				t.Errorf("%v's stream %d: %v", who, n, err)
			}
		}
	}
	if s.open != 100 {
		t.Errorf("%d streams of 100", s.open)
	}
	for _, end := range ends {
		end()
	}
	if s.open != 0 || len(s.each) != 0 {
		t.Errorf("%d open, of %v", s.open, s.each)
	}
}

// A client whose streams end at once waits before the next one, unless it disconnects. Other
// clients and long streams do not wait.
func TestShortStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Guard{streams: NewSlots(100, nil)}
		open := func(from string, lasts time.Duration) (waited time.Duration) {
			t.Helper()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.RemoteAddr = from + ":4711"
			q, begun := g.Request(r), time.Now()
			end, err := q.Listen(r.Context())
			if err != nil {
				t.Fatal(err)
			}
			waited = time.Since(begun)
			time.Sleep(lasts)
			end()
			time.Sleep(time.Millisecond) // no two streams end at the same time
			return waited
		}
		for i := range 3*manyShort + 1 {
			want := time.Duration(0)
			if i > 0 && i%manyShort == 0 {
				want = shortStream
			}
			if got := open("192.0.2.1", 0); got != want {
				t.Errorf("stream %d waited for %s, want %s", i, got, want)
			}
		}
		if got := open("192.0.2.2", 0); got != 0 {
			t.Errorf("another client waited for %s", got)
		}
		for range 2 * manyShort {
			if got := open("192.0.2.3", shortStream); got != 0 {
				t.Errorf("a client of long streams waited for %s", got)
			}
		}
		for range manyShort {
			open("192.0.2.4", 0)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.RemoteAddr = "192.0.2.4:4711"
		q := g.Request(r)
		if _, err := q.Listen(ctx); !errors.Is(err, context.Canceled) || g.Listening() != 0 {
			t.Errorf("after the client has disconnected: %v, %d streams", err, g.Listening())
		}
		time.Sleep(2 * shortStream)
		g.streams.mu.Lock()
		defer g.streams.mu.Unlock()
		if len(g.streams.short) > 0 {
			t.Errorf("remembered: %v", g.streams.short)
		}
	})
}
