package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// quota counts the requests to a host in one UTC day, over all pulls that share [Options.RequestCounts].
// It reserves requests in the store in blocks before they are sent. So a killed pull may count
// requests that it has not sent, but never sends a request that is not counted.
type quota struct {
	requests state.JSON[quotaRecord]
	now      func() time.Time

	mu    sync.Mutex
	limit int
	terms protocol.Terms // document that sets the limit
	spent int            // requests of this pull that the store does not count yet
	day   string         // UTC date for which left is valid
	left  int            // reserved requests that were not sent yet
}

// quotaError reports that a site accepts no more requests today. It wraps
// [millrace.ErrUnavailable].
type quotaError struct {
	document, member string
	limit            int
	again            time.Time
}

// Error states the limit and the time to continue.
func (e *quotaError) Error() string {
	return fmt.Sprintf("%s allows at most %d requests per day (%s), and all of them were sent; pages read so far are kept; continue after %s, or at once with Options.IgnorePolicy",
		e.document, e.limit, e.member, e.again.Format(time.RFC3339))
}

// Unwrap returns [millrace.ErrUnavailable].
func (e *quotaError) Unwrap() error { return millrace.ErrUnavailable }

// quotaRecord is the stored count of requests.
type quotaRecord struct {
	Day  string `json:"day"`
	Used int    `json:"used"`
}

// quotaBlock is the maximum number of requests that are reserved at once.
const quotaBlock = 100

// setLimit sets the limit to the daily rate of t.
func (q *quota) setLimit(t protocol.Terms) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.terms, q.limit = t, t.Policy.Rate.PerDay
}

// take counts one request, or returns a quotaError if it would exceed the limit.
func (q *quota) take(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now().UTC()
	if day := now.Format(time.DateOnly); day != q.day {
		q.day, q.left = day, 0
	}
	if q.left == 0 {
		err := q.change(ctx, func(used int) int {
			used += q.spent
			q.left = max(0, min(max(1, q.limit/10), quotaBlock, q.limit-used))
			return used + q.left
		})
		if err != nil {
			q.left = 0
			return err
		}
		q.spent = 0
	}
	if q.left == 0 {
		return &quotaError{q.terms.URL, q.terms.Names.PerDay, q.limit, now.Truncate(24*time.Hour).AddDate(0, 0, 1)}
	}
	q.left--
	return nil
}

// close returns reserved requests that were not sent to the store, and counts the sent requests that
// the store does not count yet.
func (q *quota) close(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	today := q.now().UTC().Format(time.DateOnly)
	if q.day != "" && q.day != today {
		q.left = 0 // the reservation was for a day that is over
	}
	if q.left == 0 && q.spent == 0 {
		return nil
	}
	q.day = today
	err := q.change(ctx, func(used int) int { return max(0, used+q.spent-q.left) })
	if err == nil {
		q.left, q.spent = 0, 0
	}
	return err
}

// change updates the stored number of requests on q.day. next computes the new number from the old
// one. Several pulls may call change at once.
func (q *quota) change(ctx context.Context, next func(used int) int) error {
	return q.requests.Update(ctx, func(r *quotaRecord) error {
		if r.Day != q.day {
			*r = quotaRecord{Day: q.day}
		}
		r.Used = next(r.Used)
		return nil
	})
}

// requestsTo returns the record that counts the requests to a host.
func requestsTo(st store.State, host string) state.JSON[quotaRecord] {
	return state.JSON[quotaRecord]{State: st, Namespace: host, Key: "requests"}
}
