package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// usage is the stored usage of one site.
type usage struct {
	events    []store.Event
	next      uint64                                // number of the newest event
	sums      map[period]map[store.Sum]store.Counts // sums by period and by kind of event
	dailyOnly map[time.Time]bool                    // days without hourly sums
	asked     map[period]items
}

// period is an hour or a day in UTC, or a day of a topic.
type period struct {
	start time.Time
	per   store.Period
	of    store.Topic
}

const (
	day      = time.Duration(store.Day)
	maxSums  = 4096 // maximum per period; then further kinds of events are counted under the bot "other"
	maxItems = 2048 // items that Tidy keeps per topic and day
)

func newUsage() *usage {
	return &usage{sums: make(map[period]map[store.Sum]store.Counts), dailyOnly: make(map[time.Time]bool), asked: make(map[period]items)}
}

// usageOf returns the usage of a site. If the site does not exist, it returns an empty usage and
// ErrNotFound.
func (s *Store) usageOf(site string) (*usage, error) {
	if d := s.sites[site]; d != nil {
		return d.usage, nil
	}
	return newUsage(), fmt.Errorf("site %s: %w: the store has no such site", site, millrace.ErrNotFound)
}

// Record implements [store.Usage].
func (s *Store) Record(ctx context.Context, site string, events []store.Event) error {
	return s.change(ctx, store.Lease{}, "record events", func() error {
		u, err := s.usageOf(site)
		for _, e := range events {
			e = record.Event(e)
			u.next++
			e.Number = u.next
			u.events = append(u.events, e)
			start := e.Time.Truncate(day)
			if u.sum(&e, period{start, store.Day, ""}); !u.dailyOnly[start] {
				u.sum(&e, period{e.Time.Truncate(time.Hour), store.Hour, ""})
			}
			if of, item := record.TopicOf(&e); of != "" {
				key := period{start, store.Day, of}
				if u.asked[key] == nil {
					u.asked[key] = make(items)
				}
				u.asked[key].add(item)
			}
		}
		return err
	})
}

// sum adds an event to the sums of a period.
func (u *usage) sum(e *store.Event, p period) {
	key := store.Sum{
		Start: p.start, Per: p.per, Bot: e.Bot, Family: e.Family, Identity: e.Identity,
		Protocol: e.Protocol, Endpoint: e.Endpoint, Outcome: store.OutcomeOf(e.Status),
	}
	sums := u.sums[p]
	if sums == nil {
		sums = make(map[store.Sum]store.Counts)
		u.sums[p] = sums
	}
	if _, known := sums[key]; !known && len(sums) >= maxSums {
		key.Bot, key.Family, key.Identity = "other", "", store.Unverified
	}
	c := sums[key]
	record.AddCounts(&c, record.Count(e))
	sums[key] = c
}

// items contains the requested items by name.
type items map[string]store.TopItem

func (m items) add(item store.TopItem) {
	sum := m[item.Name]
	record.AddItem(&sum, item)
	m[item.Name] = sum
}

// most returns at most limit of the most requested items, in descending order.
func (m items) most(limit int) []store.TopItem {
	all := slices.SortedFunc(maps.Values(m), func(a, b store.TopItem) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), b.Last.Compare(a.Last), strings.Compare(a.Name, b.Name))
	})
	return all[:min(limit, len(all))]
}

// within reports whether a time is in a range. A zero bound is no bound.
func within(t, from, to time.Time) bool {
	return (from.IsZero() || !t.Before(from)) && (to.IsZero() || t.Before(to))
}

// Events implements [store.Usage].
func (s *Store) Events(ctx context.Context, site string, q store.EventQuery) iter.Seq2[store.Event, error] {
	return list(ctx, s, "events", func() (all []store.Event, _ error) {
		u, _ := s.usageOf(site)
		for _, e := range u.events {
			after := e.Number > q.After
			if q.Newest {
				after = q.After == 0 || e.Number < q.After
			}
			if after && within(e.Time, q.From, q.To) &&
				(q.Bot == "" || q.Bot == e.Bot) && (q.Protocol == "" || q.Protocol == e.Protocol) &&
				(q.Endpoint == "" || q.Endpoint == e.Endpoint) && (q.Path == "" || q.Path == e.Path) &&
				(len(q.Outcomes) == 0 || slices.Contains(q.Outcomes, store.OutcomeOf(e.Status))) {
				all = append(all, e)
			}
		}
		if q.Newest {
			slices.Reverse(all)
		}
		if q.Limit > 0 {
			all = all[:min(q.Limit, len(all))]
		}
		return all, nil
	})
}

// Sums implements [store.Usage].
func (s *Store) Sums(ctx context.Context, site string, q store.SumQuery) iter.Seq2[store.Sum, error] {
	return list(ctx, s, "sums of events", func() (all []store.Sum, _ error) {
		per := cmp.Or(q.Per, store.Day)
		if per != store.Day && per != store.Hour {
			return nil, fmt.Errorf("%w: unknown period; use an hour or a day", millrace.ErrInvalid)
		}
		u, _ := s.usageOf(site)
		for p, sums := range u.sums {
			if within(p.start, q.From, q.To) && (p.per == per || p.per == store.Day && u.dailyOnly[p.start]) {
				for sum, c := range sums {
					sum.Counts = c
					all = append(all, sum)
				}
			}
		}
		slices.SortFunc(all, func(a, b store.Sum) int {
			return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Bot, b.Bot), strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Endpoint, b.Endpoint),
				cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Identity, b.Identity), strings.Compare(a.Family, b.Family))
		})
		return all, nil
	})
}

// Top implements [store.Usage].
func (s *Store) Top(ctx context.Context, site string, of store.Topic, from, to time.Time, limit int) ([]store.TopItem, error) {
	return get(ctx, s, "most requested "+string(of), func() ([]store.TopItem, error) {
		if !slices.Contains([]store.Topic{store.TopPages, store.TopQueries, store.TopMissing}, of) {
			return nil, fmt.Errorf("%w: unknown topic", millrace.ErrInvalid)
		}
		u, _ := s.usageOf(site)
		all := make(items)
		for key, asked := range u.asked {
			if key.of == of && within(key.start, from, to) {
				for _, item := range asked {
					all.add(item)
				}
			}
		}
		if limit <= 0 {
			limit = math.MaxInt
		}
		return all.most(limit), nil
	})
}

// Tidy implements [store.Usage].
func (s *Store) Tidy(ctx context.Context, l store.Lease, site string, events, hours time.Time) error {
	return s.change(ctx, l, "tidy events", func() error {
		u, err := s.usageOf(site)
		today := s.now().Truncate(day)
		future := s.now().Add(day) // later than any correct clock
		gone := false              // the next newer event that is not in the future is deleted
		slices.Reverse(u.events)
		u.events = slices.DeleteFunc(u.events, func(e store.Event) bool {
			if !e.Time.After(future) {
				gone = e.Time.Before(events)
			}
			return gone
		})
		slices.Reverse(u.events)
		for p := range u.sums {
			if start := p.start.Truncate(day); p.per == store.Hour && (!start.Add(day).After(hours) || start.After(future)) {
				u.dailyOnly[start] = true
				delete(u.sums, p)
			}
		}
		for key, asked := range u.asked {
			u.asked[key] = make(items)
			for _, item := range asked.most(maxItems) {
				if key.start.Before(today) || key.start.After(today.Add(day)) {
					item.Last = key.start // the day is over
				}
				u.asked[key].add(item)
			}
		}
		return err
	})
}
