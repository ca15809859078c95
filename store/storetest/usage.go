package storetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

func (f *fixture) record(site string, events ...store.Event) {
	f.Helper()
	if err := f.usage.Record(f.Context(), site, events); err != nil {
		f.Fatalf("record %d events of %s: %v", len(events), site, err)
	}
}

func (f *fixture) events(site string, q store.EventQuery) []store.Event {
	f.Helper()
	list := []store.Event{}
	for e, err := range f.usage.Events(f.Context(), site, q) {
		if err != nil {
			f.Fatalf("events of %s: %v", site, err)
		}
		list = append(list, e)
	}
	return list
}

// numbers returns the numbers of the events that match a query.
func (f *fixture) numbers(q store.EventQuery) []int {
	f.Helper()
	list := []int{}
	for _, e := range f.events(siteName, q) {
		list = append(list, int(e.Number))
	}
	return list
}

func (f *fixture) sums(site string, q store.SumQuery) []store.Sum {
	f.Helper()
	list := []store.Sum{}
	for s, err := range f.usage.Sums(f.Context(), site, q) {
		if err != nil {
			f.Fatalf("sums of %s: %v", site, err)
		}
		list = append(list, s)
	}
	return list
}

func (f *fixture) top(of store.Topic, from, to time.Time, limit int) []store.TopItem {
	f.Helper()
	list, err := f.usage.Top(f.Context(), siteName, of, from, to, limit)
	if err != nil {
		f.Fatalf("most requested %s: %v", of, err)
	}
	return list
}

func (f *fixture) tidy(events, hours time.Time) {
	f.Helper()
	if err := f.usage.Tidy(f.Context(), store.Lease{}, siteName, events, hours); err != nil {
		f.Fatalf("tidy: %v", err)
	}
}

// fetched returns an event about a page.
func fetched(at time.Time, path string, status int) store.Event {
	e := store.Event{
		Time: at, Bot: "GPTBot", Family: "openai", Protocol: "tct-01", Endpoint: store.EndpointFetch, Path: path, Status: status,
		HTML: 9000, Received: 3000, Took: 700 * time.Microsecond,
	}
	if status == 200 {
		e.Bytes, e.Size = 1000, 4000
	} else {
		e.Cached = true
	}
	return e
}

// noon returns noon of a day in March.
func noon(day int) time.Time { return time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC) }

func usageCases() []testCase {
	return append([]testCase{
		{"a store begins without events", func(_ *testing.T, f *fixture) {
			for _, site := range []string{siteName, "absent"} {
				want(f, "events", f.events(site, store.EventQuery{}), []store.Event{})
				want(f, "sums", f.sums(site, store.SumQuery{Per: store.Hour}), []store.Sum{})
			}
			want(f, "top", len(f.top(store.TopPages, time.Time{}, time.Time{}, 0)), 0)
			f.tidy(f.clock(), f.clock())
		}},
		{"events are stored unchanged", func(_ *testing.T, f *fixture) {
			f.openSite("other", "https://other.example/")
			now := f.clock().Add(123456789)
			full := store.Event{
				Number: 77, Time: now, Bot: "GPTBot", Family: "openai", Identity: store.Verified, Protocol: "openfeeder", Endpoint: store.EndpointSearch,
				Path: "/openfeeder", Query: "größe & 水", Intent: "answer a question", Results: 12, Status: 200, Cached: true,
				Bytes: 1 << 40, Size: math.MaxInt64, HTML: 5, Received: 6, Took: 1234567 * time.Nanosecond,
			}
			other := fetched(now, "/", 404)
			f.record(siteName, full, store.Event{})
			f.record("other", other)
			f.record(siteName, other)
			full.Number, full.Time, full.Took = 1, now.Truncate(time.Millisecond), 1234*time.Microsecond
			other.Time, other.Number = full.Time, 3
			all := []store.Event{full, {Number: 2, Time: time.Time{}}, other}
			want(f, "events", f.events(siteName, store.EventQuery{}), all)
			f.tidy(time.Time{}, time.Time{})
			f.reopen()
			f.record(siteName, other)
			again := other
			again.Number = 4
			want(f, "events after reopening", f.events(siteName, store.EventQuery{}), append(all, again))
			other.Number = 1
			want(f, "events of the other site", f.events("other", store.EventQuery{}), []store.Event{other})
		}},
		{"texts of events are cleaned", func(_ *testing.T, f *fixture) {
			long := strings.Repeat("ü", 200)
			f.record(siteName, store.Event{
				Time: f.clock(), Bot: "a\x00b", Family: "\xff", Identity: "x\r\ny", Protocol: "\u0085", Endpoint: "\t", Path: long, Query: "<b>\x1b[31m",
				Intent: strings.Repeat("x", 1000), Results: -1, Status: -1, Bytes: -1, Size: -1, HTML: -1, Received: -1, Took: -1,
			})
			want(f, "event", f.events(siteName, store.EventQuery{}), []store.Event{{
				Number: 1, Time: f.clock(), Bot: "a�b", Family: "�", Identity: "x��y", Protocol: "�", Endpoint: "�",
				Path: long[:store.MaxEventText], Query: "<b>�[31m", Intent: strings.Repeat("x", store.MaxEventText),
			}})
		}},
		{"events are selected by a query", func(_ *testing.T, f *fixture) {
			for i := range 40 {
				e := fetched(noon(1).Add(time.Duration(i)*time.Minute), fmt.Sprint("/", i%4), []int{200, 304, 404, 500, 0}[i%5])
				e.Bot, e.Protocol = []string{"GPTBot", "ClaudeBot", "other"}[i%3], []string{"scp", "html"}[i%2]
				if i%10 == 9 {
					e.Endpoint = store.EndpointIndex
				}
				f.record(siteName, e)
				if i == 20 {
					f.tidy(time.Time{}, time.Time{})
				}
			}
			for _, c := range []struct {
				q    store.EventQuery
				want []int
			}{
				{store.EventQuery{Limit: 3}, []int{1, 2, 3}},
				{store.EventQuery{After: 37}, []int{38, 39, 40}},
				{store.EventQuery{After: 40}, []int{}},
				{store.EventQuery{After: math.MaxUint64}, []int{}},
				{store.EventQuery{Newest: true, Limit: 2}, []int{40, 39}},
				{store.EventQuery{Newest: true, After: 3}, []int{2, 1}},
				{store.EventQuery{Newest: true, After: 1}, []int{}},
				{store.EventQuery{Newest: true, After: math.MaxUint64, Limit: 1}, []int{40}},
				{store.EventQuery{From: noon(1).Add(37 * time.Minute)}, []int{38, 39, 40}},
				{store.EventQuery{From: noon(1).Add(37*time.Minute + 1)}, []int{39, 40}},
				{store.EventQuery{To: noon(1).Add(2 * time.Minute), Newest: true}, []int{2, 1}},
				{store.EventQuery{To: noon(1).Add(2*time.Minute + 1)}, []int{1, 2, 3}},
				{store.EventQuery{From: noon(2)}, []int{}},
				{store.EventQuery{Bot: "ClaudeBot", Limit: 3}, []int{2, 5, 8}},
				{store.EventQuery{Bot: "Claude"}, []int{}},
				{store.EventQuery{Protocol: "html", Path: "/3", Limit: 2}, []int{4, 8}},
				{store.EventQuery{Path: "/9"}, []int{}},
				{store.EventQuery{Endpoint: store.EndpointIndex}, []int{10, 20, 30, 40}},
				{store.EventQuery{Outcomes: []store.Outcome{store.Failed, store.Missing}, Limit: 4}, []int{3, 4, 5, 8}},
				{store.EventQuery{Outcomes: []store.Outcome{store.Unmodified}, Bot: "other", Newest: true, Limit: 2}, []int{27, 12}},
			} {
				want(f, fmt.Sprintf("%+v", c.q), f.numbers(c.q), c.want)
			}
		}},
		{"events are summed by hour and day", func(_ *testing.T, f *fixture) {
			verified := fetched(noon(1).Add(time.Minute), "/c", 200)
			verified.Identity, verified.HTML, verified.Received = store.Verified, 0, 0
			f.record(siteName, fetched(noon(1), "/a", 200), fetched(noon(1).Add(time.Hour-1), "/b", 200), fetched(noon(1), "/a", 304), verified)
			f.record(siteName, fetched(noon(1).Add(time.Hour), "/a", 200), fetched(noon(2), "/a", 200))
			row := func(at time.Time, per store.Period, o store.Outcome, n int64) store.Sum {
				s := store.Sum{Start: at, Per: per, Bot: "GPTBot", Family: "openai", Protocol: "tct-01", Endpoint: store.EndpointFetch, Outcome: o}
				s.Events, s.HTML, s.Received, s.HTMLKnown, s.HTMLWithReceived, s.Took = n, 9000*n, 3000*n, n, 9000*n, time.Duration(n)*700*time.Microsecond
				if o == store.Sent {
					s.Bytes, s.Size = 1000*n, 4000*n
				} else {
					s.Cached = n
				}
				return s
			}
			other := row(noon(1), store.Hour, store.Sent, 1)
			other.Identity, other.HTML, other.Received, other.HTMLKnown, other.HTMLWithReceived = store.Verified, 0, 0, 0, 0
			hours := []store.Sum{
				row(noon(1), store.Hour, store.Sent, 2), other, row(noon(1), store.Hour, store.Unmodified, 1),
				row(noon(1).Add(time.Hour), store.Hour, store.Sent, 1), row(noon(2), store.Hour, store.Sent, 1),
			}
			day := func(n int) time.Time { return noon(n).Add(-12 * time.Hour) }
			other.Start, other.Per = day(1), store.Day
			days := []store.Sum{row(day(1), store.Day, store.Sent, 3), other, row(day(1), store.Day, store.Unmodified, 1), row(day(2), store.Day, store.Sent, 1)}
			check := func(what string) {
				f.Helper()
				want(f, "hours, "+what, f.sums(siteName, store.SumQuery{Per: store.Hour}), hours)
				want(f, "days, "+what, f.sums(siteName, store.SumQuery{}), days)
				want(f, "some hours, "+what, f.sums(siteName, store.SumQuery{Per: store.Hour, From: noon(1).Add(1), To: noon(2)}), hours[3:4])
				want(f, "some days, "+what, f.sums(siteName, store.SumQuery{Per: store.Day, From: day(1).Add(1), To: day(2).Add(1)}), days[3:])
			}
			check("recorded")
			f.pass(48 * time.Hour)
			f.tidy(time.Time{}, time.Time{})
			check("tidied")
			f.reopen()
			f.tidy(day(3), day(2).Add(-time.Hour))
			check("without events")
			want(f, "events", f.numbers(store.EventQuery{}), []int{})
			f.tidy(day(3), day(2))
			want(f, "days for hours", f.sums(siteName, store.SumQuery{Per: store.Hour}), append(days[:3:3], hours[4]))
			f.record(siteName, fetched(noon(1), "/late", 304))
			late := row(day(1), store.Day, store.Unmodified, 2)
			for range 2 {
				want(f, "a late event", f.sums(siteName, store.SumQuery{Per: store.Hour})[2], late)
				want(f, "a late event's day", f.sums(siteName, store.SumQuery{Per: store.Day})[2], late)
				f.tidy(time.Time{}, time.Time{})
			}
			want(f, "its number", f.numbers(store.EventQuery{}), []int{7})
			for _, err := range f.usage.Sums(f.Context(), siteName, store.SumQuery{Per: store.Hour / 2}) {
				if !errors.Is(err, millrace.ErrInvalid) {
					f.Errorf("half an hour: %v", err)
				}
			}
		}},
		{"the most requested items are counted", func(_ *testing.T, f *fixture) {
			search := func(at time.Time, q string, results int64, status int) store.Event {
				return store.Event{Time: at, Bot: "GPTBot", Protocol: "openfeeder", Endpoint: store.EndpointSearch, Query: q, Results: results, Status: status, Bytes: 10}
			}
			last := noon(2).Add(time.Second)
			f.record(siteName, fetched(noon(1), "/a", 200), fetched(noon(2), "/b", 200), fetched(last, "/a", 304), fetched(noon(2), "/none", 404),
				fetched(noon(2), "/gone", 410), fetched(noon(2), "/gone", 404), fetched(noon(2), "/kept", 403),
				search(noon(2), "mill", 3, 200), search(noon(2), "mill", 0, 304), search(noon(2), "race", 0, 200), search(noon(2), "race", 0, 400), search(noon(2), "", 7, 200))
			f.pass(24 * time.Hour)
			day := noon(2).Add(-12 * time.Hour)
			for _, tidied := range []bool{false, true} {
				a, b, gone := last, noon(2), noon(2)
				mill := store.TopItem{Name: "mill", Events: 2, Bytes: 20, Last: noon(2)}
				race := store.TopItem{Name: "race", Events: 1, Empty: 1, Bytes: 10, Last: noon(2)}
				if tidied {
					f.pass(24 * time.Hour)
					f.tidy(f.clock(), f.clock())
					a, b, gone, mill.Last, race.Last = day, day, day, day, day
				}
				want(f, "pages", f.top(store.TopPages, time.Time{}, time.Time{}, 0), []store.TopItem{
					{Name: "/a", Events: 2, Empty: 1, Bytes: 1000, Last: a}, {Name: "/b", Events: 1, Bytes: 1000, Last: b},
				})
				want(f, "pages of a day", f.top(store.TopPages, day, day.Add(1), 1), []store.TopItem{{Name: "/a", Events: 1, Empty: 1, Last: a}})
				want(f, "pages of no day", len(f.top(store.TopPages, day.Add(1), day.Add(24*time.Hour), 1)), 0)
				want(f, "queries", f.top(store.TopQueries, time.Time{}, time.Time{}, 9), []store.TopItem{mill, race})
				want(f, "missing", f.top(store.TopMissing, time.Time{}, time.Time{}, 1), []store.TopItem{{Name: "/gone", Events: 2, Last: gone}})
			}
			if _, err := f.usage.Top(f.Context(), siteName, "robots", time.Time{}, time.Time{}, 1); !errors.Is(err, millrace.ErrInvalid) {
				f.Errorf("unknown topic: %v", err)
			}
		}},
		{"events of an absent site are refused", func(_ *testing.T, f *fixture) {
			for what, err := range map[string]error{
				"record": f.usage.Record(f.Context(), "absent", []store.Event{fetched(noon(1), "/", 200)}),
				"tidy":   f.usage.Tidy(f.Context(), store.Lease{}, "absent", noon(1), noon(1)),
			} {
				if !errors.Is(err, millrace.ErrNotFound) {
					f.Errorf("%s: %v", what, err)
				}
			}
			f.record(siteName)
			want(f, "events", f.numbers(store.EventQuery{}), []int{})
		}},
		{"numbers continue after all events are deleted", func(_ *testing.T, f *fixture) {
			f.record(siteName, fetched(noon(1), "/", 200), fetched(noon(1), "/", 200))
			f.pass(24 * time.Hour)
			f.tidy(f.clock(), time.Time{})
			f.reopen()
			f.record(siteName, fetched(f.clock(), "/", 200))
			want(f, "events", f.numbers(store.EventQuery{}), []int{3})
		}},
		{"concurrently recorded events are all stored", func(t *testing.T, f *fixture) {
			const writers, batches, size = 4, 10, 20
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for b := range batches {
						events := make([]store.Event, size)
						for i := range events {
							events[i] = fetched(noon(1).Add(time.Duration(b)*time.Hour), fmt.Sprint("/", i), 200)
						}
						if err := f.usage.Record(t.Context(), siteName, events); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Go(func() {
				for range batches {
					if err := f.usage.Tidy(t.Context(), store.Lease{}, siteName, time.Time{}, time.Time{}); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() { // readers must not see an event twice or an incomplete batch
				for range batches {
					n := 0
					for e, err := range f.usage.Events(t.Context(), siteName, store.EventQuery{}) {
						if n++; err != nil || e.Number != uint64(n) {
							t.Errorf("event %d: %+v, %v", n, e, err)
						}
					}
					var sum int64
					for s, err := range f.usage.Sums(t.Context(), siteName, store.SumQuery{Per: store.Day}) {
						if sum += s.Events; err != nil {
							t.Error(err)
						}
					}
					if n%size != 0 || sum%size != 0 || int(sum) < n {
						t.Errorf("%d events, and %d in the sums", n, sum)
					}
				}
			})
			wg.Wait()
			want(f, "number", len(f.events(siteName, store.EventQuery{})), writers*batches*size)
			want(f, "top", f.top(store.TopPages, time.Time{}, time.Time{}, 1)[0].Events, writers*batches)
		}},
	}, usageBoundCases()...)
}
