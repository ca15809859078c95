package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// fleetModelCases returns cases that compare an engine with the memory engine by random operations.
func fleetModelCases() (cases []testCase) {
	for seed := range testkit.Size(2, 5, 200) {
		cases = append(cases, testCase{fmt.Sprint("random operations of a fleet ", seed), func(_ *testing.T, f *fixture) {
			m := &fleetModel{fixture: f, r: rand.New(rand.NewPCG(uint64(seed), 7))}
			m.reference = memory.New(&store.Options{Now: f.clock})
			for i := range testkit.Size(150, 300, 1000) {
				if m.step(i); m.Failed() {
					return
				}
			}
		}})
	}
	return cases
}

// fleetModel applies operations to two stores.
type fleetModel struct {
	*fixture
	reference store.Store
	r         *rand.Rand
	turns     [][2]store.Turn
	visits    [][2]store.Visit
}

// both runs an operation on both stores and compares its results.
func (m *fleetModel) both(what string, do func(f store.Fleet, at int) (any, error)) {
	m.Helper()
	a, errA := do(m.store.Fleet(), 0)
	b, errB := do(m.reference.Fleet(), 1)
	want(m.fixture, what+": code", millrace.ErrorCode(errA), millrace.ErrorCode(errB))
	want(m.fixture, what, a, b)
}

func (m *fleetModel) url() string {
	return fmt.Sprintf("https://h%d.example/%s", m.r.IntN(12), strings.Repeat("x/", m.r.IntN(2)))
}

func (m *fleetModel) duration() time.Duration { return time.Duration(m.r.IntN(100)) * time.Second }

// ready describes turns in the order of their URLs, without the names of leases, which differ.
func ready(turns []store.Turn, next time.Time) string {
	slices.SortFunc(turns, func(a, b store.Turn) int { return strings.Compare(a.Site.URL, b.Site.URL) })
	var out []string
	for _, t := range turns {
		out = append(out, fmt.Sprint(t.Site, t.Address, t.Delay, t.Failed, t.Hinted, t.Lease.Fence, t.Lease.Expires))
	}
	return fmt.Sprint(out, next)
}

func (m *fleetModel) step(i int) {
	m.Helper()
	ctx := m.Context()
	m.pass(time.Duration(1+m.r.IntN(999)) * time.Millisecond) // no two turns are due at the same time
	if m.r.IntN(2) == 0 {
		m.pass(m.duration())
	}
	op := m.r.IntN(13)
	what := fmt.Sprintf("step %d, operation %d", i, op)
	at := m.clock()
	switch {
	case op < 2:
		s := store.FleetSite{
			URL: m.url(), Priority: m.r.IntN(4), Labels: []string{[]string{"a", "b", "-a"}[m.r.IntN(3)]}, Min: m.duration() - 10*time.Second, Unlisted: m.r.IntN(4) == 0,
			Max: m.duration() + 90*time.Second, Webhook: []string{"", "-", "https://one.example/", "https://two.example/"}[m.r.IntN(4)],
		}
		if m.r.IntN(3) == 0 {
			s.Due = at.Add(m.duration() - time.Minute)
		}
		m.both(what, func(f store.Fleet, _ int) (any, error) {
			added, changed, err := f.Put(ctx, each([]store.FleetSite{s}))
			return [2]int{added, changed}, err
		})
	case op < 5: // every turn that is due, so that the shares of classes do not matter
		var sites []string
		if m.r.IntN(4) == 0 {
			sites = []string{m.url()}
		}
		var got [2][]store.Turn
		m.both(what, func(f store.Fleet, n int) (any, error) {
			turns, next, err := f.Lease(ctx, "one", 100, time.Minute, sites)
			got[n] = turns
			return ready(turns, next), err
		})
		for i := range got[0] {
			m.turns = append(m.turns, [2]store.Turn{got[0][i], got[1][i]})
		}
	case op < 8 && len(m.turns) > 0:
		n := m.r.IntN(len(m.turns))
		turn := m.turns[n]
		r := store.TurnResult{
			Due: at.Add(m.duration()).Add(time.Duration(n) * 3 * time.Millisecond), Soonest: at.Add(m.duration()), OK: m.r.IntN(2) == 0, Error: fmt.Sprint("e", n%2), Name: fmt.Sprint(n % 3), State: []byte{byte(n)},
			Delay: m.duration(), Requests: m.r.Int64N(9), Received: 5,
		}
		if m.r.IntN(3) == 0 {
			r.Until = at.Add(time.Minute)
		}
		m.both(what, func(f store.Fleet, at int) (any, error) {
			return nil, f.Done(ctx, turn[at].Lease, turn[at].Site.URL, r)
		})
		m.turns = slices.Delete(m.turns, n, n+1)
	case op == 8 && len(m.turns) > 0:
		n := m.r.IntN(len(m.turns))
		address, rate := fmt.Sprint("192.0.2.", m.r.IntN(4)), 0.0
		if address == "192.0.2.0" {
			rate = 2
		}
		var got [2]store.Turn
		m.both(what, func(f store.Fleet, at int) (any, error) {
			turn, err := f.SetAddress(ctx, m.turns[n][at], address, rate)
			if got[at] = turn; err != nil {
				turn = store.Turn{}
			}
			return ready([]store.Turn{turn}, time.Time{}), err
		})
		m.turns[n] = got
	case op == 9:
		url, paused, remove := m.url(), m.r.IntN(2) == 0, m.r.IntN(8) == 0
		m.both(what, func(f store.Fleet, _ int) (any, error) {
			q := store.FleetQuery{Sites: []string{url}, Label: []string{"", "a"}[i%2]}
			if remove {
				return f.Remove(ctx, q, i%3 == 0)
			}
			return f.Pause(ctx, q, paused)
		})
	case op == 10 && len(m.turns) > 0:
		turn := m.turns[m.r.IntN(len(m.turns))]
		host, address, rate := fmt.Sprintf("h%d.example", m.r.IntN(15)), fmt.Sprint("192.0.2.", m.r.IntN(5)), 0.0
		if address == "192.0.2.0" {
			rate = 2
		}
		var got [2]store.Visit
		m.both(what, func(f store.Fleet, at int) (any, error) {
			v, err := f.Visit(ctx, turn[at].Lease, time.Minute, host, address, rate)
			got[at] = v
			return fmt.Sprint(v.Lease.Expires, v.Lease == turn[at].Lease, v.Lease.Fence > 0, v.Delay), err
		})
		if !slices.Contains(m.visits, got) && got[0].Lease != turn[0].Lease && got[0].Lease.Fence > 0 {
			m.visits = append(m.visits, got)
		}
	case op == 11 && len(m.visits) > 0:
		n, delay, requests := m.r.IntN(len(m.visits)), m.duration(), m.r.Int64N(4)
		m.both(what, func(f store.Fleet, at int) (any, error) {
			v := m.visits[n][at]
			v.Delay, v.Requests = delay, requests
			return nil, f.Leave(ctx, v)
		})
		m.visits = slices.Delete(m.visits, n, n+1)
	case len(m.turns) > 0:
		url := m.url()
		m.both(what, func(f store.Fleet, _ int) (any, error) { return nil, f.Hint(ctx, url) })
		n := m.r.IntN(len(m.turns))
		m.both(what, func(f store.Fleet, at int) (any, error) {
			held, err := f.Renew(ctx, time.Minute, m.turns[n][at].Lease)
			return len(held), err
		})
	}
	m.both(what, func(f store.Fleet, _ int) (any, error) {
		all := []any{}
		for s, err := range f.Sites(ctx, store.FleetQuery{}) {
			if err != nil {
				return nil, err
			}
			all = append(all, fmt.Sprint(s))
		}
		for _, label := range []string{"", "a"} {
			st, err := f.Stats(ctx, label)
			if err != nil {
				return nil, err
			}
			all = append(all, st)
		}
		for _, label := range []string{"", "a"} {
			hosts, err := f.Hosts(ctx, label, 5)
			if err != nil {
				return nil, err
			}
			all = append(all, hosts)
		}
		return all, nil
	})
}
