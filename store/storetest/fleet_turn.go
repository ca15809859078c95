package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
)

func fleetTurnCases() []testCase {
	return []testCase{
		{"a group has one turn until it is done or expires", func(t *testing.T, f *fixture) {
			f.enlist(store.FleetSite{URL: siteURL("a") + "x/"}, store.FleetSite{URL: siteURL("a") + "y/"})
			f.enlistHosts("b")
			turns := f.lease("one", 10)
			want(f, "turns", len(turns), 2)
			want(f, "others", len(f.lease("two", 10)), 0)
			first := turns[0]
			if first.Lease.Holder != "one" || first.Lease.Fence == 0 || !first.Lease.Expires.Equal(f.clock().Add(time.Minute)) {
				t.Errorf("%+v", first.Lease)
			}
			f.pass(59 * time.Second)
			want(f, "before the end", len(f.lease("two", 10)), 0)
			f.pass(time.Second)
			again := f.lease("two", 10)
			want(f, "after it", len(again), 2)
			for _, turn := range again {
				if turn.Lease.Name == first.Lease.Name && turn.Lease.Fence <= first.Lease.Fence {
					t.Errorf("the fence is %d after %d", turn.Lease.Fence, first.Lease.Fence)
				}
			}
			f.ended(first, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour)}, millrace.ErrConflict)
			want(f, "due", f.one(first.Site.URL).Due.Before(f.clock()), true)
			want(f, "pulled", f.one(first.Site.URL).Pulled.IsZero(), true)
			for _, turn := range again {
				f.done(turn, time.Hour)
				f.ended(turn, store.TurnResult{}, millrace.ErrConflict)
			}
			want(f, "the other site", len(f.lease("one", 10)), 1)
		}},
		{"Renew extends valid leases only", func(t *testing.T, f *fixture) {
			f.enlistHosts("a", "b")
			turns := f.lease("one", 2)
			f.done(turns[1], time.Hour)
			f.pass(50 * time.Second)
			other := turns[0].Lease
			other.Holder = "two"
			held, err := f.store.Fleet().Renew(t.Context(), time.Minute, turns[0].Lease, turns[1].Lease, other, store.Lease{Name: "fleet/99", Holder: "one", Fence: 1})
			if err != nil || len(held) != 1 || held[0].Name != turns[0].Lease.Name || !held[0].Expires.Equal(f.clock().Add(time.Minute)) {
				t.Fatalf("%+v, %v", held, err)
			}
			f.pass(59 * time.Second)
			want(f, "turns", len(f.lease("two", 10)), 0)
			f.done(turns[0], time.Hour)
		}},
		{"a lease lasts for the delay of its group after its duration", func(t *testing.T, f *fixture) {
			f.enlistHosts("a", "b")
			turns := f.lease("one", 2)
			for _, turn := range turns {
				f.ended(turn, store.TurnResult{OK: true, Due: f.clock(), Delay: 40 * time.Second}, nil)
			}
			f.pass(40 * time.Second)
			ends := func(what string, l store.Lease) {
				t.Helper()
				want(f, what, l.Expires.Sub(f.clock()), 100*time.Second)
			}
			turns = f.lease("one", 2)
			ends("a turn", turns[0].Lease)
			f.pass(50 * time.Second)
			held, err := f.store.Fleet().Renew(t.Context(), time.Minute, turns[0].Lease)
			if err != nil || len(held) != 1 {
				t.Fatalf("%v, %v", held, err)
			}
			ends("a renewed one", held[0])
			f.ended(turns[1], store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Delay: 40 * time.Second}, nil)
			f.pass(40 * time.Second)
			v, err := f.store.Fleet().Visit(t.Context(), turns[0].Lease, time.Minute, turns[1].Site.Host, "192.0.2.9", 0)
			if err != nil {
				t.Fatal(err)
			}
			ends("a visit", v.Lease)
			f.pass(60*time.Second - time.Millisecond)
			want(f, "in the delay after a killed worker", len(f.lease("two", 2)), 0)
			f.pass(time.Millisecond)
			want(f, "after the delay", len(f.lease("two", 2)), 1)
		}},
		{"a turn that moves to another group ends when it would have ended", func(_ *testing.T, f *fixture) {
			f.enlistHosts("a", "b")
			for _, turn := range f.lease("one", 2) {
				if turn.Site.URL == siteURL("a") {
					turn = f.placed(turn, "192.0.2.1", 0)
				}
				f.ended(turn, store.TurnResult{OK: true, Due: f.clock(), Delay: 40 * time.Second}, nil)
			}
			f.pass(40 * time.Second)
			turns := f.lease("one", 2)
			slices.SortFunc(turns, func(x, y store.Turn) int { return strings.Compare(x.Site.URL, y.Site.URL) })
			f.ended(turns[0], store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Delay: 40 * time.Second}, nil)
			f.pass(40 * time.Second)
			moved := f.placed(turns[1], "192.0.2.1", 0)
			want(f, "another group", moved.Lease.Name != turns[1].Lease.Name, true)
			want(f, "end", moved.Lease.Expires, turns[1].Lease.Expires)
		}},
		{"most turns of a group with a backlog go to new sites and those of high priority", func(_ *testing.T, f *fixture) {
			const sites = 20
			for i := range sites {
				f.pass(time.Second)
				url := fmt.Sprintf("%s%d/", siteURL("a"), i)
				f.enlist(store.FleetSite{URL: url, Priority: store.PriorityNormal})
				f.ended(f.lease("one", 1, url)[0], store.TurnResult{OK: true, Due: f.clock()}, nil)
			}
			f.pass(time.Second)
			f.enlist(store.FleetSite{URL: siteURL("a") + "high/", Priority: store.PriorityHigh})
			f.ended(f.lease("one", 1, siteURL("a")+"high/")[0], store.TurnResult{OK: true, Due: f.clock().Add(time.Minute)}, nil)
			f.pass(time.Minute)
			turns := make(map[string]int)
			for range 14 {
				f.pass(time.Second)
				turn := f.lease("one", 1)[0]
				turns[turn.Site.URL]++
				f.ended(turn, store.TurnResult{OK: true, Due: f.clock()}, nil)
			}
			want(f, "turns of the site with high priority", turns[siteURL("a")+"high/"], 8)
			for i := range 6 {
				want(f, "turns of an old site", turns[fmt.Sprintf("%s%d/", siteURL("a"), i)], 1)
			}
		}},
		{"turns, hints and settings at the same time do not fail", func(t *testing.T, f *fixture) {
			const hosts = 20
			var sites []string
			for i := range hosts {
				f.enlistHosts(fmt.Sprint(i))
				sites = append(sites, siteURL(fmt.Sprint(i)))
			}
			fleet := f.store.Fleet()
			var all sync.WaitGroup
			each := func(do func(i int) error) {
				all.Go(func() {
					for i := range testkit.Size(30, 60, 500) {
						if err := do(i); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			for _, worker := range []string{"one", "two"} {
				each(func(int) error {
					turns, _, err := fleet.Lease(t.Context(), worker, hosts/2, time.Minute, nil)
					if err != nil && len(turns) > 0 {
						t.Errorf("%d turns and %v", len(turns), err)
					}
					var leases []store.Lease
					for _, turn := range turns {
						leases = append(leases, turn.Lease)
					}
					if held, again := fleet.Renew(t.Context(), time.Minute, leases...); len(held) != len(leases) {
						err = errors.Join(err, again, fmt.Errorf("%d of %d leases are valid", len(held), len(leases)))
					}
					for _, turn := range turns {
						err = errors.Join(err, fleet.Done(t.Context(), turn.Lease, turn.Site.URL, store.TurnResult{OK: true, Due: f.clock(), Soonest: f.clock()}))
					}
					return err
				})
			}
			each(func(i int) error { return fleet.Hint(t.Context(), sites[i%hosts]) })
			each(func(int) error {
				_, err := fleet.Pause(t.Context(), store.FleetQuery{Sites: sites}, false)
				return err
			})
			all.Wait()
		}},
		{"Lease returns when to ask again", func(t *testing.T, f *fixture) {
			next := func(sites ...string) time.Duration {
				t.Helper()
				turns, next, err := f.store.Fleet().Lease(t.Context(), "one", 5, time.Minute, sites)
				if err != nil || len(turns) > 0 {
					t.Fatalf("%v, %v", turns, err)
				}
				if next.IsZero() {
					return -1
				}
				return next.Sub(f.clock())
			}
			want(f, "without sites", next(), -1)
			f.enlistHosts("a", "b")
			turns := f.lease("one", 5)
			want(f, "end of the lease", next(), time.Minute)
			f.done(turns[0], 30*time.Second)
			want(f, "due", next(), 30*time.Second)
			want(f, "of one", next(turns[0].Site.URL), 30*time.Second)
			want(f, "of an unknown one", next(siteURL("c")), -1)
			for _, wrong := range []struct {
				worker string
				d      time.Duration
			}{{"", time.Minute}, {"one", 0}, {"one", -time.Minute}} {
				if _, _, err := f.store.Fleet().Lease(t.Context(), wrong.worker, 1, wrong.d, nil); !errors.Is(err, millrace.ErrInvalid) {
					t.Errorf("%+v: %v", wrong, err)
				}
			}
		}},
		{"Done records the result", func(_ *testing.T, f *fixture) {
			f.enlistHosts("a")
			turn := f.turn("one", siteURL("a"))
			want(f, "state", len(turn.Site.State), 0)
			f.pass(time.Second)
			f.ended(turn, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Name: "name", State: []byte("state\x00"), Delay: 5 * time.Second, Requests: 3, Received: 700}, nil)
			f.reopen()
			s := f.one(siteURL("a"))
			want(f, "site", fmt.Sprintf("%s %s %q %q", s.Due.Sub(f.clock()), s.Pulled.Sub(f.clock()), s.Name, s.State), `1h0m0s 0s "name" "state\x00"`)
			f.pass(time.Hour)
			turn = f.turn("one", siteURL("a"))
			want(f, "delay", turn.Delay, 5*time.Second)
			f.ended(turn, store.TurnResult{Due: f.clock(), Error: "down", Delay: 5 * time.Second}, nil)
			s = f.one(siteURL("a"))
			want(f, "failed", fmt.Sprintf("%s %q %q %q", s.Pulled.Sub(f.clock()), s.Error, s.Name, s.State), `-1h0m0s "down" "name" ""`)
			want(f, "in the delay", len(f.lease("one", 1)), 0)
			f.pass(5 * time.Second)
			turn = f.turn("one", siteURL("a"))
			if _, err := f.store.Fleet().Remove(f.Context(), store.FleetQuery{}, false); err != nil {
				f.Fatal(err)
			}
			f.done(turn, time.Hour)
		}},
		{"a host that is removed in a turn is forgotten after its delay", func(t *testing.T, f *fixture) {
			remove := func(host string) {
				t.Helper()
				if n, err := f.store.Fleet().Remove(t.Context(), store.FleetQuery{Sites: []string{siteURL(host)}}, false); err != nil || n != 1 {
					t.Fatal(n, err)
				}
			}
			f.enlistHosts("a", "shared")
			for _, turn := range f.lease("one", 2) { // one group
				f.ended(f.placed(turn, "192.0.2.1", 0), store.TurnResult{OK: true, Due: f.clock(), Delay: 20 * time.Second}, nil)
				f.pass(20 * time.Second)
			}
			turn := f.lease("one", 1)[0]
			for _, host := range []string{"a", "shared"} {
				remove(host)
			}
			f.ended(turn, store.TurnResult{OK: true, Due: f.clock(), Delay: 20 * time.Second}, nil)
			f.enlistHosts("a")
			want(f, "added again in the delay", len(f.lease("one", 1)), 0)
			f.pass(20 * time.Second)
			again := f.turn("one", siteURL("a"))
			want(f, "the same group", again.Lease.Name, turn.Lease.Name)
			remove("a")
			f.done(again, time.Hour)
			f.pass(20 * time.Second)
			f.enlistHosts("b")
			remove("b")
			f.enlistHosts("a")
			again = f.turn("one", siteURL("a"))
			want(f, "a new host", []any{again.Address, again.Delay, again.Lease.Fence}, []any{"", time.Duration(0), uint64(1)})
		}},
		{"pages and the end of a turn are stored together", func(t *testing.T, f *fixture) {
			f.enlistHosts("a")
			turn := f.turn("one", siteURL("a"))
			result := store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Name: siteName}
			sink := f.site.Ending(turn.Lease, turn.Site.URL, result)
			apply := func(kind error, path, text string, more ...millrace.Change) {
				t.Helper()
				if _, err := sink.Apply(t.Context(), origin, append(more, put(article(path, text)))); !errors.Is(err, kind) {
					t.Errorf("apply %s: %v, want %v", path, err, kind)
				}
			}
			mark := millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "c"}}
			apply(nil, "/1", "one")
			want(f, "still due", f.one(siteURL("a")).Due.After(f.clock()), false)
			apply(nil, "/2", "two", mark)
			want(f, "due", f.one(siteURL("a")).Due.Sub(f.clock()), time.Hour)
			want(f, "name", f.one(siteURL("a")).Name, siteName)
			want(f, "the lease is kept", len(f.lease("two", 1, siteURL("a"))), 0)
			f.pass(time.Minute)
			want(f, "after the lease", len(f.lease("two", 1)), 0)
			f.pass(time.Hour)
			f.turn("two", siteURL("a"))
			before := f.one(siteURL("a"))
			apply(millrace.ErrConflict, "/3", "three", mark)
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), []string{"/1", "/2"})
			want(f, "due", f.one(siteURL("a")).Due, before.Due)
			if err := sink.Compact(t.Context(), time.Hour, time.Hour); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("compact: %v", err)
			}
			fenced := f.site.Fenced(turn.Lease)
			if _, err := fenced.Apply(t.Context(), origin, []millrace.Change{put(article("/4", "four"))}); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("fenced: %v", err)
			}
		}},
	}
}

func fleetGroupCases() []testCase {
	return []testCase{
		{"hosts that share an address share a group, with the longest delay", func(t *testing.T, f *fixture) {
			f.enlistHosts("a", "b")
			turns := f.lease("one", 2)
			a := f.placed(turns[0], "192.0.2.1", 0)
			want(f, "unchanged", a.Lease, turns[0].Lease)
			want(f, "address", a.Address, "192.0.2.1")
			if _, err := f.store.Fleet().SetAddress(t.Context(), turns[1], "192.0.2.1", 0); !errors.Is(err, millrace.ErrConflict) || millrace.ErrorCode(err) != "group-busy" {
				t.Fatalf("set the address: %v", err)
			}
			f.ended(turns[1], store.TurnResult{}, millrace.ErrConflict)
			want(f, "while one is pulled", len(f.lease("two", 5)), 0)
			f.ended(a, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Delay: 3 * time.Second}, nil)
			want(f, "in the delay", len(f.lease("two", 5)), 0)
			f.pass(3 * time.Second)
			b := f.turn("two", turns[1].Site.URL)
			want(f, "delay", b.Delay, 3*time.Second)
			want(f, "address", b.Address, "192.0.2.1")
			f.ended(b, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Delay: time.Second}, nil)
			f.pass(time.Hour)
			want(f, "one at a time", len(f.lease("two", 5)), 1)
			want(f, "groups", f.stats("").Groups, 1)
		}},
		{"a turn moves to a free group with its lease", func(_ *testing.T, f *fixture) {
			f.enlistHosts("a", "b", "c")
			turns := f.lease("one", 3)
			f.done(f.placed(turns[0], "192.0.2.1", 0), time.Hour)
			moved := f.placed(turns[1], "192.0.2.1", 0)
			want(f, "fence", moved.Lease.Name == turns[1].Lease.Name, false)
			f.ended(turns[1], store.TurnResult{}, millrace.ErrConflict)
			f.done(moved, time.Hour)
			f.done(f.placed(turns[2], "192.0.2.3", 0), 0)
			again := f.lease("one", 3, turns[2].Site.URL)[0]
			apart := f.placed(again, "192.0.2.1", 0)
			f.done(apart, 0)
			again = f.lease("one", 3, turns[2].Site.URL)[0]
			f.done(f.placed(again, "192.0.2.4", 0), 0)
			want(f, "groups", f.stats("").Groups, 2)
			again = f.lease("one", 3, turns[2].Site.URL)[0]
			last := f.placed(again, "192.0.2.5", 0)
			want(f, "after three moves", last.Address, "192.0.2.4")
			f.done(last, 0)
			f.pass(24 * time.Hour)
			again = f.lease("one", 3, turns[2].Site.URL)[0]
			want(f, "a day later", f.placed(again, "192.0.2.5", 0).Address, "192.0.2.5")
		}},
		{"a lost turn is not placed", func(t *testing.T, f *fixture) {
			f.enlistHosts("a")
			turn := f.turn("one", siteURL("a"))
			f.pass(time.Minute)
			if _, err := f.store.Fleet().SetAddress(t.Context(), turn, "192.0.2.1", 0); millrace.ErrorCode(err) != "lease-lost" {
				t.Error(err)
			}
			want(f, "address", f.turn("one", siteURL("a")).Address, "")
		}},
		{"a turn visits other machines, each with one lease", func(t *testing.T, f *fixture) {
			f.enlistHosts("a", "b", "c")
			turns := f.lease("one", 3)
			slices.SortFunc(turns, func(x, y store.Turn) int { return strings.Compare(x.Site.URL, y.Site.URL) })
			a, b := f.placed(turns[0], "192.0.2.1", 0), f.placed(turns[1], "192.0.2.2", 0)
			visit := func(turn store.Turn, host, address, code string) store.Lease {
				t.Helper()
				v, err := f.store.Fleet().Visit(t.Context(), turn.Lease, time.Minute, host, address, 0)
				want(f, "visit of "+host, millrace.ErrorCode(err), code)
				return v.Lease
			}
			leave := func(delay time.Duration, l store.Lease) {
				t.Helper()
				if err := f.store.Fleet().Leave(t.Context(), store.Visit{Lease: l, Delay: delay}); err != nil {
					t.Fatal(err)
				}
			}
			want(f, "own machine", visit(a, "www.a.example", "192.0.2.1", ""), a.Lease)
			want(f, "end of the turn there", visit(a, "www.b.example", "192.0.2.2", "group-busy").Expires, f.clock().Add(time.Minute))
			visit(a, "c.example", "192.0.2.3", "group-busy")
			f.ended(b, store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Until: f.clock().Add(30 * time.Second), Delay: 2 * time.Second}, nil)
			visit(a, "www.b.example", "192.0.2.2", "group-busy")
			f.pass(2 * time.Second)
			want(f, "end of the deferral", visit(a, "b.example", "192.0.2.2", "group-busy").Expires, f.clock().Add(28*time.Second))
			there := visit(a, "www.b.example", "192.0.2.2", "")
			want(f, "repeated", visit(a, "other.b.example", "192.0.2.2", ""), there)
			f.pass(50 * time.Second)
			held, err := f.store.Fleet().Renew(t.Context(), time.Minute, a.Lease, there)
			want(f, "renewed", len(held), 2)
			want(f, "renew", err, nil)
			f.pass(12 * time.Second)
			leave(time.Second, there)
			want(f, "in the longest delay of its hosts", visit(a, "b.example", "192.0.2.2", "group-busy").Expires, f.clock().Add(2*time.Second))

			alone := visit(a, "other.example", "192.0.2.9", "")
			c := f.lease("two", 3, siteURL("c"))[0]
			visit(c, "other.example", "192.0.2.9", "group-busy")
			visit(c, "else.example", "192.0.2.9", "group-busy")
			leave(3*time.Second, alone)
			visit(c, "other.example", "192.0.2.9", "group-busy")
			f.pass(3 * time.Second)
			other := visit(c, "other.example", "192.0.2.9", "")
			leave(0, alone) // must not end the visit of the other turn
			visit(a, "other.example", "192.0.2.9", "group-busy")
			f.enlistHosts("d")
			d := f.lease("one", 3, siteURL("d"))[0]
			if _, err := f.store.Fleet().SetAddress(t.Context(), d, "192.0.2.9", 0); millrace.ErrorCode(err) != "group-busy" {
				t.Errorf("a host at a visited machine: %v", err)
			}
			leave(0, other)
			d = f.lease("one", 3, siteURL("d"))[0]
			want(f, "address", d.Address, "192.0.2.9")
			f.done(d, time.Hour)

			n := f.placed(c, "network", 1000)
			visit(a, "x.example", "network", "")
			f.pass(time.Millisecond)
			visit(a, "y.example", "network", "")
			visit(n, "y.example", "network", "group-busy")
			visit(a, "c.example", "network", "group-busy")
			f.pass(time.Minute)
			visit(a, "w.example", "192.0.2.8", "lease-lost")
			visitor := store.Turn{Lease: store.Lease{Holder: "one", Name: "a request"}}
			free := visit(visitor, "w.example", "192.0.2.8", "")
			want(f, "repeated without a turn", visit(visitor, "w.example", "192.0.2.8", ""), free)
			visit(store.Turn{Lease: store.Lease{Holder: "one", Name: "another request"}}, "w.example", "192.0.2.8", "group-busy")
		}},
		{"the requests of visits to a network are limited by its rate", func(_ *testing.T, f *fixture) {
			f.enlistHosts("a", "b")
			turns := f.lease("one", 2)
			visit := func(turn store.Turn, host, code string, wait time.Duration) store.Visit {
				f.Helper()
				v, err := f.store.Fleet().Visit(f.Context(), turn.Lease, 10*time.Second, host, "a network", 2)
				want(f, "visit of "+host, millrace.ErrorCode(err), code)
				want(f, "until", v.Lease.Expires.Sub(f.clock()), wait)
				return v
			}
			v := visit(turns[0], "x.example", "", 10*time.Second)
			visit(turns[1], "y.example", "group-busy", 500*time.Millisecond)
			f.pass(500 * time.Millisecond)
			visit(turns[1], "y.example", "", 10*time.Second)
			v.Requests = 5
			if err := f.store.Fleet().Leave(f.Context(), v); err != nil {
				f.Fatal(err)
			}
			visit(turns[0], "z.example", "group-busy", 2500*time.Millisecond)
		}},
		{"the turns of a network are limited by its rate", func(_ *testing.T, f *fixture) {
			for i := range 6 {
				f.enlistHosts(fmt.Sprint(i))
			}
			for _, turn := range f.lease("one", 6) {
				f.ended(f.placed(turn, "a network", 8), store.TurnResult{OK: true, Due: f.clock(), Requests: 4}, nil)
			}
			for i := range 6 {
				turns := f.lease("one", 6)
				want(f, fmt.Sprint("turns at step ", i), len(turns), 1)
				f.ended(turns[0], store.TurnResult{OK: true, Due: f.clock().Add(time.Hour), Requests: 4}, nil)
				want(f, "at once", len(f.lease("one", 6)), 0)
				f.pass(500 * time.Millisecond)
			}
		}},
		{"many hosts on an address become a network", func(t *testing.T, f *fixture) {
			n := store.MaxGroupHosts + 2
			for i := range n {
				f.enlistHosts(fmt.Sprint("h", i))
			}
			turns := f.lease("one", n)
			for _, turn := range turns[:n-1] {
				if _, err := f.store.Fleet().SetAddress(t.Context(), turn, "192.0.2.1", 0); err != nil && millrace.ErrorCode(err) != "group-busy" {
					t.Fatal(err)
				}
			}
			want(f, "groups", f.stats("").Groups, n)
			f.placed(turns[n-1], "192.0.2.1", 0)
			want(f, "with one more", f.stats("").Groups, n)
			f.pass(time.Minute)
			got := len(f.lease("two", n))
			f.pass(time.Minute - time.Millisecond)
			if more := len(f.lease("two", n)); got != 1 || more < n-2 {
				t.Errorf("%d turns at once, %d within a minute", got, more)
			}
		}},
	}
}
