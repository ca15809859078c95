package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/store"
)

// usageBoundCases are cases about many events and about clocks.
func usageBoundCases() []testCase {
	return []testCase{
		randomUsage(1), randomUsage(2),
		{"most of many names in one hour are counted as other", func(_ *testing.T, f *fixture) {
			const names, batch = 20_000, 5000
			for i := 0; i < names; i += batch {
				events := make([]store.Event, batch)
				for j := range events {
					events[j] = fetched(noon(1), fmt.Sprint("/", i+j), 200)
					events[j].Bot = fmt.Sprint("Bot", i+j)
				}
				f.record(siteName, events...)
				if i == batch {
					f.tidy(time.Time{}, time.Time{})
				}
			}
			for range 2 {
				for _, per := range []store.Period{store.Hour, store.Day} {
					sums := f.sums(siteName, store.SumQuery{Per: per})
					var all, other int64
					for _, s := range sums {
						all += s.Events
						if s.Bot == "other" {
							other += s.Events
							want(f, "family", s.Family, "")
						}
					}
					if all != names || len(sums) > 10_000 || other < names/2 {
						f.Errorf("%d events in %d sums, %d of them other", all, len(sums), other)
					}
				}
				f.tidy(time.Time{}, time.Time{})
			}
			if n := len(f.top(store.TopPages, time.Time{}, time.Time{}, 0)); n > 10_000 {
				f.Errorf("%d pages are counted", n)
			}
		}},
		{"frequently requested items are counted among many others", func(_ *testing.T, f *fixture) {
			const names, batch = 20_000, 2000
			for i := 0; i < names; i += batch {
				events := make([]store.Event, batch)
				for j := range events {
					events[j] = fetched(noon(1), fmt.Sprint("/", i+j), 200)
					if j%10 == 0 {
						events[j].Path = "/often"
					}
				}
				f.record(siteName, events...)
				f.tidy(time.Time{}, time.Time{})
			}
			f.pass(24 * time.Hour)
			f.tidy(time.Time{}, time.Time{})
			list := f.top(store.TopPages, time.Time{}, time.Time{}, 0)
			if len(list) < 1000 || len(list) > 5000 || list[0].Name != "/often" || list[0].Events != names/10 {
				f.Errorf("%d pages are kept, the first is %+v", len(list), list[0])
			}
		}},
		{"a clock that was years ahead leaves nothing permanent", func(_ *testing.T, f *fixture) {
			wrong := noon(1).AddDate(74, 0, 0)
			f.record(siteName, fetched(noon(1), "/a", 200))
			f.record(siteName, fetched(wrong, "/b", 200), fetched(noon(1), "/c", 200))
			f.tidy(time.Time{}, time.Time{})
			f.record(siteName, fetched(wrong, "/d", 200))
			f.tidy(noon(1).Add(-time.Hour), noon(1))
			want(f, "events", f.numbers(store.EventQuery{}), []int{1, 2, 3, 4})
			f.pass(24 * time.Hour)
			f.record(siteName, fetched(f.clock(), "/e", 200))
			f.tidy(noon(1).Add(time.Hour), noon(1))
			want(f, "events a day later", f.numbers(store.EventQuery{}), []int{4, 5})
			var hours int
			for _, s := range f.sums(siteName, store.SumQuery{Per: store.Hour, From: noon(3)}) {
				if s.Per == store.Hour {
					hours++
				}
			}
			want(f, "hours in the future", hours, 0)
			f.pass(24 * time.Hour)
			f.record(siteName, fetched(f.clock(), "/f", 200))
			f.tidy(noon(2).Add(time.Hour), noon(1))
			want(f, "events two days later", f.numbers(store.EventQuery{}), []int{6})
		}},
		{"tidying with a clock that is ahead deletes no future hour", func(_ *testing.T, f *fixture) {
			wrong := noon(1).AddDate(74, 0, 0)
			f.record(siteName, fetched(noon(1), "/a", 200))
			f.tidy(time.Time{}, wrong)
			f.pass(24 * time.Hour)
			f.record(siteName, fetched(f.clock(), "/b", 200))
			f.tidy(noon(1), noon(1))
			sums := f.sums(siteName, store.SumQuery{Per: store.Hour})
			want(f, "periods", []store.Period{sums[0].Per, sums[1].Per}, []store.Period{store.Day, store.Hour})
			want(f, "start", sums[1].Start, f.clock())
		}},
		{"a clock that was years behind does no damage", func(_ *testing.T, f *fixture) {
			early := time.Unix(-3600*30, 0).UTC()
			f.record(siteName, fetched(early, "/old", 404), fetched(noon(1), "/a", 404))
			f.tidy(early, early)
			want(f, "events", f.numbers(store.EventQuery{}), []int{1, 2})
			want(f, "start", f.sums(siteName, store.SumQuery{Per: store.Hour})[0].Start, early)
			want(f, "day", f.sums(siteName, store.SumQuery{To: noon(1).AddDate(-1, 0, 0)})[0].Start, time.Unix(-2*86400, 0).UTC())
			want(f, "missing", f.top(store.TopMissing, early.AddDate(0, 0, -1), noon(1).AddDate(-1, 0, 0), 0)[0].Name, "/old")
			f.tidy(noon(1), noon(1))
			want(f, "events", f.numbers(store.EventQuery{}), []int{2})
		}},
	}
}
