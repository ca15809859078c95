package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/store"
)

// usageStore makes a store with a site "main".
func usageStore(t testing.TB, path string, o *Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Site(t.Context(), "main", store.Config{Base: benchBase}); err != nil {
		t.Fatal(err)
	}
	return s
}

// visits are events as a site of some thousand pages has them, n a second.
func visits(rng *rand.Rand, at time.Time, perSecond float64, n int) []store.Event {
	events := make([]store.Event, n)
	for i := range events {
		page := int(rng.ExpFloat64() * 800)
		at = at.Add(time.Duration(rng.ExpFloat64() / perSecond * float64(time.Second)))
		bot := int(rng.ExpFloat64() * 4)
		e := store.Event{
			Time: at, Bot: fmt.Sprint("ExampleBot-", bot), Family: fmt.Sprint("family", bot/2), Protocol: []string{"html", "tct-01", "web", "scp", "arc"}[rng.IntN(5)],
			Endpoint: store.EndpointFetch, Path: fmt.Sprintf("/%d/%02d/a-page-about-%x/", 2010+page%15, page%12+1, page*2654435761), Status: 200,
			HTML: int64(20_000 + page*37%60_000), Received: int64(6000 + page*11%15_000), Took: time.Duration(30+rng.IntN(400)) * time.Microsecond,
		}
		switch k := rng.IntN(20); {
		case k < 6:
			e.Status, e.Cached = 304, true
		case k == 7:
			e.Status, e.Path, e.HTML, e.Received = 404, fmt.Sprintf("/old/%x", rng.Uint32()), 0, 0
		case k == 8:
			e.Endpoint, e.Path, e.Results = store.EndpointIndex, "/llm-sitemap.json", 5000
		case k == 9:
			e.Endpoint, e.Query, e.Results = store.EndpointSearch, fmt.Sprint("how does part ", rng.IntN(3000), " work"), rng.Int64N(20)
		}
		if e.Status == 200 {
			e.Size = int64(3000 + page*17%9000)
			e.Bytes = e.Size / 3
		}
		events[i] = e
	}
	return events
}

// TestUsageSize holds what an event takes, alone and with what it is counted in.
func TestUsageSize(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := usageStore(t, filepath.Join(t.TempDir(), "x.db"), &Options{Now: func() time.Time { return now }})
	rng := rand.New(rand.NewPCG(1, 1))
	const n, batch = 20_000, 50
	for i := 0; i < n; i += batch {
		if err := s.Record(t.Context(), "main", visits(rng, now, 11, batch)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(5 * time.Second)
	}
	measure := func(what string, most, blocks int64) {
		t.Helper()
		var pages, rows int64
		if err := s.read.row(t.Context(), "SELECT page_count - freelist_count, (SELECT count(*) FROM usage_event) FROM pragma_page_count, pragma_freelist_count",
			nil, &pages, &rows); err != nil {
			t.Fatal(err)
		}
		if size := pages * 4096 / n; size > most || rows > blocks {
			t.Errorf("%s: %d bytes an event, want %d; %d blocks, want %d", what, size, most, rows, blocks)
		}
		t.Logf("%s: %d bytes an event, %d blocks", what, pages*4096/n, rows)
	}
	measure("recorded", 60, n/(joinEvents-batch)+1)
	if err := s.Tidy(t.Context(), "main", time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	measure("tidied", 40, 10)
	for i := range 3 { // what is packed stays
		if err := s.Record(t.Context(), "main", visits(rng, now, 11, batch)); err != nil {
			t.Fatal(err)
		}
		if err := s.Tidy(t.Context(), "main", time.Time{}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		measure("a batch more", 40, int64(10+i))
	}
}

// TestUsageDamaged overwrites what is kept: that is told, and stops nothing.
func TestUsageDamaged(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := usageStore(t, filepath.Join(t.TempDir(), "x.db"), &Options{Now: func() time.Time { return now }, foldEvents: 10})
	rng := rand.New(rand.NewPCG(1, 1))
	record := func() {
		t.Helper()
		if err := s.Record(ctx, "main", visits(rng, now, 1, 10)); err != nil {
			t.Fatal(err)
		}
	}
	record()
	if err := s.writer.do(ctx, func(t *tx) error {
		for _, q := range []string{
			"UPDATE usage_event SET data = x'01020304'", "UPDATE usage_sum SET data = substr(data, 1, 60)", "UPDATE usage_top SET data = x'00'",
		} {
			if err := t.exec(q); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Events(ctx, "main", store.EventQuery{}) {
		t.Errorf("%+v, %v", e, err)
	}
	for e, err := range s.Sums(ctx, "main", store.SumQuery{}) {
		t.Errorf("%+v, %v", e, err)
	}
	if list, err := s.Top(ctx, "main", store.TopPages, time.Time{}, time.Time{}, 0); len(list) > 0 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	record()
	record()
	if err := s.Tidy(ctx, "main", time.Time{}, time.Time{}); err != nil {
		t.Error(err)
	}
	n := 0
	for _, err := range s.Events(ctx, "main", store.EventQuery{After: 10}) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	var sum int64
	for e, err := range s.Sums(ctx, "main", store.SumQuery{}) {
		if sum += e.Events; err != nil {
			t.Error(err)
		}
	}
	if list, err := s.Top(ctx, "main", store.TopPages, time.Time{}, time.Time{}, 0); len(list) == 0 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if n != 20 || sum != 20 {
		t.Errorf("%d events and %d in the sums", n, sum)
	}
	if err := s.Tidy(ctx, "main", now.Add(time.Hour), time.Time{}); err != nil { // the clock's: now
		t.Error(err)
	}
	now = now.Add(2 * time.Hour)
	if err := s.Tidy(ctx, "main", now, time.Time{}); err != nil {
		t.Error(err)
	}
	for e, err := range s.Events(ctx, "main", store.EventQuery{}) {
		t.Errorf("left: %+v, %v", e, err)
	}
}

// TestUsagePlans looks at how what is kept of requests is found.
func TestUsagePlans(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := usageStore(t, filepath.Join(t.TempDir(), "x.db"), &Options{Now: func() time.Time { return now }, blockEvents: 64, foldEvents: 50})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		if err := s.Record(ctx, "main", visits(rng, now, 0.001, 30)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(24 * time.Hour)
		if err := s.Tidy(ctx, "main", now.Add(-36*time.Hour), now.Add(-36*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Export(ctx, "main", "umami", 1); err != nil {
		t.Fatal(err)
	}
	statements := []string{daySums, hourSums, eventsOn, eventsBack} // and all that have run
	for q := range s.writer.stmts {
		statements = append(statements, q)
	}
	s.read.stmts.Range(func(q, _ any) bool {
		statements = append(statements, q.(string))
		return true
	})
	n := 0
	for _, q := range statements {
		if strings.Contains(q, "usage") {
			checkPlan(t, s, q)
			n++
		}
	}
	if n < 20 {
		t.Errorf("only %d statements were looked at", n)
	}
}

// FuzzUsage reads anything as what is kept of requests. What can be read is the
// same once it was written again.
func FuzzUsage(f *testing.F) {
	var c coder
	if err := c.open(); err != nil {
		f.Fatal(err)
	}
	defer c.close()
	rng := rand.New(rand.NewPCG(1, 1))
	p := newPacking(100, 30)
	a := usageTotals{hours: make(map[int64]map[sumKind]*sumRow), tops: make(map[topDay][]tops)}
	for _, e := range visits(rng, time.Unix(1e9, 0), 0.01, 30) {
		p.add(&e, 0)
	}
	packed := p.pack(&c)
	if err := a.add(&c, &packed, 0); err != nil {
		f.Fatal(err)
	}
	plain := func(data []byte) []byte {
		r, err := c.expand(data, nil)
		if err != nil {
			f.Fatal(err)
		}
		return append([]byte{plainForm}, r.b...)
	}
	f.Add(packed.data)
	f.Add(plain(packed.data))
	for _, h := range a.hours {
		s := new(sums)
		for _, r := range sortedSums(h) {
			s.add(r)
		}
		f.Add(plain(s.encode(&c)))
	}
	for d, t := range a.tops {
		f.Add(plain(together(t).encode(&c, d.day*dayMillis, false)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var b, again block
		if b.open(&c, data) == nil && b.read(1) == nil {
			p := newPacking(1<<20, len(b.rows))
			for i := range b.rows {
				b.rows[i].number = int64(i) + 1
				e := b.event(&b.rows[i])
				p.add(&e, 0)
			}
			packed := p.pack(&c)
			if err := again.open(&c, packed.data); err != nil {
				t.Fatal(err)
			}
			if err := again.read(packed.first); err != nil || len(again.rows) != len(b.rows) {
				t.Fatalf("%d events become %d: %v", len(b.rows), len(again.rows), err)
			}
		}
		var s, same sums
		if _, err := s.decode(&c, data, nil); err == nil {
			if _, err := same.decode(&c, s.encode(&c), nil); err != nil || !reflect.DeepEqual(s.rows, same.rows) && len(s.rows) > 0 {
				t.Fatalf("sums (-read +again): %v\n%s", err, cmp.Diff(fmt.Sprint(s.rows), fmt.Sprint(same.rows)))
			}
		}
		if rows, err := decodeTops(&c, data, 0); err == nil {
			if again, err := decodeTops(&c, rows.encode(&c, 0, false), 0); err != nil || !slices.Equal(again, rows) {
				t.Fatalf("tops: %v become %v: %v", rows, again, err)
			}
		}
	})
}

// usageChild makes the test binary a process that records and is killed; its
// value is the path of the store.
const usageChild = "MILLRACE_TEST_USAGE_CHILD"

// recordForever records batch after batch, each as many events as say the same,
// prints the number of each that is acknowledged, and tidies in between.
func recordForever(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, &Options{blockEvents: 64, foldEvents: 100})
	if err != nil {
		return err
	}
	if _, err := s.Site(ctx, "main", store.Config{Base: benchBase}); err != nil {
		return err
	}
	batch := 0
	for e, err := range s.Events(ctx, "main", store.EventQuery{Newest: true, Limit: 1}) {
		if err != nil {
			return err
		}
		batch = int(e.Results)
	}
	for {
		batch++
		events := make([]store.Event, batch%23+1)
		for i := range events {
			events[i] = store.Event{
				Time: time.Unix(1e9+int64(batch), 0), Bot: "GPTBot", Endpoint: store.EndpointFetch, Path: "/", Status: 200, Results: int64(batch),
			}
		}
		if err := s.Record(ctx, "main", events); err != nil {
			return fmt.Errorf("batch %d: %w", batch, err)
		}
		fmt.Println(batch)
		if batch%5 == 0 {
			if err := s.Tidy(ctx, "main", time.Time{}, time.Time{}); err != nil {
				return err
			}
		}
	}
}

// TestUsageCrash kills a process that records and looks each time whether what
// it acknowledged is there, and what it did not is there wholly or not at all.
func TestUsageCrash(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	path := filepath.Join(t.TempDir(), "crash.db")
	rng := rand.New(rand.NewPCG(7, 11))
	for round := range rounds {
		acked := crashOnce(t, usageChild, path, time.Duration(rng.IntN(30_000))*time.Microsecond)
		s, err := Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var events []int
		for e, err := range s.Events(t.Context(), "main", store.EventQuery{}) {
			if events = append(events, int(e.Results)); err != nil || int(e.Number) != len(events) {
				t.Fatalf("event %d: %+v, %v", len(events), e, err)
			}
		}
		last := events[len(events)-1]
		var all []int
		for batch := range last {
			all = append(all, slices.Repeat([]int{batch + 1}, (batch+1)%23+1)...)
		}
		var sum int64
		for e, err := range s.Sums(t.Context(), "main", store.SumQuery{Per: store.Hour}) {
			if sum += e.Events; err != nil {
				t.Fatal(err)
			}
		}
		top, err := s.Top(t.Context(), "main", store.TopPages, time.Time{}, time.Time{}, 0)
		if err != nil || top[0].Events != sum {
			t.Fatalf("%+v, %v", top, err)
		}
		if last < acked || !slices.Equal(events, all) || int(sum) != len(events) {
			t.Fatalf("round %d: batch %d of %d that were acknowledged, %d events of %d, %d in the sums", round, last, acked, len(events), len(all), sum)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
