package agent

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

func TestWayRests(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		times int
		age   time.Duration
		want  bool
	}{
		{1, 0, false},
		{2, 59 * time.Minute, true},
		{2, time.Hour, false},
		{3, 119 * time.Minute, true},
		{3, 2 * time.Hour, false},
		{60, 23 * time.Hour, true},
		{60, 24 * time.Hour, false},
		{5, -time.Hour, false},
	} {
		if got := (wayFailure{Times: c.times, Time: now.Add(-c.age)}).postponed(now); got != c.want {
			t.Errorf("%d times, %s ago: %v", c.times, c.age, got)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	if refused(&overBudgetError{millrace.ErrTooLarge}) || !refused(errors.Join(millrace.ErrInvalid)) || refused(millrace.ErrUnavailable) {
		t.Error("falls back after a quota of the user, or not after a broken file")
	}
}
