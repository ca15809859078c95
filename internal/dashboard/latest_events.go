package dashboard

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/store"
)

// maxLatestHours is how many hours are looked through at most: each costs as much
// as all that was asked for in it.
const maxLatestHours = 16

// latest returns the newest of the events that q asks for, which has a limit;
// fewer, where they lie far apart. Among millions of others, few may be such:
// the sums, by which takes knows them, say in which hours there are any.
func (d *Dashboard) latest(ctx context.Context, span period, q store.EventQuery, takes func(*store.Sum) bool) ([]store.Event, error) {
	q.Newest = true
	var out []store.Event
	looks := 0
	days, err := d.periods(ctx, store.SumQuery{From: span.From, To: span.To, Per: store.Day}, takes)
	if err != nil {
		return nil, err
	}
	for _, day := range newest(days) {
		hours, err := d.periods(ctx, store.SumQuery{From: day, To: day.AddDate(0, 0, 1), Per: store.Hour}, takes)
		if err != nil {
			return nil, err
		}
		for _, start := range newest(hours) {
			most := q.Limit - len(out)
			if most <= 0 || looks == maxLatestHours {
				return newestFirst(out), nil
			}
			looks++
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

// periods returns the beginnings of the periods with sums that takes knows, and
// how long they are: a day, where nothing else is kept.
func (d *Dashboard) periods(ctx context.Context, q store.SumQuery, takes func(*store.Sum) bool) (map[time.Time]time.Duration, error) {
	out := map[time.Time]time.Duration{}
	for s, err := range d.site.Usage.Sums(ctx, d.site.Name, q) {
		if err != nil {
			return nil, err
		}
		if takes(&s) {
			out[s.Start.UTC()] = time.Duration(s.Per)
		}
	}
	return out, nil
}

func newest(periods map[time.Time]time.Duration) []time.Time {
	return slices.SortedFunc(maps.Keys(periods), func(a, b time.Time) int { return b.Compare(a) })
}

// newestFirst orders events by their times, since their numbers are in the order
// in which answers were over.
func newestFirst(events []store.Event) []store.Event {
	slices.SortStableFunc(events, func(a, b store.Event) int { return b.Time.Compare(a.Time) })
	return events
}
