package dashboard

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/store"
)

// maxLatestHours is the maximum number of hours to read. The cost of an hour grows with its
// events.
const maxLatestHours = 16

// latest returns the newest events that match q, up to its limit, or fewer if they are spread over
// more than maxLatestHours. Matching events may be rare, so latest reads only hours with sums for
// which matches returns true.
func (d *Dashboard) latest(ctx context.Context, span period, q store.EventQuery, matches func(*store.Sum) bool) ([]store.Event, error) {
	q.Newest = true
	var out []store.Event
	hoursRead := 0
	days, err := d.periods(ctx, store.SumQuery{From: span.From, To: span.To, Per: store.Day}, matches)
	if err != nil {
		return nil, err
	}
	for _, day := range newest(days) {
		hours, err := d.periods(ctx, store.SumQuery{From: day, To: day.AddDate(0, 0, 1), Per: store.Hour}, matches)
		if err != nil {
			return nil, err
		}
		for _, start := range newest(hours) {
			most := q.Limit - len(out)
			if most <= 0 || hoursRead == maxLatestHours {
				return newestFirst(out), nil
			}
			hoursRead++
			q := q
			q.From, q.To, q.Limit = start, start.Add(hours[start]), most
			for e, err := range d.site.Usage.Events(ctx, d.site.Name, q) {
				if err != nil {
					return nil, err
				}
				out = append(out, e)
			}
		}
	}
	return newestFirst(out), nil
}

// periods returns the start and length of the periods with sums for which matches returns true:
// hours, or days where hourly sums no longer exist.
func (d *Dashboard) periods(ctx context.Context, q store.SumQuery, matches func(*store.Sum) bool) (map[time.Time]time.Duration, error) {
	out := map[time.Time]time.Duration{}
	for s, err := range d.site.Usage.Sums(ctx, d.site.Name, q) {
		if err != nil {
			return nil, err
		}
		if matches(&s) {
			out[s.Start.UTC()] = time.Duration(s.Per)
		}
	}
	return out, nil
}

func newest(periods map[time.Time]time.Duration) []time.Time {
	return slices.SortedFunc(maps.Keys(periods), func(a, b time.Time) int { return b.Compare(a) })
}

// newestFirst orders events by time. Their numbers are in the order in which the responses
// ended.
func newestFirst(events []store.Event) []store.Event {
	slices.SortStableFunc(events, func(a, b store.Event) int { return b.Time.Compare(a.Time) })
	return events
}
