package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/storetest"
)

// usageStore returns a store with a site "main".
func usageStore(t testing.TB, path string, o *store.Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Site(t.Context(), "main", benchBase); err != nil {
		t.Fatal(err)
	}
	return s
}

// visits returns n random events, perSecond per second on average, as on a site with some thousand
// pages.
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

// TestUsageSize checks the stored size per event, including its sums.
func TestUsageSize(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := usageStore(t, filepath.Join(t.TempDir(), "x.db"), &store.Options{Now: func() time.Time { return now }})
	rng := rand.New(rand.NewPCG(1, 1))
	const n, batch = 20_000, 50
	for i := 0; i < n; i += batch {
		if err := s.Record(t.Context(), "main", visits(rng, now, 11, batch)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(5 * time.Second)
	}
	pages := func() (n int64) {
		t.Helper()
		if err := s.db.read.row(t.Context(), "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count", nil, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	recorded := pages()
	if size := recorded * 4096 / n; size > 150 {
		t.Errorf("%d bytes an event", size)
	}
	now = now.AddDate(0, 0, 2)
	if err := s.Tidy(t.Context(), store.Lease{}, "main", now, now); err != nil {
		t.Fatal(err)
	}
	if left := pages(); left > recorded/2 {
		t.Errorf("%d of %d pages are left without events and hours", left, recorded)
	}
	var texts, named int
	if err := s.db.read.row(t.Context(), "SELECT (SELECT count(*) FROM usage_text WHERE site > 0), (SELECT count(DISTINCT text) FROM usage_top)", nil, &texts, &named); err != nil {
		t.Fatal(err)
	}
	if texts != named || texts == 0 {
		t.Errorf("%d texts are stored, but %d are used", texts, named)
	}
}

// TestUsagePlans checks the query plans of all statements about usage.
func TestUsagePlans(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := usageStore(t, filepath.Join(t.TempDir(), "x.db"), &store.Options{Now: func() time.Time { return now }})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		if err := s.Record(ctx, "main", visits(rng, now, 0.001, 30)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(24 * time.Hour)
		if err := s.Tidy(ctx, store.Lease{}, "main", now.Add(-36*time.Hour), now.Add(-36*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []store.EventQuery{{}, {Newest: true, Bot: "ExampleBot-1", Path: "/"}} {
		for _, err := range s.Events(ctx, "main", q) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	usageContents(t, s)
	var statements []string
	for q := range s.db.writer.stmts {
		statements = append(statements, q)
	}
	s.db.read.stmts.Range(func(q, _ any) bool {
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

// usageContents returns all sums and all top items of a store.
func usageContents(t *testing.T, s *Store) (list []string) {
	t.Helper()
	for _, per := range []store.Period{store.Day, store.Hour} {
		for sum, err := range s.Sums(t.Context(), "main", store.SumQuery{Per: per}) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf("%+v", sum))
		}
	}
	for _, of := range []store.Topic{store.TopPages, store.TopQueries, store.TopMissing} {
		items, err := s.Top(t.Context(), "main", of, time.Time{}, time.Time{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			list = append(list, fmt.Sprintf("%s: %+v", of, it))
		}
	}
	slices.Sort(list)
	return list
}

// TestUsageFails makes Record fail after most of its rows, including new kinds and texts, were
// written. No part of the batch may remain, in the file or in memory.
func TestUsageFails(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := &store.Options{Now: func() time.Time { return now }}
	s, one := usageStore(t, filepath.Join(t.TempDir(), "x.db"), o), usageStore(t, filepath.Join(t.TempDir(), "x.db"), o)
	exec := func(query string) {
		t.Helper()
		if err := s.db.writer.do(t.Context(), func(t *tx) error { return t.Exec(query) }); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 20 {
		fails := i%4 == 1
		if fails {
			exec("CREATE TRIGGER full BEFORE INSERT ON usage_top BEGIN SELECT RAISE(ABORT, 'it is full'); END")
		}
		events := visits(rng, now, 1, 10)
		for j := range events {
			events[j].Bot = fmt.Sprint(events[j].Bot, "/", i)
		}
		if err := s.Record(t.Context(), "main", events); (err != nil) != fails {
			t.Fatalf("batch %d: %v", i, err)
		}
		if fails {
			exec("DROP TRIGGER full")
			continue
		}
		if err := one.Record(t.Context(), "main", events); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(usageContents(t, one), usageContents(t, s)); diff != "" {
			t.Fatalf("batch %d (-never failed +failed):\n%s", i, diff)
		}
	}
}

// TestUsageProcesses records in two processes concurrently, while one of them tidies and
// another reads. Every event is stored once and gets the next number.
func TestUsageProcesses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := &store.Options{Now: func() time.Time { return now }}
	both := []*Store{usageStore(t, file, o), usageStore(t, file, o)}
	reader := usageStore(t, file, o)
	const each = 100
	var recording sync.WaitGroup
	var ended atomic.Bool
	for i, s := range both {
		recording.Go(func() {
			for n := range each {
				e := store.Event{Time: now, Bot: fmt.Sprint("bot ", n), Endpoint: store.EndpointFetch, Path: fmt.Sprintf("/%d/%d", i, n), Status: 200}
				if err := s.Record(t.Context(), "main", []store.Event{e}); err != nil {
					t.Error(err)
				}
				if i == 0 && n%10 == 9 {
					if err := s.Tidy(t.Context(), store.Lease{}, "main", now, time.Time{}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	go func() { recording.Wait(); ended.Store(true) }()
	var last uint64
	for more := true; more; {
		more = !ended.Load()
		for e, err := range reader.Events(t.Context(), "main", store.EventQuery{After: last}) {
			if err != nil || e.Number != last+1 || e.Path == "" || e.Bot == "" {
				t.Fatalf("after %d: %+v, %v", last, e, err)
			}
			last = e.Number
		}
		var sum uint64
		for e, err := range reader.Sums(t.Context(), "main", store.SumQuery{Per: store.Hour}) {
			if err != nil || e.Events > 2 {
				t.Fatalf("%+v, %v", e, err)
			}
			sum += uint64(e.Events)
		}
		if sum < last || !more && sum != last {
			t.Fatalf("the sums count %d events, after %d were read", sum, last)
		}
	}
	if n, err := reader.Top(t.Context(), "main", store.TopPages, time.Time{}, time.Time{}, 0); err != nil || len(n) != 2*each || n[0].Events != 1 || last != 2*each {
		t.Errorf("%d pages of %d events, %v", len(n), last, err)
	}
}

// TestUsageTexts lets another process delete a text that this one has recorded, and reuse its ID
// for another text.
func TestUsageTexts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later := now.AddDate(0, 0, 3)
	s := usageStore(t, file, &store.Options{Now: func() time.Time { return now }})
	other := usageStore(t, file, &store.Options{Now: func() time.Time { return later }})
	record := func(s *Store, path string) {
		t.Helper()
		if err := s.Record(t.Context(), "main", []store.Event{{Time: now, Path: path, Status: 500}}); err != nil {
			t.Fatal(err)
		}
	}
	record(s, "/a")
	if err := other.Tidy(t.Context(), store.Lease{}, "main", later, later); err != nil {
		t.Fatal(err)
	}
	record(other, "/b")
	record(s, "/a")
	var paths []string
	for e, err := range s.Events(t.Context(), "main", store.EventQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, e.Path)
	}
	if !slices.Equal(paths, []string{"/b", "/a"}) {
		t.Errorf("events of %q", paths)
	}
}

// usageChild is an environment variable that turns the test binary into a process that records
// until it is killed. Its value is the path of the store.
const usageChild = "MILLRACE_TEST_USAGE_CHILD"

// recordForever records batches of different sizes. All events of a batch have its number in
// Results. It prints the number of each acknowledged batch, and tidies in between.
func recordForever(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, nil)
	if err != nil {
		return err
	}
	if _, err := s.Site(ctx, "main", benchBase); err != nil {
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
			if err := s.Tidy(ctx, store.Lease{}, "main", time.Time{}, time.Time{}); err != nil {
				return err
			}
		}
	}
}

// TestUsageCrash repeatedly kills a process that records. Each time it checks that all
// acknowledged batches are stored, and that any other batch is complete or absent.
func TestUsageCrash(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	path := filepath.Join(t.TempDir(), "crash.db")
	rng := rand.New(rand.NewPCG(7, 11))
	for round := range rounds {
		acked := storetest.Kill(t, usageChild, path, time.Duration(rng.IntN(30_000))*time.Microsecond)
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
