package agent

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// quotaState returns the State of a new store.
func quotaState(t *testing.T) store.State {
	t.Helper()
	return memory.New(nil).State()
}

func perDay(n int) protocol.Terms {
	return protocol.Terms{
		URL: "https://example.com/llm-policy.json", Policy: &millrace.Policy{Rate: millrace.RateHints{PerDay: n}},
		Names: protocol.MemberNames{PerDay: "per_day"},
	}
}

// Concurrent pulls share the daily quota, and unused requests are returned to it.
func TestQuotaShared(t *testing.T) {
	t.Parallel()
	requests := requestsTo(quotaState(t), "example.com")
	now := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	open := func(limit, spent int) *quota {
		q := &quota{requests: requests, now: func() time.Time { return now }, spent: spent}
		q.setLimit(perDay(limit))
		return q
	}
	var made atomic.Int64
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for range 5 { // one pull after the other
				q := open(250, 1)
				made.Add(1)
				for range 10 + i {
					err := q.take(t.Context())
					if err == nil {
						made.Add(1)
					} else if over := (*quotaError)(nil); !errors.As(err, &over) {
						t.Error(err)
					}
				}
				if err := q.close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	rest := 0
	q := open(250, 0)
	var err error
	for ; err == nil; rest++ {
		err = q.take(t.Context())
	}
	rest--
	over := (*quotaError)(nil)
	if !errors.As(err, &over) || !errors.Is(err, millrace.ErrUnavailable) || !over.again.Equal(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("at the end: %v", err)
	}
	// Only requests sent before the limit was known may exceed it.
	if n := int(made.Load()) + rest; n < 250 || n > 250+30 {
		t.Errorf("%d requests of 250", n)
	}
	if err := open(1000, 0).take(t.Context()); err != nil {
		t.Errorf("with a higher limit: %v", err)
	}
	now = now.Add(2 * time.Hour)
	for range 3 {
		if err := open(3, 0).take(t.Context()); err != nil { // none is closed, as if the pulls were killed
			t.Errorf("on the next day: %v", err)
		}
	}
	if err := open(3, 0).take(t.Context()); err == nil {
		t.Error("another pull sends requests that were reserved and not sent")
	}
}

// A pull that runs past midnight does not return unused requests of the previous day.
func TestQuotaMidnight(t *testing.T) {
	t.Parallel()
	requests := requestsTo(quotaState(t), "example.com")
	now := time.Date(2026, 3, 1, 23, 59, 59, 0, time.UTC)
	q := &quota{requests: requests, now: func() time.Time { return now }}
	q.setLimit(perDay(20))
	for range 20 {
		if err := q.take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.take(t.Context()); err == nil {
		t.Error("one too many")
	}
	now = now.Add(time.Second)
	for range 5 {
		if err := q.take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := 0
	for q = (&quota{requests: requests, now: q.now, limit: 20, terms: perDay(20)}); q.take(t.Context()) == nil; {
		left++
	}
	if left != 15 {
		t.Errorf("%d are left of 20, after 5", left)
	}
}
