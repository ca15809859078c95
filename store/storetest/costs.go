package storetest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

func (f *fixture) addCost(site, protocol string, t store.Traffic) {
	f.Helper()
	if err := f.store.Costs().Add(f.Context(), site, protocol, t); err != nil {
		f.Fatalf("add traffic of %s by %s: %v", site, protocol, err)
	}
}

func (f *fixture) costs() []store.SiteCost {
	f.Helper()
	a, err := f.store.Costs().List(f.Context())
	if err != nil {
		f.Fatalf("costs: %v", err)
	}
	for _, c := range a {
		of, err := f.store.Costs().Of(f.Context(), c.Site)
		if err != nil || !slices.Contains(of, c) || slices.ContainsFunc(of, func(o store.SiteCost) bool { return o.Site != c.Site }) {
			f.Errorf("costs of %s: %+v, %v", c.Site, of, err)
		}
	}
	return a
}

// every returns traffic with the numbers n, n+1 and so on.
func every(n int64) (t store.Traffic) {
	for i, to := range t.Numbers() {
		*to = n + int64(i)
	}
	return t
}

func costCases() []testCase {
	const mine, other = siteName, "https://other.example/"
	return []testCase{
		{"a store begins without traffic", func(_ *testing.T, f *fixture) { want(f, "costs", f.costs(), nil) }},
		{"traffic is summed by site and protocol", func(_ *testing.T, f *fixture) {
			f.openSite(other, other)
			began := f.clock()
			f.addCost(other, "tct-01", every(1))
			f.addCost(mine, "tct-01", every(100))
			f.pass(time.Hour)
			f.addCost(mine, "scp", store.Traffic{})
			f.addCost(mine, "tct-01", every(1000))
			sum := every(100)
			sum.Add(every(1000))
			all := []store.SiteCost{
				{Site: mine, Protocol: "scp", Since: began.Add(time.Hour), Last: began.Add(time.Hour)},
				{Site: mine, Protocol: "tct-01", Since: began, Last: began.Add(time.Hour), Traffic: sum},
				{Site: other, Protocol: "tct-01", Since: began, Last: began, Traffic: every(1)},
			}
			want(f, "costs", f.costs(), all)
			f.reopen()
			want(f, "costs after reopening", f.costs(), all)
		}},
		{"concurrently added traffic is not lost", func(_ *testing.T, f *fixture) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if err := f.store.Costs().Add(f.Context(), mine, "crawl", every(1)); err != nil {
						f.Error(err)
					}
				})
			}
			wg.Wait()
			var sum store.Traffic
			for range 8 {
				sum.Add(every(1))
			}
			want(f, "sum", f.costs()[0].Traffic, sum)
		}},
		{"invalid traffic is refused", func(_ *testing.T, f *fixture) {
			for what, c := range map[string]struct {
				site, protocol string
				t              store.Traffic
				kind           error
			}{
				"no site":     {"", "scp", every(1), millrace.ErrInvalid},
				"no protocol": {mine, "", every(1), millrace.ErrInvalid},
				"negative":    {mine, "scp", store.Traffic{Pulls: 1, HTMLBytes: -1}, millrace.ErrInvalid},
			} {
				if err := f.store.Costs().Add(f.Context(), c.site, c.protocol, c.t); !errors.Is(err, c.kind) {
					f.Errorf("%s: %v", what, err)
				}
			}
			want(f, "costs", f.costs(), nil)
		}},
	}
}
