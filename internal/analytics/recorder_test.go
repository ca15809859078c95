package analytics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	mem "github.com/millrace/millrace/store/memory"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// page returns the event of a response with one page.
func page(path string) store.Event {
	return store.Event{
		Time: noon, Bot: "GPTBot", Family: "openai", Identity: store.Verified, Protocol: "tct-01", Endpoint: store.EndpointFetch,
		Path: path, Status: 200, Bytes: 700, Size: 2_000, Took: time.Millisecond,
	}
}

// fakeSizes are the HTML sizes of a site, with the number of requests.
type fakeSizes struct {
	of    map[string]millrace.HTMLSize
	err   error
	asked atomic.Int64
}

func (w *fakeSizes) HTMLSizes(_ context.Context, urls []string) ([]millrace.HTMLSize, error) {
	w.asked.Add(int64(len(urls)))
	if w.err != nil {
		return nil, w.err
	}
	out := make([]millrace.HTMLSize, len(urls))
	for i, u := range urls {
		out[i] = w.of[u]
	}
	return out, nil
}

// Recorded events are stored a little later, in order and completed.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := &memory{}, &fakeSizes{of: map[string]millrace.HTMLSize{"/a": {Bytes: 50_000, Received: 9_000}}}
		r := New(m, "site", &Options{HTMLSizes: w})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()

		search := store.Event{Time: noon, Endpoint: store.EndpointSearch, Path: "/openfeeder", Query: "a question", Intent: "learn", Results: 7, Status: 200, Bytes: 10}
		head := page("/a")
		head.Bytes, head.Size = 0, 0
		part := page("/a")
		part.Status = 206
		notModified := page("/a")
		notModified.Status, notModified.Bytes, notModified.Size = 304, 0, 0
		gone := page("/gone")
		gone.Status = 404
		rest := page("/a")
		rest.HTML = -1
		plain := page("/a") // for a client without compression
		plain.Received = -1
		unknown := page("/b")
		unknown.Received = -1
		want := []store.Event{page("/a"), page("/b"), search, head, part, notModified, gone, rest, plain, unknown}
		for _, e := range want {
			r.Record(e)
		}
		synctest.Wait()
		if n := len(m.all()); n != 0 || r.Waiting() != len(want) {
			t.Errorf("at once: %d are stored, %d wait", n, r.Waiting())
		}
		time.Sleep(batchEvery + time.Second)
		for i := range want {
			want[i].Number = uint64(i + 1)
		}
		for _, i := range []int{0, 5} {
			want[i].HTML, want[i].Received, want[i].Results = 50_000, 9_000, 1
		}
		want[8].HTML, want[8].Received, want[8].Results = 50_000, 50_000, 1
		want[9].Received, want[9].Results = 0, 1
		want[1].Results = 1 // of unknown HTML size
		want[7].HTML = 0    // counted with the first part
		if d := cmp.Diff(want, m.all()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if n := w.asked.Load(); n != 2 {
			t.Errorf("%d HTML sizes were requested", n)
		}

		r.Record(page("/a"))
		stop()
		<-done
		if n := len(m.all()); n != len(want)+1 || r.Recorded() != uint64(n) || r.Dropped() != 0 {
			t.Errorf("in the end: %d are stored, %d recorded, %d dropped", n, r.Recorded(), r.Dropped())
		}
	})
}

// If the store is unavailable, Record does not wait. Only events beyond the buffer are
// dropped.
func TestStoreUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{err: millrace.ErrUnavailable}
		r := New(m, "site", &Options{Buffer: 100})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.Run(ctx)
		start := time.Now()
		for i := range 1000 {
			r.Record(page(fmt.Sprint("/", i)))
			if i == 24 || i == 149 {
				time.Sleep(10 * time.Second)
			}
		}
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("Record has waited: %v", took)
		}
		// 25 events have been taken out of the buffer, and 100 are in it.
		if r.Recorded() != 125 || r.Dropped() != 875 {
			t.Errorf("%d recorded, %d dropped", r.Recorded(), r.Dropped())
		}
		m.fail(nil)
		time.Sleep(2 * maxWait)
		all := m.all()
		if len(all) != 125 || all[0].Path != "/0" || all[124].Path != "/124" {
			t.Fatalf("%d are stored: %v", len(all), all)
		}

		m.fail(fmt.Errorf("refused: %w", millrace.ErrInvalid))
		r.Record(page("/wrong"))
		time.Sleep(time.Minute)
		m.fail(nil)
		r.Record(page("/right"))
		time.Sleep(time.Minute)
		if all = m.all(); len(all) != 126 || all[125].Path != "/right" || r.Dropped() != 876 {
			t.Errorf("after a batch that is never taken: %d stored, %d dropped", len(all), r.Dropped())
		}
	})
}

// A failure in the middle of a flush loses no event and repeats none.
func TestFlushAgain(t *testing.T) {
	m := &failing{after: 1}
	r := New(m, "site", nil)
	const n = 2*atOnce + 10
	for i := range n {
		r.Record(page(fmt.Sprint("/", i)))
	}
	if err := r.Flush(t.Context()); !errors.Is(err, millrace.ErrUnavailable) {
		t.Fatal(err)
	}
	r.Record(page("/last"))
	m.after = -1
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := m.all()
	if len(all) != n+1 || all[n].Path != "/last" {
		t.Fatalf("%d events", len(all))
	}
	for i, e := range all[:n] {
		if e.Path != fmt.Sprint("/", i) {
			t.Fatalf("event %d is of %s", i, e.Path)
		}
	}
}

// failing is a store that fails after some batches; -1 = never.
type failing struct {
	memory
	after int
}

func (f *failing) Record(ctx context.Context, site string, events []store.Event) error {
	if f.after == 0 {
		return millrace.ErrUnavailable
	}
	f.after--
	return f.memory.Record(ctx, site, events)
}

// The texts of events are bounded, and do not keep whole requests in memory.
func TestTexts(t *testing.T) {
	m := &memory{}
	r := New(m, "site", nil)
	for _, s := range []string{"", "x", strings.Repeat("é", 200), strings.Repeat("x", 255) + "é", strings.Repeat("\x80", 300), strings.Repeat("日", 1000)} {
		r.Record(store.Event{Path: s, Query: "q" + s, Intent: s})
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 1, 256, 255, 252, 255} {
		e := m.all()[i]
		if len(e.Path) != want || e.Intent != e.Path || !strings.HasPrefix("q"+e.Path, e.Query[:len(e.Query)-1]) {
			t.Errorf("%d: %d bytes of path, query %q", i, len(e.Path), e.Query)
		}
		if i != 4 && !utf8.ValidString(e.Path+e.Query) {
			t.Errorf("%d: half a character", i)
		}
	}
}

// With a key, queries are unreadable, and equal queries stay equal.
func TestQueryKey(t *testing.T) {
	ctx := t.Context()
	st := storeWithSite(t)
	key, err := QueryKey(ctx, st.State(), "site")
	if err != nil || len(key) != queryKeySize {
		t.Fatal(key, err)
	}
	again, err := QueryKey(ctx, st.State(), "site")
	if err != nil || string(again) != string(key) {
		t.Errorf("the key of a site has changed: %v", err)
	}
	m := &memory{}
	r := New(m, "site", &Options{QueryKey: key})
	for _, q := range []string{"private matters", "other matters", "private matters", ""} {
		r.Record(store.Event{Endpoint: store.EndpointSearch, Query: q})
	}
	if err := r.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	got := m.all()
	if got[0].Query != got[2].Query || got[0].Query == got[1].Query || got[3].Query != "" || len(got[0].Query) != 25 || strings.Contains(got[0].Query, "private") {
		t.Errorf("%q %q %q %q", got[0].Query, got[1].Query, got[2].Query, got[3].Query)
	}
	other, err := QueryKey(ctx, st.State(), "other")
	if err != nil || hashed(other, "private matters") == got[0].Query {
		t.Errorf("two sites have the same key: %v", err)
	}
}

// The store is tidied every hour, but not right after the clock was set.
func TestTidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		r := New(m, "site", &Options{Keep: 48 * time.Hour, Now: now})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		start := time.Now()
		go r.Run(ctx)
		tidied := func() int {
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.tidied) / 2
		}
		time.Sleep(tidyFirst)
		if tidied() != 1 || !m.tidied[0].Equal(start.Add(tidyFirst-48*time.Hour)) || !m.tidied[1].Equal(start.Add(tidyFirst-keepHours)) {
			t.Fatalf("%v", m.tidied)
		}
		ahead.Store(int64(10 * 365 * 24 * time.Hour))
		time.Sleep(tidyEvery)
		if tidied() != 1 {
			t.Error("events were deleted after the clock jumped forward by ten years")
		}
		ahead.Store(0)
		time.Sleep(tidyEvery)
		if tidied() != 1 {
			t.Error("the store was tidied right after the clock jumped back")
		}
		time.Sleep(tidyEvery)
		if tidied() != 2 {
			t.Error("the store is no longer tidied")
		}
	})
}

// countedLeases counts the leases that are written.
type countedLeases struct {
	store.Leases
	n atomic.Int64
}

func (l *countedLeases) Acquire(ctx context.Context, name, holder string, d time.Duration) (store.Lease, error) {
	l.n.Add(1)
	return l.Leases.Acquire(ctx, name, holder, d)
}

// A lease is written only when tidying is due, and only one of two processes tidies.
func TestTidyLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := mem.New(nil)
		leases := &countedLeases{Leases: st.Leases()}
		m := &memory{}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go New(m, "site", &Options{Leases: leases}).Run(ctx)
		time.Sleep(tidyFirst + tidyEvery/2)
		synctest.Wait()
		if n := leases.n.Load(); n != 1 || len(m.tidied) != 2 {
			t.Errorf("%d leases, tidied %v", n, m.tidied)
		}
		other, err := st.Leases().Acquire(ctx, "tidy site", "another process", tidyEvery)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(tidyEvery / 2)
		synctest.Wait()
		if len(m.tidied) != 2 {
			t.Errorf("both processes tidy: %v", m.tidied)
		}
		if err := st.Leases().Release(ctx, other); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tidyEvery)
		synctest.Wait()
		if len(m.tidied) != 4 {
			t.Errorf("after the other process: %v", m.tidied)
		}
	})
}

// HTML sizes are cached for a while, up to a limit. Failed requests are not cached.
func TestHTMLSizeCache(t *testing.T) {
	ctx := t.Context()
	now := noon
	w := &fakeSizes{of: map[string]millrace.HTMLSize{}, err: millrace.ErrUnavailable}
	m := &memory{}
	r := New(m, "site", &Options{HTMLSizes: w, Now: func() time.Time { return now }})
	record := func(paths ...string) (last store.Event) {
		t.Helper()
		for _, path := range paths {
			r.Record(page(path))
		}
		if err := r.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		all := m.all()
		return all[len(all)-1]
	}
	if e := record("/a"); e.HTML != 0 {
		t.Errorf("%+v", e)
	}
	w.err = nil
	w.of["/a"] = millrace.HTMLSize{Bytes: 10}
	if e := record("/a"); e.HTML != 10 || e.Received != 0 {
		t.Errorf("after a failure: %+v", e)
	}
	w.of["/a"] = millrace.HTMLSize{Bytes: 20}
	if e := record("/a", "/a"); e.HTML != 10 || w.asked.Load() != 2 {
		t.Errorf("requested %d times: %+v", w.asked.Load(), e)
	}
	now = now.Add(htmlSizesTTL + time.Second)
	if e := record("/a"); e.HTML != 20 {
		t.Errorf("cached forever: %+v", e)
	}
	many := make([]string, maxHTMLSizes+askedAtOnce)
	for i := range many {
		many[i] = fmt.Sprint("/many/", i)
	}
	r.o.Buffer = len(many)
	record(many...)
	if record("/a"); len(r.weights.known) != 1 {
		t.Errorf("%d HTML sizes are cached", len(r.weights.known))
	}
}

// Events can be recorded concurrently while others are stored.
func TestRecordAtOnce(t *testing.T) {
	m := &memory{}
	r := New(m, "site", &Options{Buffer: 4000, Every: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	var run, tell sync.WaitGroup
	run.Go(func() { r.Run(ctx) })
	const each = 5000
	for i := range 4 {
		tell.Go(func() {
			for n := range each {
				r.Record(store.Event{Path: fmt.Sprint("/", i, "/", n), Status: 200})
			}
		})
	}
	tell.Wait()
	stop()
	run.Wait()
	all := m.all()
	if uint64(len(all)) != r.Recorded() || r.Recorded()+r.Dropped() != 4*each {
		t.Fatalf("%d stored, %d recorded, %d dropped", len(all), r.Recorded(), r.Dropped())
	}
	seen := map[string]bool{}
	for _, e := range all {
		if seen[e.Path] {
			t.Fatalf("%s twice", e.Path)
		}
		seen[e.Path] = true
	}
}

// Recording an event allocates nothing after the buffers have reached their final size.
func TestRecordAllocates(t *testing.T) {
	r, e := New(&memory{}, "site", &Options{Buffer: 2000}), page("/a/page")
	fill := func() {
		for range 2000 {
			r.Record(e)
		}
	}
	for range 3 {
		fill()
		r.take()
		r.taken = r.taken[:0]
	}
	if n := testing.AllocsPerRun(1000, func() { r.Record(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	r, e := New(&memory{}, "site", nil), page("/a/page/of/the/site")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r.Record(e)
			if r.Waiting() == waiting {
				r.storing.Lock()
				r.take()
				clear(r.taken)
				r.taken = r.taken[:0]
				r.storing.Unlock()
			}
		}
	})
}
