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

// usage is what the store has of the requests to one site: every event. What
// Tidy drops is left out when it is read.
type usage struct {
	events []event
	whole  map[time.Time]bool // days without sums of hours
	tidied map[time.Time]bool // days of which only the most asked is counted; true: they are over
}

type event struct {
	store.Event
	dropped bool
}

const (
	day       = time.Duration(store.Day)
	maxSums   = 4096 // of a period: the bots of further ones are "other"
	keptAsked = 2048 // that Tidy keeps of a topic and a day
)

func newUsage() *usage {
	return &usage{whole: make(map[time.Time]bool), tidied: make(map[time.Time]bool)}
}

// usageOf returns the usage of a site.
func (s *Store) usageOf(site string) (*usage, error) {
	if d := s.sites[site]; d != nil {
		return d.usage, nil
	}
	return newUsage(), fmt.Errorf("site %s: %w: the store has no such site", site, millrace.ErrNotFound)
}

// Record implements [store.Usage].
func (s *Store) Record(ctx context.Context, site string, events []store.Event) error {
	return s.change(ctx, "record events", func() error {
		u, err := s.usageOf(site)
		for _, e := range events {
			e = record.Event(e)
			e.Number = uint64(len(u.events) + 1)
			u.events = append(u.events, event{Event: e})
		}
		return err
	})
}

// within reports whether a time is in a range whose bounds may be zero.
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
			if after && !e.dropped && within(e.Time, q.From, q.To) &&
				(q.Bot == "" || q.Bot == e.Bot) && (q.Protocol == "" || q.Protocol == e.Protocol) &&
				(q.Endpoint == "" || q.Endpoint == e.Endpoint) && (q.Path == "" || q.Path == e.Path) &&
				(len(q.Outcomes) == 0 || slices.Contains(q.Outcomes, store.OutcomeOf(e.Status))) {
				all = append(all, e.Event)
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
	return list(ctx, s, "sums of events", func() ([]store.Sum, error) {
		if q.Per != 0 && q.Per != store.Day && q.Per != store.Hour {
			return nil, fmt.Errorf("%w: sums are of an hour or a day", millrace.ErrInvalid)
		}
		u, _ := s.usageOf(site)
		sums := make(map[time.Time]map[store.Sum]store.Counts) // by Start, and by what else is not counted
		for _, e := range u.events {
			key := store.Sum{
				Start: e.Time.Truncate(day), Per: store.Day, Bot: e.Bot, Family: e.Family, Verdict: e.Verdict,
				Protocol: e.Protocol, Endpoint: e.Endpoint, Outcome: store.OutcomeOf(e.Status),
			}
			if q.Per == store.Hour && !u.whole[key.Start] {
				key.Start, key.Per = e.Time.Truncate(time.Hour), store.Hour
			}
			of := sums[key.Start]
			if of == nil {
				of = make(map[store.Sum]store.Counts)
				sums[key.Start] = of
			}
			if _, known := of[key]; !known && len(of) >= maxSums {
				key.Bot, key.Family, key.Verdict = "other", "", store.Unverified
			}
			c := of[key]
			record.AddCounts(&c, record.Count(&e.Event))
			of[key] = c
		}
		var all []store.Sum
		for start, of := range sums {
			for sum, c := range of {
				if sum.Counts = c; within(start, q.From, q.To) {
					all = append(all, sum)
				}
			}
		}
		slices.SortFunc(all, func(a, b store.Sum) int {
			return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Bot, b.Bot), strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Endpoint, b.Endpoint),
				cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Verdict, b.Verdict), strings.Compare(a.Family, b.Family))
		})
		return all, nil
	})
}

// asked counts what was asked for, by name.
type asked map[string]store.TopItem

func (a asked) add(item store.TopItem) {
	sum := a[item.Name]
	record.Add(&item.Bytes, sum.Bytes)
	item.Events, item.Empty = item.Events+sum.Events, item.Empty+sum.Empty
	if sum.Last.After(item.Last) {
		item.Last = sum.Last
	}
	a[item.Name] = item
}

// most returns at most limit items, what was asked for most first.
func (a asked) most(limit int) []store.TopItem {
	all := slices.SortedFunc(maps.Values(a), func(a, b store.TopItem) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), b.Last.Compare(a.Last), strings.Compare(a.Name, b.Name))
	})
	return all[:min(limit, len(all))]
}

// Top implements [store.Usage].
func (s *Store) Top(ctx context.Context, site string, of store.Topic, from, to time.Time, limit int) ([]store.TopItem, error) {
	return get(ctx, s, "most asked "+string(of), func() ([]store.TopItem, error) {
		if !slices.Contains([]store.Topic{store.TopPages, store.TopQueries, store.TopMissing}, of) {
			return nil, fmt.Errorf("%w: no such topic", millrace.ErrInvalid)
		}
		u, _ := s.usageOf(site)
		days, all := make(map[time.Time]asked), make(asked)
		for _, e := range u.events {
			start := e.Time.Truncate(day)
			topic, name, empty := record.Asked(&e.Event)
			if topic != of || !within(start, from, to) {
				continue
			}
			item := store.TopItem{Name: name, Events: 1, Bytes: e.Bytes, Last: e.Time}
			if empty {
				item.Empty = 1
			}
			if u.tidied[start] {
				item.Last = start
			}
			if days[start] == nil {
				days[start] = make(asked)
			}
			days[start].add(item)
		}
		for start, items := range days {
			kept := math.MaxInt
			if _, ok := u.tidied[start]; ok {
				kept = keptAsked
			}
			for _, item := range items.most(kept) {
				all.add(item)
			}
		}
		if limit <= 0 {
			limit = math.MaxInt
		}
		return all.most(limit), nil
	})
}

// Tidy implements [store.Usage].
func (s *Store) Tidy(ctx context.Context, site string, events, hours time.Time) error {
	return s.change(ctx, "tidy events", func() error {
		u, err := s.usageOf(site)
		today := s.now().Truncate(day)
		future := s.now().Add(day) // that no right clock gives to an event
		gone := false              // the next event that is not of the future
		for i := range slices.Backward(u.events) {
			e := &u.events[i]
			if !e.Time.After(future) && !e.dropped {
				gone = e.Time.Before(events)
			}
			e.dropped = e.dropped || gone
			start := e.Time.Truncate(day)
			if !start.Add(day).After(hours) || start.After(future) {
				u.whole[start] = true
			}
			u.tidied[start] = u.tidied[start] || start.Before(today) || start.After(today.Add(day))
		}
		return err
	})
}
