package access

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestProxies(t *testing.T) {
	g := &Guard{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	for _, c := range []struct {
		remote, forwarded, want string
	}{
		{"192.0.2.1:80", "198.51.100.1", "192.0.2.1"}, // not a proxy
		{"10.0.0.1:80", "", "10.0.0.1"},
		{"10.0.0.1:80", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:80", "203.0.113.9, 198.51.100.1", "198.51.100.1"}, // the client sent the first address itself
		{"10.0.0.1:80", "203.0.113.9, 198.51.100.1, 10.2.3.4", "198.51.100.1"},
		{"10.0.0.1:80", "203.0.113.9|198.51.100.1", "10.0.0.1"},
		{"10.0.0.1:80", "198.51.100.1, unknown", "10.0.0.1"},
		{"10.0.0.1:80", "198.51.100.1,", "10.0.0.1"},
		{"10.0.0.1:80", "10.0.0.7", "10.0.0.7"},
		{"[::1]:80", "[2001:db8::1]:443", "2001:db8::1"},
		{"[::1]:80", "2001:db8::1", "2001:db8::1"},
		{"[::ffff:10.0.0.1]:80", "198.51.100.1:99", "198.51.100.1"},
		{"nonsense", "198.51.100.1", "invalid IP"},
		{"10.0.0.1:80", `fe80::1%"x\ y`, "fe80::1"}, // a zone may be any text and must not reach the log
		{"[::1%lo]:80", "198.51.100.1", "198.51.100.1"},
	} {
		for n := range 2 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.remote
			for i, part := range strings.SplitN(c.forwarded, ", ", n+1) { // in one field or two
				if i == 0 && c.forwarded == "" {
					continue
				}
				r.Header.Add("X-Forwarded-For", part)
			}
			if n == 0 && c.forwarded != "" {
				r.Header.Set("X-Forwarded-For", c.forwarded)
			}
			if got := (&Request{guard: g, r: r}).Address().String(); got != c.want {
				t.Errorf("%s, %q: %s, want %s", c.remote, r.Header["X-Forwarded-For"], got, c.want)
			}
		}
	}
}

// An untrusted proxy at a private address is logged once.
func TestUnnamedProxy(t *testing.T) {
	var log strings.Builder
	g := &Guard{log: slog.New(slog.NewTextHandler(&log, nil)), proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}
	for _, c := range []struct {
		remote, forwarded string
		want              int
	}{
		{"192.0.2.1:80", "198.51.100.1", 0},
		{"127.0.0.1:80", "", 0},
		{"10.0.0.1:80", "198.51.100.1", 0},
		{"10.0.0.2:80", "198.51.100.1", 1},
		{"127.0.0.1:80", "198.51.100.1", 1},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if r.RemoteAddr = c.remote; c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		(&Request{guard: g, r: r}).Address()
		if got := strings.Count(log.String(), "level=WARN"); got != c.want {
			t.Errorf("%s, %q: logged %d times", c.remote, c.forwarded, got)
		}
	}
}

// Memory is bounded for any number of networks. The bucket of a client that keeps sending
// requests is never dropped.
func TestRateMemory(t *testing.T) {
	n, most := 1_000_000, int64(100<<20)
	if testing.Short() {
		n = 100_000
	}
	l := newLimits()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	l.now = func() time.Time { return now }
	q := newQuota(1, "test", 0.01)
	busy := Client{from: netip.MustParseAddr("192.0.2.1")}
	l.take(q, busy)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	network := func(i int) Client { // alternates between an IPv4 address and an IPv6 network
		if i%2 == 0 {
			return Client{from: netip.AddrFrom4([4]byte{20 + byte(i>>17), byte(i >> 9), byte(i >> 1), 7})}
		}
		return Client{from: netip.AddrFrom16([16]byte{0x20, 1, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})}
	}
	for i := range n {
		if _, wait := l.take(q, network(i)); wait != 0 {
			t.Fatalf("%d: a new client waits", i)
		}
		if i%1000 == 0 {
			if _, wait := l.take(q, busy); wait == 0 {
				t.Fatalf("after %d others the bucket was dropped", i)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > most {
		t.Errorf("%d networks take %d bytes", n, grown)
	}
	runtime.KeepAlive(l)
}

// TestLimits counts requests, waits, and reverts counts.
func TestLimits(t *testing.T) {
	l := newLimits()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	l.now = func() time.Time { return now }
	q, other := newQuota(1, "a", 1), newQuota(2, "b", 1)
	c := Client{from: netip.MustParseAddr("192.0.2.1")}
	for i, want := range []struct {
		left       int64
		full, wait time.Duration
	}{{1, time.Second, 0}, {0, 2 * time.Second, 0}, {0, 2 * time.Second, time.Second}, {0, 2 * time.Second, time.Second}} {
		is, wait := l.take(q, c)
		if is.left != want.left || is.full != want.full || wait != want.wait {
			t.Errorf("%d: %d left, full in %v, wait %v", i, is.left, is.full, wait)
		}
		if got := q.policy(is.bucket); got != `"a";q=2;w=2` {
			t.Error(got)
		}
	}
	if l.spent(q, c) != time.Second || l.spent(other, c) != 0 {
		t.Errorf("%v, %v", l.spent(q, c), l.spent(other, c))
	}
	if now = now.Add(time.Second); l.spent(q, c) != 0 {
		t.Error(l.spent(q, c))
	}
	now = now.Add(time.Hour)
	if is, _ := l.take(q, c); is.left != 1 {
		t.Errorf("after an hour: %d left", is.left)
	}
	// All clients of a network share the limit of sixteen.
	now = now.Add(time.Hour)
	for i := range 256 {
		c := Client{from: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}
		if _, wait := l.take(q, c); (wait != 0) != (i >= wide*2) {
			t.Fatalf("address %d of a network: %v", i, wait)
		}
	}
	for i := range 256 {
		if _, wait := l.take(q, Client{key: fmt.Sprint("key ", i)}); wait != 0 {
			t.Fatalf("key %d: %v", i, wait)
		}
	}
	now = now.Add(time.Hour)
	for i, want := range []time.Duration{0, 2 * time.Second, 3 * time.Second} {
		wait, undo := l.pace(q, c, 2-i/2)
		if wait != want {
			t.Errorf("part %d waits %v, want %v", i, wait, want)
		}
		if i == 2 {
			undo()
		}
	}
	if wait, _ := l.pace(q, c, 1); wait != 3*time.Second {
		t.Errorf("after one count is reverted, the next request waits %v", wait)
	}
}

// Replicas grant equal parts of a limit, which add up to at most the limit plus one request per
// replica.
func TestLimitsOfReplicas(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	q, c := newQuota(1, "a", 10), Client{key: "one"}
	piece := newQuota(2, "bytes", 1000)
	piece.minBurst = 400
	replicas := 1
	l := newLimits()
	l.now, l.replicas = func() time.Time { return now }, func() int { return replicas }
	for _, want := range []struct {
		replicas, burst int
		policy          string
	}{{1, 20, `"a";q=20;w=2`}, {3, 7, `"a";q=7;w=3`}, {50, 1, `"a";q=1;w=5`}, {2, 10, `"a";q=10;w=2`}} {
		replicas = want.replicas
		allowed := 0
		for range 30 {
			is, wait := l.take(q, c)
			if wait == 0 {
				allowed++
			}
			if got := q.policy(is.bucket); got != want.policy {
				t.Errorf("%d replicas: %s", replicas, got)
			}
		}
		if allowed != want.burst {
			t.Errorf("%d replicas: %d requests at once", replicas, allowed)
		}
		if _, wait := l.take(q, c); wait.Round(time.Millisecond) != time.Duration(replicas)*100*time.Millisecond {
			t.Errorf("%d replicas: the next after %v", replicas, wait)
		}
		if wait, _ := l.pace(piece, c, 400); wait > time.Minute {
			t.Errorf("%d replicas: a part waits for %v", replicas, wait)
		}
	}
}
