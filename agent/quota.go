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

// quota counts the requests to a host in a day of UTC, over all pulls into one
// store. It takes them from the store in blocks, before they are made: a pull
// that is killed counts a few that it has not made, and never makes one that it
// has not counted.
type quota struct {
	requests state.JSON[quotaRecord]
	now      func() time.Time

	mu    sync.Mutex
	limit int
	terms protocol.Terms // that have the limit
	spent int            // requests of this pull that are not counted yet
	day   string         // of left
	left  int            // taken from the store and not used
}

// quotaError is a site that wants no more requests today. It is
// [millrace.ErrUnavailable].
type quotaError struct {
	document, member string
	limit            int
	again            time.Time
}

// Error says when to go on.
func (e *quotaError) Error() string {
	return fmt.Sprintf("%s asks for at most %d requests a day (%s), which were made: what was read is kept; go on after %s, or at once with Options.IgnorePolicy",
		e.document, e.limit, e.member, e.again.Format(time.RFC3339))
}

// Unwrap gives [millrace.ErrUnavailable].
func (e *quotaError) Unwrap() error { return millrace.ErrUnavailable }

// quotaRecord is what the State of a store has of it.
type quotaRecord struct {
	Day  string `json:"day"`
	Used int    `json:"used"`
}

// quotaBlock is the most requests that are taken at once.
const quotaBlock = 100

// bound sets the limit.
func (q *quota) bound(t protocol.Terms) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.terms, q.limit = t, t.Policy.Rate.PerDay
}

// take counts one request, or says that it would be one too many.
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

// close gives back what was not used.
func (q *quota) close(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	today := q.now().UTC().Format(time.DateOnly)
	if q.day != "" && q.day != today {
		q.left = 0 // of a day that is over
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

// change sets how many requests of q.day are counted, by how many were.
// Several pulls may do so at once.
func (q *quota) change(ctx context.Context, next func(used int) int) error {
	return q.requests.Update(ctx, func(r *quotaRecord) error {
		if r.Day != q.day {
			*r = quotaRecord{Day: q.day}
		}
		r.Used = next(r.Used)
		return nil
	})
}

// requestsTo is where the State of a store counts the requests to a host.
func requestsTo(st store.State, host string) state.JSON[quotaRecord] {
	return state.JSON[quotaRecord]{State: st, Namespace: host, Key: "requests"}
}
