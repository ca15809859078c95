package ingest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/memory"
)

// All processes that publish a site with one policy use the same date, in whatever order they
// start.
func TestPolicyDatedOnce(t *testing.T) {
	t.Parallel()
	st := memory.New(nil).State()
	log := slog.New(slog.DiscardHandler)
	var last time.Time
	for round, train := range []bool{false, true, false} {
		p := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: train}}
		times := make([]time.Time, 8)
		var all sync.WaitGroup
		for i := range times {
			all.Go(func() {
				dated, err := DatedPolicy(t.Context(), st, "site", p, log)
				if err != nil {
					t.Error(err)
					return
				}
				times[i] = dated.Updated
			})
		}
		all.Wait()
		for _, at := range times {
			if !at.Equal(times[0]) || !at.After(last) {
				t.Errorf("round %d: %v, after %v", round, times, last)
				break
			}
		}
		last = times[0]
	}
	// A policy that was removed and added again gets a new date.
	if p, err := DatedPolicy(t.Context(), st, "site", nil, log); p != nil || err != nil {
		t.Errorf("without a policy: %+v, %v", p, err)
	}
	p := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}}
	if dated, err := DatedPolicy(t.Context(), st, "site", p, log); err != nil || !dated.Updated.After(last) {
		t.Errorf("added again: %+v, %v", dated, err)
	}
}

// A policy that changes without a new date is logged.
func TestPolicyDateUnchanged(t *testing.T) {
	t.Parallel()
	st := memory.New(nil).State()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	p := &millrace.Policy{Access: "all", Updated: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, access := range []string{"all", "some"} {
		p.Access = access
		if out.String() != "" {
			t.Errorf("logged too early: %s", out.String())
		}
		if dated, err := DatedPolicy(t.Context(), st, "site", p, log); err != nil || !dated.Updated.Equal(p.Updated) {
			t.Errorf("%+v, %v", dated, err)
		}
	}
	if !strings.Contains(out.String(), " date=2026-01-01T00:00:00Z") {
		t.Errorf("nothing was logged: %s", out.String())
	}
}
