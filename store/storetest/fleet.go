package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// siteURL returns the URL of a host's site.
func siteURL(host string) string { return "https://" + host + ".example/" }

// each yields the elements of a list without an error.
func each(sites []store.FleetSite) iter.Seq2[store.FleetSite, error] {
	return func(yield func(store.FleetSite, error) bool) {
		for _, s := range sites {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// enlist puts sites into the fleet, and returns the numbers of added and changed sites.
func (f *fixture) enlist(sites ...store.FleetSite) [2]int {
	f.Helper()
	added, changed, err := f.store.Fleet().Put(f.Context(), each(sites))
	if err != nil {
		f.Fatalf("put sites: %v", err)
	}
	return [2]int{added, changed}
}

// enlistHosts puts the sites of hosts into the fleet.
func (f *fixture) enlistHosts(hosts ...string) {
	f.Helper()
	for _, host := range hosts {
		f.enlist(store.FleetSite{URL: siteURL(host)})
	}
}

// lease leases at most n turns for a minute. sites is as for [store.Fleet.Lease].
func (f *fixture) lease(worker string, n int, sites ...string) []store.Turn {
	f.Helper()
	turns, _, err := f.store.Fleet().Lease(f.Context(), worker, n, time.Minute, sites)
	if err != nil {
		f.Fatalf("lease: %v", err)
	}
	return turns
}

// turn leases the only turn that is due.
func (f *fixture) turn(worker, url string) store.Turn {
	f.Helper()
	turns := f.lease(worker, 10)
	if len(turns) != 1 || turns[0].Site.URL != url {
		f.Fatalf("turns of %s, want one of %s", urls(turns), url)
	}
	return turns[0]
}

// urls returns the sorted URLs of turns.
func urls(turns []store.Turn) (all []string) {
	for _, t := range turns {
		all = append(all, t.Site.URL)
	}
	slices.Sort(all)
	return all
}

// done ends a turn. The site is due again after the given time.
func (f *fixture) done(t store.Turn, again time.Duration) {
	f.Helper()
	f.ended(t, store.TurnResult{OK: true, Due: f.clock().Add(again), Soonest: f.clock()}, nil)
}

// ended ends a turn with a result, and checks the kind of the error.
func (f *fixture) ended(t store.Turn, r store.TurnResult, kind error) {
	f.Helper()
	if err := f.store.Fleet().Done(f.Context(), t.Lease, t.Site.URL, r); !errors.Is(err, kind) {
		f.Fatalf("end turn of %s: %v, want %v", t.Site.URL, err, kind)
	}
}

// placed sets the address of a turn's host.
func (f *fixture) placed(t store.Turn, address string, rate float64) store.Turn {
	f.Helper()
	out, err := f.store.Fleet().SetAddress(f.Context(), t, address, rate)
	if err != nil {
		f.Fatalf("address %[2]s of %[1]s: %[3]v", t.Site.Host, address, err)
	}
	return out
}

// listed returns the sites that match a query.
func (f *fixture) listed(q store.FleetQuery) (all []store.FleetSite) {
	f.Helper()
	for s, err := range f.store.Fleet().Sites(f.Context(), q) {
		if err != nil {
			f.Fatalf("list: %v", err)
		}
		all = append(all, s)
	}
	return all
}

// one returns the site of the fleet that has a URL.
func (f *fixture) one(url string) store.FleetSite {
	f.Helper()
	all := f.listed(store.FleetQuery{Sites: []string{url}})
	if len(all) != 1 {
		f.Fatalf("the fleet has %d sites %s", len(all), url)
	}
	return all[0]
}

// settings describes the settings of a site.
func settings(s store.FleetSite) string {
	return fmt.Sprint(s.Labels, s.Priority, s.Min, s.Max, s.Unlisted, s.Paused)
}

func fleetCases() []testCase {
	return slices.Concat(fleetSiteCases(), fleetTurnCases(), fleetOrderCases(), fleetGroupCases(), fleetModelCases())
}

func fleetSiteCases() []testCase {
	return []testCase{
		{"Put adds sites and changes their settings", func(_ *testing.T, f *fixture) {
			a := store.FleetSite{URL: siteURL("a"), Labels: []string{"news", "at/home"}, Min: time.Hour, Paused: true, Name: "x"}
			want(f, "added", f.enlist(a, store.FleetSite{URL: siteURL("b")}, store.FleetSite{URL: siteURL("b"), Priority: store.PriorityLow}), [2]int{2, 0})
			want(f, "settings", settings(f.one(siteURL("a"))), "[at/home news] 2 1h0m0s 0s false false")
			want(f, "twice", f.one(siteURL("b")).Priority, store.PriorityLow)
			want(f, "host", f.one(siteURL("a")).Host, "a.example")
			f.pass(time.Hour)
			other := store.FleetSite{URL: siteURL("a"), Labels: []string{"-news", "new", "-absent"}, Priority: store.PriorityHigh, Max: 2 * time.Hour}
			want(f, "changed", f.enlist(other, store.FleetSite{URL: siteURL("b")}, store.FleetSite{URL: siteURL("c")}), [2]int{1, 1})
			want(f, "unchanged", f.enlist(other), [2]int{})
			want(f, "changed", settings(f.one(siteURL("a"))), "[at/home new] 3 1h0m0s 2h0m0s false false")
			want(f, "since", f.clock().Sub(f.one(siteURL("a")).Added), time.Hour)
			f.enlist(store.FleetSite{URL: siteURL("a"), Min: -1})
			turn := f.lease("one", 1, siteURL("a"))[0]
			f.ended(turn, store.TurnResult{OK: true, Due: f.clock().Add(5 * time.Hour), Until: f.clock().Add(time.Hour)}, nil)
			due := func() time.Duration { return f.one(siteURL("a")).Due.Sub(f.clock()) }
			f.enlist(store.FleetSite{URL: siteURL("a"), Max: 3 * time.Hour})
			want(f, "due within the new interval", due(), 3*time.Hour)
			f.enlist(store.FleetSite{URL: siteURL("a"), Max: 2 * time.Hour, Due: f.clock().Add(4 * time.Hour)})
			want(f, "due not later", due(), 2*time.Hour)
			f.enlist(store.FleetSite{URL: siteURL("a"), Due: f.clock()})
			want(f, "due at once", len(f.lease("one", 1, siteURL("a"))), 1)
			f.reopen()
			want(f, "reset", settings(f.one(siteURL("a"))), "[at/home new] 3 0s 2h0m0s false false")
		}},
		{"a wrong site, or an error of the list, changes nothing", func(t *testing.T, f *fixture) {
			broken := errors.New("broken")
			f.enlist(store.FleetSite{URL: siteURL("h"), Min: 2 * time.Hour})
			for _, wrong := range []store.FleetSite{
				{URL: "https://x.example"},
				{URL: "/x/"},
				{URL: "https:///"},
				{URL: "https://x.example/?q"},
				{URL: ""},
				{URL: siteURL("x"), Labels: []string{"A"}},
				{URL: siteURL("x"), Labels: []string{""}},
				{URL: siteURL("x"), Labels: []string{"a b"}},
				{URL: siteURL("x"), Priority: 4},
				{URL: siteURL("x"), Priority: -1},
				{URL: siteURL("x"), Min: 2 * time.Hour, Max: time.Hour},
				{URL: siteURL("h"), Max: time.Hour},
				{URL: siteURL("x"), Min: time.Millisecond},
				{URL: siteURL("x"), Max: 400 * 24 * time.Hour},
				{URL: siteURL("x"), Webhook: "ftp://x.example/"},
				{URL: siteURL("x"), Webhook: "https:///x"},
			} {
				if _, _, err := f.store.Fleet().Put(t.Context(), each([]store.FleetSite{{URL: siteURL("y")}, wrong})); !errors.Is(err, millrace.ErrInvalid) {
					t.Errorf("%+v: %v", wrong, err)
				}
			}
			n, _, err := f.store.Fleet().Put(t.Context(), func(yield func(store.FleetSite, error) bool) {
				for i := range 1000 {
					yield(store.FleetSite{URL: siteURL(fmt.Sprint(i))}, nil)
				}
				yield(store.FleetSite{}, broken)
			})
			if n != 0 || !errors.Is(err, broken) {
				t.Errorf("%d, %v", n, err)
			}
			want(f, "sites", len(f.listed(store.FleetQuery{})), 1)
			want(f, "turns", len(f.lease("one", 10)), 1)
		}},
		{"Sites, Pause and Remove select by URL and label", func(t *testing.T, f *fixture) {
			var all []store.FleetSite
			for i := range 1200 {
				all = append(all, store.FleetSite{URL: siteURL(fmt.Sprintf("h%04d", i)), Labels: []string{[]string{"a_b", "axb", "c"}[i%3]}})
			}
			f.enlist(all...)
			got := f.listed(store.FleetQuery{})
			want(f, "sites", len(got), 1200)
			want(f, "ordered", slices.IsSortedFunc(got, func(a, b store.FleetSite) int { return strings.Compare(a.URL, b.URL) }), true)
			want(f, "with the label", len(f.listed(store.FleetQuery{Label: "a_b"})), 400)
			few := []string{all[3].URL, all[0].URL, all[1].URL, siteURL("absent")}
			want(f, "some", len(f.listed(store.FleetQuery{Sites: few, Label: "a_b"})), 2)
			fleet := f.store.Fleet()
			for _, c := range []struct {
				q      store.FleetQuery
				paused bool
				want   int
			}{
				{store.FleetQuery{Label: "a_b"}, true, 400}, {store.FleetQuery{Sites: few}, true, 1}, {store.FleetQuery{}, true, 799}, {store.FleetQuery{Sites: few}, false, 3},
			} {
				if n, err := fleet.Pause(t.Context(), c.q, c.paused); err != nil || n != c.want {
					t.Errorf("pause %+v: %d, %v", c.q, n, err)
				}
			}
			want(f, "turns", len(f.lease("one", 1200)), 3)
			for _, c := range []struct {
				q    store.FleetQuery
				want int
			}{{store.FleetQuery{Label: "a_b"}, 400}, {store.FleetQuery{Sites: []string{}}, 0}, {store.FleetQuery{Sites: few}, 1}, {store.FleetQuery{}, 799}} {
				if n, err := fleet.Remove(t.Context(), c.q, false); err != nil || n != c.want {
					t.Errorf("remove %+v: %d, %v", c.q, n, err)
				}
			}
			want(f, "sites", len(f.listed(store.FleetQuery{})), 0)
			want(f, "added again", f.enlist(all...), [2]int{1200, 0})
		}},
		{"Remove with pages makes sites due that a worker then removes", func(t *testing.T, f *fixture) {
			f.enlist(store.FleetSite{URL: siteURL("a"), Unlisted: true}, store.FleetSite{URL: siteURL("b"), Labels: []string{"x"}}, store.FleetSite{URL: siteURL("c"), Labels: []string{"x"}})
			fleet := f.store.Fleet()
			for _, turn := range f.lease("one", 5) {
				f.ended(turn, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Until: f.clock().Add(time.Hour)}, nil)
			}
			f.enlist(store.FleetSite{URL: siteURL("d")})
			during := f.turn("one", siteURL("d"))
			if _, err := fleet.Pause(t.Context(), store.FleetQuery{Label: "x"}, true); err != nil {
				t.Fatal(err)
			}
			remove := func(q store.FleetQuery, pages bool, sites int) {
				t.Helper()
				if n, err := fleet.Remove(t.Context(), q, pages); err != nil || n != sites {
					t.Errorf("remove %+v: %d, %v", q, n, err)
				}
			}
			remove(store.FleetQuery{}, true, 4)
			if n, err := fleet.Pause(t.Context(), store.FleetQuery{}, true); n != 0 || err != nil {
				t.Errorf("pause sites that are being removed: %d, %v", n, err)
			}
			want(f, "turns", urls(f.lease("one", 5)), []string{siteURL("a"), siteURL("b"), siteURL("c")})
			f.done(during, time.Hour)
			want(f, "during a turn", f.turn("one", siteURL("d")).Site.Removing, true)
			f.enlist(store.FleetSite{URL: siteURL("b")})
			want(f, "added again", f.one(siteURL("b")).Removing, false)
			remove(store.FleetQuery{Label: "x", Removing: true}, false, 1)
			want(f, "left", len(f.listed(store.FleetQuery{})), 3)
			want(f, "being removed", len(f.listed(store.FleetQuery{Removing: true})), 2)
			want(f, "of them", len(f.listed(store.FleetQuery{Sites: []string{siteURL("b"), siteURL("d")}, Removing: true})), 1)
		}},
		{"only a Lease that names an unlisted site gives its turn", func(t *testing.T, f *fixture) {
			f.enlist(store.FleetSite{URL: siteURL("a"), Unlisted: true}, store.FleetSite{URL: siteURL("b")})
			want(f, "stats", f.stats("").Sites, 1)
			f.done(f.turn("one", siteURL("b")), time.Hour)
			turns, next, err := f.store.Fleet().Lease(t.Context(), "one", 1, time.Minute, []string{siteURL("b"), siteURL("c")})
			if err != nil || len(turns) > 0 || next.Sub(f.clock()) != time.Hour {
				t.Errorf("%v, next %v, %v", turns, next, err)
			}
			got := f.lease("one", 5, siteURL("a"), siteURL("b"))
			want(f, "turns", urls(got), []string{siteURL("a")})
			f.done(got[0], time.Minute)
			f.pass(time.Hour)
			f.turn("one", siteURL("b"))
			f.enlist(store.FleetSite{URL: siteURL("a"), Unlisted: true})
			want(f, "turns", len(f.lease("one", 5)), 0)
			f.enlist(store.FleetSite{URL: siteURL("a")})
			f.turn("one", siteURL("a"))
		}},
		{"Stats counts sites and their lag", func(_ *testing.T, f *fixture) {
			want(f, "empty", f.stats(""), store.FleetStats{Time: f.clock()})
			for i := range 10 {
				f.enlistHosts(fmt.Sprint(i))
			}
			f.pass(time.Hour)
			turns := f.lease("one", 4)
			f.done(turns[0], 2*time.Hour)
			f.ended(turns[1], store.TurnResult{Due: f.clock().Add(30 * time.Minute), Error: "down", Requests: 3, Received: 1 << 40}, nil)
			if _, err := f.store.Fleet().Pause(f.Context(), store.FleetQuery{Sites: []string{turns[0].Site.URL}}, true); err != nil {
				f.Fatal(err)
			}
			want(f, "stats", f.stats(""), store.FleetStats{
				Time: f.clock(), Sites: 10, Hosts: 10, Groups: 10, Paused: 1, New: 8, Failing: 1, Due: 8, Leased: 2, Errors: map[string]int{"down": 1}, Requests: 3, Received: 1 << 40,
				Lag: [4]time.Duration{time.Hour, time.Hour, time.Hour, time.Hour},
			})
			for _, turn := range turns[2:] {
				f.done(turn, time.Hour)
			}
			f.pass(5 * time.Minute)
			for _, turn := range f.lease("one", 4) {
				f.done(turn, time.Hour)
			}
			got := f.stats("")
			want(f, "lag", got.Lag, [4]time.Duration{0, 65 * time.Minute, 65 * time.Minute, 65 * time.Minute})
		}},
		{"Stats of a label counts its sites, their hosts and groups", func(_ *testing.T, f *fixture) {
			f.enlist(store.FleetSite{URL: siteURL("a"), Labels: []string{"x"}, Webhook: "https://hook.example/"}, store.FleetSite{URL: siteURL("b"), Labels: []string{"x"}}, store.FleetSite{URL: siteURL("c"), Labels: []string{"z"}})
			if _, err := f.store.Fleet().Pause(f.Context(), store.FleetQuery{Sites: []string{siteURL("b")}}, true); err != nil {
				f.Fatal(err)
			}
			f.pass(time.Hour)
			for _, turn := range f.lease("one", 5) {
				if turn.Site.URL == siteURL("a") {
					f.ended(turn, store.TurnResult{Due: f.clock().Add(time.Hour), Error: "down", Requests: 3, Received: 5}, nil)
				}
			}
			want(f, "with the label", f.stats("x"), store.FleetStats{
				Time:  f.clock(),
				Sites: 2, Hosts: 2, Groups: 2, Paused: 1, Failing: 1, Webhooks: 1, Errors: map[string]int{"down": 1}, Requests: 3, Received: 5,
			})
			want(f, "other", f.stats("z"), store.FleetStats{
				Time:  f.clock(),
				Sites: 1, Hosts: 1, Groups: 1, New: 1, Due: 1, Leased: 1, Lag: [4]time.Duration{time.Hour, time.Hour, time.Hour, time.Hour},
			})
			want(f, "none", f.stats("y"), store.FleetStats{Time: f.clock()})
		}},
		{"resumed sites are due at once", func(t *testing.T, f *fixture) {
			f.enlistHosts("a", "b", "c")
			fleet := f.store.Fleet()
			for _, turn := range f.lease("one", 3) {
				f.ended(turn, store.TurnResult{Due: f.clock().Add(24 * time.Hour), Soonest: f.clock().Add(time.Hour), Until: f.clock().Add(time.Hour), Error: "refused"}, nil)
			}
			if _, err := fleet.Pause(t.Context(), store.FleetQuery{Sites: []string{siteURL("b")}}, true); err != nil {
				t.Fatal(err)
			}
			if n, err := fleet.Pause(t.Context(), store.FleetQuery{Sites: []string{siteURL("a"), siteURL("b"), siteURL("absent")}}, false); n != 2 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
			want(f, "turns", urls(f.lease("one", 5)), []string{siteURL("a"), siteURL("b")})
		}},
	}
}

// stats returns the counts of the sites with a label.
func (f *fixture) stats(label string) store.FleetStats {
	f.Helper()
	st, err := f.store.Fleet().Stats(f.Context(), label)
	if err != nil {
		f.Fatalf("stats: %v", err)
	}
	return st
}

func fleetOrderCases() []testCase {
	return []testCase{
		{"the site that has been due for the longest time comes first", func(_ *testing.T, f *fixture) {
			for _, host := range []string{"c", "a", "b"} {
				f.enlistHosts(host)
				f.pass(time.Second)
			}
			for _, host := range []string{"c", "a", "b"} {
				turns := f.lease("one", 1)
				want(f, "turn", urls(turns), []string{siteURL(host)})
				f.done(turns[0], time.Minute)
			}
		}},
		{"each class gets turns, and a new site comes first", func(_ *testing.T, f *fixture) {
			var all []store.FleetSite
			for i := range 30 {
				for p := store.PriorityLow; p <= store.PriorityHigh; p++ {
					all = append(all, store.FleetSite{URL: siteURL(fmt.Sprintf("p%d-%d", p, i)), Priority: p})
				}
			}
			f.enlist(all...)
			for _, turn := range f.lease("one", 90) {
				f.done(turn, 0)
			}
			f.pass(time.Hour)
			f.enlist(store.FleetSite{URL: siteURL("new"), Priority: store.PriorityLow})
			f.pass(time.Second)
			count := make(map[string]int)
			for _, turn := range f.lease("one", 21) {
				count[turn.Site.URL[8:10]]++
			}
			want(f, "turns", count, map[string]int{"p1": 3, "p2": 6, "p3": 12})
			count = make(map[string]int)
			for _, turn := range f.lease("one", 60) {
				count[turn.Site.URL[8:10]]++
			}
			want(f, "new", count["ne"], 1)
			want(f, "rest", len(f.lease("one", 90)), 10)
		}},
		{"a host that is deferred leaves turns to others", func(t *testing.T, f *fixture) {
			f.enlist(store.FleetSite{URL: siteURL("a") + "x/"}, store.FleetSite{URL: siteURL("a") + "y/", Labels: []string{"y"}})
			fleet := f.store.Fleet()
			for i := range 3 {
				turn := f.lease("one", 1)[0]
				want(f, "failures", turn.Failed, i)
				f.ended(turn, store.TurnResult{Due: f.clock().Add(time.Minute), Until: f.clock().Add(time.Hour), Error: "down"}, nil)
				f.pass(59 * time.Minute)
				want(f, "turns", len(f.lease("one", 5)), 0)
				st := f.stats("")
				want(f, "lag of the deferred host", []any{st.Due, st.Lag}, []any{0, [4]time.Duration{}})
				want(f, "named", len(f.lease("one", 5, siteURL("a")+"x/", siteURL("a")+"y/")), 0)
				f.pass(time.Minute)
				want(f, "due", f.stats("").Due, 2)
			}
			for _, label := range []string{"", "y"} {
				hosts, err := fleet.Hosts(t.Context(), label, 5)
				if err != nil || len(hosts) != 1 || hosts[0].Failures != 3 || hosts[0].Why != "down" || hosts[0].Sites != 2 || hosts[0].Until.After(f.clock()) {
					t.Errorf("%q: %+v, %v", label, hosts, err)
				}
			}
			if hosts, err := fleet.Hosts(t.Context(), "b", 5); err != nil || len(hosts) != 0 {
				t.Errorf("%+v, %v", hosts, err)
			}
			f.ended(f.lease("one", 1)[0], store.TurnResult{OK: true, Due: f.clock().Add(time.Minute), Until: f.clock().Add(time.Hour)}, nil)
			if hosts, err := fleet.Hosts(t.Context(), "", 5); err != nil || len(hosts) != 0 {
				t.Errorf("%+v, %v", hosts, err)
			}
			f.pass(59 * time.Minute)
			want(f, "turns after a success", len(f.lease("one", 5)), 0)
			f.pass(time.Minute)
			f.ended(f.lease("one", 1)[0], store.TurnResult{Due: f.clock(), Error: "refused"}, nil)
			want(f, "turns after another failure", len(f.lease("one", 5)), 1)
		}},
		{"a hint makes a site due, and is not lost", func(t *testing.T, f *fixture) {
			f.enlistHosts("a", "b")
			hint := func(host string) {
				t.Helper()
				if err := f.store.Fleet().Hint(t.Context(), siteURL(host)); err != nil {
					t.Error(err)
				}
			}
			for _, turn := range f.lease("one", 2) {
				f.ended(turn, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Soonest: f.clock().Add(time.Minute)}, nil)
			}
			hint("a")
			hint("unknown")
			want(f, "at once", len(f.lease("one", 1)), 0)
			f.pass(time.Minute)
			turn := f.turn("one", siteURL("a"))
			want(f, "hinted", turn.Hinted, true)
			hint("a")
			f.ended(turn, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Soonest: f.clock().Add(time.Second)}, nil)
			f.pass(time.Second)
			turn = f.turn("one", siteURL("a"))
			want(f, "hinted in the turn", turn.Hinted, true)
			f.done(turn, time.Hour)
			want(f, "again", len(f.lease("one", 1)), 0)
			if _, err := f.store.Fleet().Pause(t.Context(), store.FleetQuery{}, true); err != nil {
				t.Fatal(err)
			}
			hint("b")
			want(f, "paused", len(f.lease("one", 1)), 0)
		}},
		{"many workers never have the same group", func(t *testing.T, f *fixture) {
			var all []store.FleetSite
			for i := range 60 {
				all = append(all, store.FleetSite{URL: siteURL(fmt.Sprint(i/2)) + fmt.Sprint(i) + "/"})
			}
			f.enlist(all...)
			var mu sync.Mutex
			var workers sync.WaitGroup
			busy, count := make(map[string]bool), make(map[string]int)
			for w := range 6 {
				workers.Go(func() {
					for ctx, misses := context.WithoutCancel(t.Context()), 0; misses < 3; {
						turns, _, err := f.store.Fleet().Lease(ctx, fmt.Sprint("w", w), 4, time.Hour, nil)
						if err != nil {
							t.Error(err)
							return
						}
						if len(turns) == 0 {
							misses++
						}
						mu.Lock()
						for _, turn := range turns {
							if busy[turn.Site.Host] {
								t.Errorf("%s has two turns", turn.Site.Host)
							}
							busy[turn.Site.Host] = true
							count[turn.Site.URL]++
						}
						mu.Unlock()
						for _, turn := range turns {
							mu.Lock()
							busy[turn.Site.Host] = false
							mu.Unlock()
							if err := f.store.Fleet().Done(ctx, turn.Lease, turn.Site.URL, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour)}); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			workers.Wait()
			for _, turn := range f.lease("last", 60) { // sites that remain because the workers ended while the hosts had turns
				count[turn.Site.URL]++
			}
			most := 0
			for _, n := range count {
				most = max(most, n)
			}
			want(f, "turns", []int{len(count), cmp.Or(most, -1)}, []int{60, 1})
		}},
	}
}
