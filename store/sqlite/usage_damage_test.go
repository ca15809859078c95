package sqlite

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/store"
)

// TestUsageAround damages one of three blocks that are in no sum, and then the
// sums and the most asked of one of two days: all the others are read, in both
// directions, and the log tells of each once.
func TestUsageAround(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var log bytes.Buffer
	o := &Options{Now: func() time.Time { return now }, blockEvents: 10, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	file := filepath.Join(t.TempDir(), "x.db")
	s := usageStore(t, file, o)
	rng := rand.New(rand.NewPCG(1, 1))
	run := func(query string) {
		t.Helper()
		if err := s.writer.do(ctx, func(t *tx) error { return t.exec(query) }); err != nil {
			t.Fatal(err)
		}
	}
	look := func(wantEvents, wantSum, wantTop int64) {
		t.Helper()
		for range 2 {
			for _, q := range []store.EventQuery{{}, {Newest: true}, {After: 12}, {After: 12, Limit: 5}} {
				want, n, last := wantEvents, int64(0), uint64(0)
				if q.After > 0 {
					want = min(want, 10)
				}
				if q.Limit > 0 {
					want = 5
				}
				for e, err := range s.Events(ctx, "main", q) {
					if n++; err != nil || e.Number >= 11 && e.Number <= 20 || n > 1 && (e.Number < last) != q.Newest {
						t.Errorf("%+v: %+v, %v", q, e, err)
					}
					last = e.Number
				}
				if n != want {
					t.Errorf("%+v: %d events, want %d", q, n, want)
				}
			}
			for _, per := range []store.Period{store.Hour, store.Day} {
				sum := int64(0)
				for e, err := range s.Sums(ctx, "main", store.SumQuery{Per: per}) {
					if sum += e.Events; err != nil {
						t.Error(err)
					}
				}
				if sum != wantSum {
					t.Errorf("%d events in the sums of %s, want %d", sum, time.Duration(per), wantSum)
				}
			}
			sum := int64(0)
			for _, topic := range []store.Topic{store.TopPages, store.TopMissing, store.TopQueries} {
				list, err := s.Top(ctx, "main", topic, time.Time{}, time.Time{}, 0)
				if err != nil {
					t.Error(err)
				}
				for _, item := range list {
					sum += item.Events
				}
			}
			if sum != wantTop {
				t.Errorf("%d of the most asked, want %d", sum, wantTop)
			}
		}
	}
	told := func(what string, want int) {
		t.Helper()
		if n := strings.Count(log.String(), what); n != want {
			t.Errorf("%q is told %d times, want %d:\n%s", what, n, want, &log)
		}
	}
	for i := range 3 {
		events := visits(rng, now.AddDate(0, 0, i/2), 1, 10) // two blocks are of the first day
		for j := range events {
			events[j].Endpoint, events[j].Status = store.EndpointFetch, 200
		}
		if err := s.Record(ctx, "main", events); err != nil {
			t.Fatal(err)
		}
	}
	run("UPDATE usage_event SET data = x'01020304' WHERE last = 20")
	look(20, 20, 20)
	told("first=11 last=20", 1)

	// Another process reads them, to add them up.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = usageStore(t, file, o)
	now = now.AddDate(0, 0, 1)
	if err := s.Tidy(ctx, "main", time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	look(20, 20, 20)
	run("UPDATE usage_sum SET data = x'01020304' WHERE start < (SELECT max(start) / 24 * 24 FROM usage_sum)")
	run("UPDATE usage_top SET data = x'01020304' WHERE day < (SELECT max(day) FROM usage_top)")
	look(20, 10, 10)
	told("hours since 1970", 2) // of an hour, and of its day
	told("days since 1970", 1)
}
