package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/store"
)

// TestUsageJoin has two processes record single events at once, each joined to
// those before, while one of them tidies up and another reads what comes: every
// event is there once, has the next number, and is seen once.
func TestUsageJoin(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := &Options{Now: func() time.Time { return now }, foldEvents: 30}
	both := []*Store{usageStore(t, file, o), usageStore(t, file, o)}
	reader := usageStore(t, file, o)
	const each = 150
	var recording sync.WaitGroup
	var ended atomic.Bool
	for i, s := range both {
		recording.Go(func() {
			for n := range each {
				e := store.Event{Time: now, Bot: "GPTBot", Endpoint: store.EndpointFetch, Path: fmt.Sprintf("/%d/%d", i, n), Status: 200}
				if err := s.Record(t.Context(), "main", []store.Event{e}); err != nil {
					t.Error(err)
				}
				if i == 0 && n%10 == 9 {
					if err := s.Tidy(t.Context(), "main", time.Time{}, time.Time{}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	go func() { recording.Wait(); ended.Store(true) }()
	var last uint64
	seen := make(map[string]int)
	for more := true; more; {
		more = !ended.Load()
		for e, err := range reader.Events(t.Context(), "main", store.EventQuery{After: last}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Number != last+1 {
				t.Fatalf("event %d comes after %d", e.Number, last)
			}
			last = e.Number
			seen[e.Path]++
		}
		var sum uint64
		for e, err := range reader.Sums(t.Context(), "main", store.SumQuery{Per: store.Hour}) {
			if err != nil {
				t.Fatal(err)
			}
			sum += uint64(e.Events)
		}
		if sum < last || !more && sum != last {
			t.Fatalf("%d events in the sums, and %d were seen before", sum, last)
		}
	}
	if last != 2*each || len(seen) != 2*each {
		t.Errorf("%d events of %d paths, not %d", last, len(seen), 2*each)
	}
	for i, s := range both {
		if n, err := s.Top(t.Context(), "main", store.TopPages, time.Time{}, time.Time{}, 0); err != nil || len(n) != 2*each || n[0].Events != 1 {
			t.Errorf("process %d: %d pages, %v", i, len(n), err)
		}
	}
}

// TestUsageSingly holds what events take that come one by one, as on a quiet site.
func TestUsageSingly(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := usageStore(t, filepath.Join(t.TempDir(), "x.db"), &Options{Now: func() time.Time { return now }})
	const n = 2*joinEvents + 10
	events := visits(rand.New(rand.NewPCG(1, 1)), now, 0.1, n)
	for i := range events {
		if err := s.Record(t.Context(), "main", events[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	var blocks, size int64
	if err := s.read.row(t.Context(), "SELECT count(*), sum(length(data)) FROM usage_event", nil, &blocks, &size); err != nil {
		t.Fatal(err)
	}
	if blocks != 3 || size > 50*n {
		t.Errorf("%d events have %d blocks, and take %d bytes", n, blocks, size)
	}
	for e, err := range s.Events(t.Context(), "main", store.EventQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		want := events[0]
		want.Number, want.Time, events = e.Number, want.Time.Truncate(time.Millisecond), events[1:]
		if diff := cmp.Diff(want, e); diff != "" || e.Number != uint64(n-len(events)) {
			t.Fatalf("event %d (-recorded +kept):\n%s", e.Number, diff)
		}
	}
	if len(events) > 0 {
		t.Errorf("%d events are missing", len(events))
	}
}

// TestUsageFoldFails has the store fail halfway as it adds events to the sums and
// tops, some times: nothing is lost by that, and nothing counted twice.
func TestUsageFoldFails(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := &Options{Now: func() time.Time { return now }, foldEvents: 40}
	s, one := usageStore(t, filepath.Join(t.TempDir(), "x.db"), o), usageStore(t, filepath.Join(t.TempDir(), "x.db"), o)
	exec := func(query string) {
		t.Helper()
		if err := s.writer.do(t.Context(), func(t *tx) error { return t.exec(query) }); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 40 {
		switch i % 20 {
		case 3:
			exec("CREATE TRIGGER full BEFORE INSERT ON usage_top WHEN NEW.topic = 1 BEGIN SELECT RAISE(ABORT, 'it is full'); END")
		case 14:
			if next, summed, err := usageState(bound{t.Context(), s.read}, 1); err != nil || next-summed < 80 {
				t.Fatalf("it has not failed: %d events are in no sum, %v", next-summed, err)
			}
			exec("DROP TRIGGER full")
		}
		events := visits(rng, now, 1, 10)
		for _, s := range []*Store{s, one} {
			if err := s.Record(t.Context(), "main", events); err != nil {
				t.Fatal(err)
			}
		}
		if i%5 == 0 {
			if diff := cmp.Diff(told(t, one), told(t, s)); diff != "" {
				t.Fatalf("batch %d (-never failed +failed):\n%s", i, diff)
			}
		}
	}
	for _, s := range []*Store{s, one} {
		if err := s.Tidy(t.Context(), "main", time.Time{}, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(told(t, one), told(t, s)); diff != "" {
		t.Fatalf("in the end (-never failed +failed):\n%s", diff)
	}
}
