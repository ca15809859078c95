package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/store"
)

// usageModel is a simple model of the stored usage.
type usageModel struct {
	events    []store.Event // all stored events
	sums      map[store.Sum]store.Counts
	dailyOnly map[time.Time]bool // days without stored hours
	tops      map[store.Topic]map[string]store.TopItem
	next      uint64
}

func (m *usageModel) record(events []store.Event) {
	for _, e := range events {
		m.next++
		e.Number = m.next
		m.events = append(m.events, e)
		m.count(e)
		day := e.Time.Truncate(24 * time.Hour)
		per := []store.Period{store.Day, store.Hour}
		if m.dailyOnly[day] {
			per = per[:1]
		}
		for _, p := range per {
			key := store.Sum{
				Start: e.Time.Truncate(time.Duration(p)), Per: p, Bot: e.Bot, Family: e.Family, Identity: e.Identity,
				Protocol: e.Protocol, Endpoint: e.Endpoint, Outcome: store.OutcomeOf(e.Status),
			}
			c := m.sums[key]
			c.Events++
			if e.Cached {
				c.Cached++
			}
			if e.HTML > 0 {
				c.HTMLKnown++
			}
			if e.Received > 0 {
				c.HTMLWithReceived += e.HTML
			}
			c.Results += e.Results
			c.Bytes += e.Bytes
			c.Size += e.Size
			c.HTML += e.HTML
			c.Received += e.Received
			c.Took += e.Took
			m.sums[key] = c
		}
	}
}

// count counts an event.
func (m *usageModel) count(e store.Event) {
	of := store.TopPages
	outcome := store.OutcomeOf(e.Status)
	switch {
	case outcome == store.Missing:
		of = store.TopMissing
	case outcome != store.Sent && outcome != store.Unmodified:
		return
	}
	if m.tops[of] == nil {
		m.tops[of] = make(map[string]store.TopItem)
	}
	item := m.tops[of][e.Path]
	item.Name = e.Path
	item.Events++
	item.Bytes += e.Bytes
	if outcome == store.Unmodified {
		item.Empty++
	}
	m.tops[of][e.Path] = item
}

// tidy is the model of Tidy.
func (m *usageModel) tidy(events, hours, now time.Time) {
	gone := false
	for i, e := range slices.Backward(m.events) {
		if !e.Time.After(now) {
			gone = e.Time.Before(events)
		}
		if gone {
			m.events = slices.Delete(m.events, i, i+1)
		}
	}
	for k := range maps.Clone(m.sums) {
		day := k.Start.Truncate(24 * time.Hour)
		if end := day.Add(24 * time.Hour); k.Per == store.Hour && (!end.After(hours) || day.After(now)) {
			m.dailyOnly[day] = true
			delete(m.sums, k)
		}
	}
}

// list returns the sums by hour or day in the order of the contract.
func (m *usageModel) list(per store.Period) []store.Sum {
	list := []store.Sum{}
	for k, c := range m.sums {
		if k.Per == per || k.Per == store.Day && m.dailyOnly[k.Start] {
			k.Counts = c
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b store.Sum) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Bot, b.Bot), strings.Compare(a.Protocol, b.Protocol),
			cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Identity, b.Identity))
	})
	return list
}

// randomEvents returns events of a few days in any order, some of them years ahead.
func randomEvents(rng *rand.Rand, now time.Time) []store.Event {
	events := make([]store.Event, 1+rng.IntN(30))
	ahead := rng.IntN(12) == 0
	for i := range events {
		at := now.Add(-time.Duration(rng.IntN(72*3600*1000)) * time.Millisecond)
		if ahead {
			at = at.AddDate(30, 0, 0)
		}
		e := fetched(at, fmt.Sprint("/p/", rng.IntN(40)), []int{200, 200, 304, 404, 503}[rng.IntN(5)])
		e.Bot, e.Family = fmt.Sprint("Bot", rng.IntN(4)), ""
		e.Protocol = []string{"scp", "web", "html"}[rng.IntN(3)]
		e.Identity = []store.BotIdentity{store.Unverified, store.Verified, store.Forged}[rng.IntN(3)]
		e.Bytes, e.Size, e.HTML = rng.Int64N(1<<20), rng.Int64N(1<<20), rng.Int64N(2)*rng.Int64N(1<<20)
		e.Results = rng.Int64N(3)
		events[i] = e
	}
	return events
}

// randomUsage records and tidies events with a clock that moves back and forth. It compares
// all results of the store with the model.
func randomUsage(seed uint64) testCase {
	return testCase{fmt.Sprint("random use ", seed), func(t *testing.T, f *fixture) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := &usageModel{sums: make(map[store.Sum]store.Counts), dailyOnly: make(map[time.Time]bool), tops: make(map[store.Topic]map[string]store.TopItem)}
		steps := 120
		if testing.Short() {
			steps = 40
		}
		for step := range steps {
			f.pass(time.Duration(rng.IntN(8*3600)-3600) * time.Second)
			events := randomEvents(rng, f.clock())
			f.record(siteName, events...)
			m.record(events)
			if rng.IntN(10) == 0 {
				events, hours := f.clock().Add(-time.Duration(rng.IntN(96))*time.Hour), f.clock().Add(-time.Duration(rng.IntN(96))*time.Hour)
				f.tidy(events, hours)
				m.tidy(events, hours, f.clock())
			}
			if rng.IntN(20) == 0 {
				f.reopen()
			}
			if step%8 == 0 {
				f.compareUsage(rng, m)
			}
			if t.Failed() {
				t.Fatalf("at step %d", step)
			}
		}
	}}
}

func (f *fixture) compareUsage(rng *rand.Rand, m *usageModel) {
	f.Helper()
	want(f, "events", f.events(siteName, store.EventQuery{}), append([]store.Event{}, m.events...))
	want(f, "hours", f.sums(siteName, store.SumQuery{Per: store.Hour}), m.list(store.Hour))
	want(f, "days", f.sums(siteName, store.SumQuery{Per: store.Day}), m.list(store.Day))
	for of, items := range m.tops {
		got := make(map[string]store.TopItem)
		before := int64(math.MaxInt64)
		for _, item := range f.top(of, time.Time{}, time.Time{}, 0) {
			if item.Events > before {
				f.Errorf("most requested %s: %s comes too late", of, item.Name)
			}
			before, item.Last = item.Events, time.Time{}
			got[item.Name] = item
		}
		want(f, "most requested "+string(of), got, items)
	}
	q := store.EventQuery{
		After: uint64(rng.IntN(int(m.next) + 2)), Newest: rng.IntN(2) == 0, Limit: rng.IntN(50),
		Bot: []string{"", "Bot1"}[rng.IntN(2)], Protocol: []string{"", "scp"}[rng.IntN(2)], Path: []string{"", "/p/7"}[rng.IntN(2)],
	}
	if rng.IntN(2) == 0 {
		q.From = f.clock().Add(-time.Duration(rng.IntN(96)) * time.Hour)
	}
	if rng.IntN(2) == 0 {
		q.To = f.clock().Add(-time.Duration(rng.IntN(48)) * time.Hour)
	}
	if rng.IntN(2) == 0 {
		q.Outcomes = []store.Outcome{store.Missing, store.Failed}
	}
	want(f, fmt.Sprintf("%+v", q), f.events(siteName, q), m.query(q))
}

// query returns the events that match a query.
func (m *usageModel) query(q store.EventQuery) []store.Event {
	out := []store.Event{}
	all := slices.Clone(m.events)
	if q.Newest {
		slices.Reverse(all)
	}
	for _, e := range all {
		after := e.Number > q.After
		if q.Newest {
			after = q.After == 0 || e.Number < q.After
		}
		if after && (q.From.IsZero() || !e.Time.Before(q.From)) && (q.To.IsZero() || e.Time.Before(q.To)) &&
			(q.Bot == "" || e.Bot == q.Bot) && (q.Protocol == "" || e.Protocol == q.Protocol) && (q.Path == "" || e.Path == q.Path) &&
			(q.Outcomes == nil || slices.Contains(q.Outcomes, store.OutcomeOf(e.Status))) && (q.Limit == 0 || len(out) < q.Limit) {
			out = append(out, e)
		}
	}
	return out
}
