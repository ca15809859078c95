package edition

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/canon"
)

// bulkSite has n pages in one state.
func bulkSite(n int) *memSite {
	s := newMemSite(0)
	m := make(map[string]text, n)
	for i := range n {
		m["/"+strconv.Itoa(i)] = text{"page " + strconv.Itoa(i), 0}
	}
	s.states[0] = m
	return s
}

// The cache counts its bytes correctly and keeps its limit.
func TestCacheBound(t *testing.T) {
	const limit = 8 << 20
	for _, pad := range []int{0, 4000} {
		s := newTestServer(t, bulkSite(20_000), &memProtocol{pad: pad, sharedETag: true}, &Options{CacheBytes: limit})
		publish(t, s)
		before := heap()
		for i := range 20_000 {
			r := httptest.NewRequest(http.MethodGet, "/"+strconv.Itoa(i)+".txt", nil)
			if _, err := s.Serve(&nothing{h: make(http.Header)}, r); err != nil {
				t.Fatal(err)
			}
		}
		used, counted := heap()-before, s.cache.bytes()
		t.Logf("%d bytes a page: %d counted, %d on the heap", pad, counted, used)
		if counted > limit || counted < limit*3/4 {
			t.Errorf("%d bytes counted, limit %d", counted, limit)
		}
		if used > limit*5/4 {
			t.Errorf("%d bytes on the heap, limit %d", used, limit)
		}
		s.DropCache()
		if remaining, counted := heap()-before, s.cache.bytes(); counted != 0 || remaining > limit/8 {
			t.Errorf("after the cache was cleared: %d bytes counted, %d on the heap", counted, remaining)
		}
		if w := ask(t, s, "GET", "/7.txt"); w.Code != 200 {
			t.Errorf("after the cache was cleared: %d", w.Code)
		}
		runtime.KeepAlive(s)
	}
}

// Many queries of one path may fill the whole cache.
func TestCacheQueries(t *testing.T) {
	c := newCache(shards << 20)
	var count [shards]int
	for i := range 8000 {
		s := c.shard(key{path: "/feed", query: "page=" + strconv.Itoa(i)})
		for n := range c.shards {
			if s == &c.shards[n] {
				count[n]++
			}
		}
	}
	for n, some := range count {
		if some < 800 || some > 1200 {
			t.Errorf("shard %d has %d of 8000 queries", n, some)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// nothing is a ResponseWriter that discards the body.
type nothing struct {
	h      http.Header
	status int
}

func (n *nothing) Header() http.Header         { return n.h }
func (n *nothing) WriteHeader(status int)      { n.status = status }
func (n *nothing) Write(b []byte) (int, error) { return len(b), nil }

// Frequently requested documents stay in the cache.
func TestCacheKeepsFrequentDocuments(t *testing.T) {
	proto := &memProtocol{pad: 4000, sharedETag: true}
	s := newTestServer(t, bulkSite(10_000), proto, &Options{CacheBytes: 4 << 20})
	publish(t, s)
	proto.renders.Store(0)
	for i := range 10_000 {
		ask(t, s, "GET", "/"+strconv.Itoa(i)+".txt")
		ask(t, s, "GET", "/"+strconv.Itoa(i%50)+".txt")
	}
	if n := proto.renders.Load(); n > 10_500 {
		t.Errorf("%d renderings of 10,000 pages, 50 of them hot", n)
	}
}

func TestHugeKeysAndBodies(t *testing.T) {
	proto := &memProtocol{pad: 3 << 20}
	s := newTestServer(t, newMemSite(3), proto, &Options{CacheBytes: 8 << 20})
	publish(t, s)
	for range 2 {
		if w := ask(t, s, "GET", "/1.txt"); w.Body.Len() < 3<<20 {
			t.Errorf("%d bytes", w.Body.Len())
		}
	}
	ask(t, s, "GET", "/2.txt?"+strings.Repeat("q", 5000))
	if n := s.cache.bytes(); n > 10_000 {
		t.Errorf("%d bytes kept", n)
	}
}

// While editions change, no response is older than the edition at the time of its
// request, and its validator, digest and body match.
func TestConcurrentEditions(t *testing.T) {
	const pages = 20
	site := newMemSite(pages)
	s := newTestServer(t, site, &memProtocol{}, &Options{CacheBytes: 64 << 10})
	publish(t, s)
	stop := time.Now().Add(time.Second)
	if testing.Short() {
		stop = time.Now().Add(200 * time.Millisecond)
	}
	// newest contains, for each page, a state that is already published.
	newest := make([]atomic.Uint64, pages)
	for i := range newest {
		newest[i].Store(uint64(i + 1))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		rnd := rand.New(rand.NewPCG(1, 2))
		for time.Now().Before(stop) {
			wrote := make(map[int]uint64)
			for range 3 {
				n := rnd.IntN(pages)
				wrote[n] = site.set("/"+strconv.Itoa(n), "page "+strconv.Itoa(rnd.IntN(1000)))
			}
			if _, err := s.Publish(t.Context()); err != nil {
				t.Error(err)
			}
			for n, seq := range wrote {
				newest[n].Store(seq)
			}
			if rnd.IntN(10) == 0 {
				s.DropCache()
			}
		}
	})
	form := regexp.MustCompile(`^t(\d+)-\d+`)
	for worker := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(3, uint64(worker)))
			for time.Now().Before(stop) {
				n := rnd.IntN(pages)
				atLeast := newest[n].Load()
				coding := []string{"", "gzip", "zstd"}[rnd.IntN(3)]
				fields := []string{"Accept-Encoding", coding}
				w := ask(t, s, "GET", "/"+strconv.Itoa(n)+".txt", fields...)
				raw, err := io.ReadAll(w.Body)
				if err != nil || w.Code != 200 {
					t.Errorf("%d %v", w.Code, err)
					return
				}
				if w.Header().Get("Content-Digest") != canon.Digest(raw) {
					t.Error("digest of another body")
				}
				body, tag := string(decode(t, coding, raw)), strings.Trim(w.Header().Get("ETag"), `"`)
				if coding != "" {
					tag = strings.TrimSuffix(tag, "-"+coding)
				}
				if !strings.HasPrefix(body, tag+"|") {
					t.Errorf("validator %s of body %q", tag, body)
				}
				if seq, _ := strconv.ParseUint(form.FindStringSubmatch(body)[1], 10, 64); seq < atLeast {
					t.Errorf("state %d, but %d was already published", seq, atLeast)
				}
				not := ask(t, s, "GET", "/"+strconv.Itoa(n)+".txt", "If-None-Match", w.Header().Get("ETag"))
				if not.Code != 304 && not.Code != 200 {
					t.Errorf("%d", not.Code)
				}
			}
		})
	}
	wg.Wait()
	for i := range s.cache.shards {
		s := &s.cache.shards[i]
		for name, c := range map[string]*clock{"bodyless": &s.bodyless, "bodies": &s.bodies} {
			sum := int64(0)
			for _, e := range c.ring {
				sum += e.cost
				if bodyless := e.cost == e.memory(); e.clock != c || bodyless != (name == "bodyless") {
					t.Errorf("shard %d: %s is in the wrong clock", i, e.key.path)
				}
			}
			if sum != c.bytes {
				t.Errorf("shard %d: %s counts %d bytes, has %d", i, name, c.bytes, sum)
			}
		}
		if n := len(s.bodyless.ring) + len(s.bodies.ring); n != len(s.m) {
			t.Errorf("shard %d has %d entries, %d in its clocks", i, len(s.m), n)
		}
	}
}

// Bodies in unused codings are dropped first.
func TestCacheCodings(t *testing.T) {
	c := newCache(shards << 20)
	add := func(i int, sizes map[coding]int) *entry {
		e := &entry{key: key{path: "/" + strconv.Itoa(i)}}
		for at, n := range sizes {
			e.reps[at].Store(newRep(at, make([]byte, n), n))
		}
		return c.put(e, nil)
	}
	var old []*entry
	for i := range 1000 {
		e := add(i, map[coding]int{identity: 3000, gzipCoding: 1000})
		e.used.Store(uint32(touched | 1<<gzipCoding))
		old = append(old, e)
	}
	for i := range 1000 {
		add(1000+i, map[coding]int{identity: 3000})
	}
	var has [codings]int
	for _, e := range old {
		for at := range codings {
			if e.reps[at].Load() != nil {
				has[at]++
			}
		}
	}
	if has[identity] > 750 || has[gzipCoding] < 999 {
		t.Errorf("%d of 1000 unused bodies and %d of the used ones remain", has[identity], has[gzipCoding])
	}
}
