package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// candidate is a site that may have the next turn of its host or group.
type candidate struct {
	site *fleetSite
	at   time.Time // time at which the turn may begin
}

func (c candidate) before(d candidate) bool { return d.site == nil || c.at.Before(d.at) }

// queue returns the next turn of each group, the earliest first.
func (f *fleet) queue(sites []string) (all []candidate) {
	hosts, groups := make(map[string]candidate), make(map[int64]candidate)
	for url, s := range f.sites {
		if s.Paused || sites == nil && s.Unlisted || sites != nil && !slices.Contains(sites, url) {
			continue
		}
		if c := (candidate{s, s.Due}); c.before(hosts[s.Host]) {
			hosts[s.Host] = c
		}
	}
	for name, c := range hosts {
		h := f.hosts[name]
		if c.at = later(c.at, h.Until); c.before(groups[h.group]) {
			groups[h.group] = c
		}
	}
	for id, c := range groups {
		c.at = later(c.at, f.groups[id].ready)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(f.hosts[a.site.Host].group, f.hosts[b.site.Host].group))
	})
	return all
}

// Lease implements [store.Fleet].
func (f *fleet) Lease(ctx context.Context, worker string, n int, d time.Duration, sites []string) (turns []store.Turn, next time.Time, err error) {
	err = f.store.change(ctx, store.Lease{}, "lease turns", func() error {
		if err := record.CheckTurn(worker, d); err != nil {
			return err
		}
		now := f.now()
		shares := record.FleetShares(n)
		for _, all := range []bool{false, true} {
			for i, share := range shares {
				queue := f.queue(sites)
				if len(queue) == 0 || queue[0].at.After(now) {
					break
				}
				for _, c := range queue {
					if !c.at.After(now) && len(turns) < n && (all || share > 0 && record.FleetClass(&c.site.FleetSite) == len(shares)-i) {
						turns = f.turn(turns, c.site, worker, now, d, sites == nil)
						share--
					}
				}
			}
		}
		if queue := f.queue(sites); len(turns) < n && len(queue) > 0 {
			next = queue[0].at
		}
		return nil
	})
	return turns, next, err
}

// turn adds a turn for the group of a site, unless the rate of its network permits none now. If any
// is set, the turn may be for another site of the group.
func (f *fleet) turn(turns []store.Turn, s *fleetSite, worker string, now time.Time, d time.Duration, any bool) []store.Turn {
	g := f.groups[f.hosts[s.Host].group]
	if !f.permit(g, f.hosts[s.Host].cost) {
		return turns
	}
	lease := f.grant(g, worker, now.Add(d))
	if any && g.fence%record.FleetTurns < record.FleetFirst {
		s = f.first(g, s)
	}
	h := f.hosts[s.Host]
	turns = append(turns, store.Turn{Lease: lease, Site: s.FleetSite, Address: h.Address, Delay: f.delay(g), Failed: h.Failures, Hinted: s.hinted})
	s.hinted = false
	return turns
}

// first returns a due site of the class PriorityHigh in a group, or s if the group has none. Among
// the hosts with such a site, it chooses the one that has been due the longest, and returns the
// first due site of the class on that host.
func (f *fleet) first(g *fleetGroup, s *fleetSite) *fleetSite {
	now := f.now()
	hosts, sites := make(map[string]candidate), make(map[string]candidate)
	for _, c := range f.sites {
		if h := f.hosts[c.Host]; h.group != g.id || h.Until.After(now) || c.Paused || c.Unlisted || c.Due.After(now) {
			continue
		}
		if at := (candidate{c, later(c.Due, f.hosts[c.Host].Until)}); at.before(hosts[c.Host]) {
			hosts[c.Host] = at
		}
		if at := (candidate{c, c.Due}); record.FleetClass(&c.FleetSite) == store.PriorityHigh && at.before(sites[c.Host]) {
			sites[c.Host] = at
		}
	}
	var best candidate
	for host, c := range sites {
		if at := (candidate{c.site, hosts[host].at}); at.before(best) {
			best = at
		}
	}
	return cmp.Or(best.site, s)
}

// permit reports whether the rate of the group's network permits requests now. Otherwise it reserves
// the next time at which the rate permits them.
func (f *fleet) permit(g *fleetGroup, requests int64) bool {
	n, now := f.networks[g.network], f.now()
	if n == nil || g.slotted {
		return true
	}
	at := later(now, n.next)
	n.spend(at, requests)
	if at.After(now) {
		g.ready, g.slotted = at.Truncate(time.Millisecond), true
	}
	return !g.slotted
}

// spend reserves requests from a time.
func (n *fleetNetwork) spend(from time.Time, requests int64) {
	if n != nil {
		n.next = from.Add(time.Duration(float64(requests) / n.rate * float64(time.Second)))
	}
}

// grant leases a group to a worker until a time plus the delay of the group.
func (f *fleet) grant(g *fleetGroup, worker string, until time.Time) store.Lease {
	g.holder, g.ready, g.slotted = worker, until.Truncate(time.Millisecond).Add(f.delay(g)), false
	g.fence++
	return g.lease()
}

// delay returns the longest delay of the hosts of a group.
func (f *fleet) delay(g *fleetGroup) (most time.Duration) {
	for _, h := range f.members(g.id) {
		most = max(most, h.delay)
	}
	return most
}

// Renew implements [store.Fleet].
func (f *fleet) Renew(ctx context.Context, d time.Duration, leases ...store.Lease) (held []store.Lease, err error) {
	err = f.store.change(ctx, store.Lease{}, "renew leases", func() error {
		for _, l := range leases {
			if g, err := f.held(l); err == nil {
				g.ready = f.now().Add(d).Truncate(time.Millisecond).Add(f.delay(g))
				held = append(held, g.lease())
			}
		}
		return nil
	})
	return held, err
}

// Done implements [store.Fleet].
func (f *fleet) Done(ctx context.Context, l store.Lease, site string, o store.TurnResult) error {
	return f.store.change(ctx, store.Lease{}, "end turn of "+site, func() error {
		g, err := f.held(l)
		if err != nil {
			return err
		}
		f.record(site, o)
		f.charge(g, o.Requests-record.FleetCost)
		f.release(g, 0)
		return nil
	})
}

// charge counts more requests to the network of a group, which permit has not counted.
func (f *fleet) charge(g *fleetGroup, more int64) {
	if n := f.networks[g.network]; n != nil && more > 0 {
		n.spend(n.next, more)
	}
}

// release releases the lease of a group. The group is ready again after the given delay, or after
// its own delay if that is longer.
func (f *fleet) release(g *fleetGroup, delay time.Duration) {
	g.holder, g.ready = "", f.now().Add(max(delay.Truncate(time.Millisecond), f.delay(g)))
}

// record records the outcome of a turn.
func (f *fleet) record(site string, o store.TurnResult) {
	s := f.sites[site]
	if s == nil {
		return
	}
	now := f.now()
	s.Due, s.soonest, s.State = o.Due.UTC().Truncate(time.Millisecond), o.Soonest.UTC().Truncate(time.Millisecond), o.State
	if s.Error = o.Error; o.OK {
		s.Pulled = now
	}
	s.Name = cmp.Or(o.Name, s.Name)
	if s.hinted {
		s.hint(now)
	}
	h := f.hosts[s.Host]
	if h.delay = o.Delay.Truncate(time.Millisecond); o.OK {
		h.Failures, h.Until, h.Why = 0, time.Time{}, ""
	}
	if !o.Until.IsZero() {
		if h.Until, h.Why = o.Until.UTC().Truncate(time.Millisecond), o.Error; !o.OK {
			h.Failures++
		}
	}
	h.Requests, h.Received, h.cost = h.Requests+o.Requests, h.Received+o.Received, max(1, o.Requests)
}

// Ending implements [store.Site].
func (s *site) Ending(l store.Lease, turn string, o store.TurnResult) store.Site {
	ending := *s
	ending.lease, ending.ending = l, func() { s.store.fleet.record(turn, o) }
	return &ending
}

// Visit implements [store.Fleet].
func (f *fleet) Visit(ctx context.Context, turn store.Lease, d time.Duration, host, address string, rate float64) (visit store.Visit, err error) {
	err = f.store.change(ctx, store.Lease{}, "visit "+host, func() error {
		var own *fleetGroup
		if turn.Fence > 0 {
			var err error
			if own, err = f.held(turn); err != nil {
				return err
			}
		}
		g, holder, until := f.visited(host, address, rate), record.VisitHolder(turn), time.Time{}
		if h := f.hosts[host]; h != nil {
			until = h.Until
		}
		visit.Delay = f.delay(g)
		switch now := f.now(); {
		case g == own:
			visit.Lease = turn
		case now.Before(until):
			visit.Lease.Expires = until
		case now.Before(g.ready) && g.holder == holder:
			visit.Lease = g.lease()
		case now.Before(g.ready) || !f.permit(g, 1):
			visit.Lease.Expires = g.ready
		default:
			visit.Lease = f.grant(g, holder, now.Add(d))
		}
		if visit.Lease.Fence == 0 {
			return record.GroupBusy(host, address)
		}
		return nil
	})
	return visit, err
}

// visited returns the group of a machine. If the machine has no group, visited creates one without a
// host.
func (f *fleet) visited(host, address string, rate float64) *fleetGroup {
	if rate > 0 && f.networks[address] == nil {
		f.networks[address] = &fleetNetwork{rate: rate}
	}
	network := ""
	h := f.hosts[host]
	if f.networks[address] != nil {
		if address, network = host, address; h != nil {
			return f.groups[h.group]
		}
	}
	for _, g := range f.groups {
		if g.address == address {
			return g
		}
	}
	if h != nil {
		return f.groups[h.group]
	}
	f.sweep()
	g := f.group()
	g.address, g.network = address, network
	return g
}

// Leave implements [store.Fleet].
func (f *fleet) Leave(ctx context.Context, visits ...store.Visit) error {
	return f.store.change(ctx, store.Lease{}, "leave hosts", func() error {
		for _, v := range visits {
			if g, err := f.held(v.Lease); err == nil {
				f.charge(g, v.Requests-1)
				f.release(g, v.Delay)
			}
		}
		return nil
	})
}

// SetAddress implements [store.Fleet].
func (f *fleet) SetAddress(ctx context.Context, t store.Turn, address string, rate float64) (store.Turn, error) {
	var busy error
	err := f.store.change(ctx, store.Lease{}, "place "+t.Site.Host, func() error {
		g, err := f.held(t.Lease)
		h := f.hosts[t.Site.Host]
		if err != nil || address == "" || h == nil || h.Address == address {
			return err
		}
		since, moves, ok := record.FleetMoves(h.since, h.moves, f.now())
		if !ok {
			return nil
		}
		h.since, h.moves, h.Address = since, moves, address
		if t, ok = f.place(t, g, h, rate); !ok {
			busy = record.GroupBusy(h.Host, address)
		}
		return nil
	})
	return t, cmp.Or(err, busy)
}

// place moves a host to the group of its address. It returns false if the turn has ended.
func (f *fleet) place(t store.Turn, g *fleetGroup, h *fleetHost, rate float64) (store.Turn, bool) {
	address := h.Address
	var to *fleetGroup
	for _, other := range f.groups {
		if other.address == address && other != g {
			to = other
		}
	}
	if to != nil && len(f.members(to.id)) >= store.MaxGroupHosts {
		rate = cmp.Or(rate, record.FleetRate)
		f.split(to, rate)
	}
	if rate > 0 && f.networks[address] == nil {
		f.networks[address] = &fleetNetwork{rate: rate}
	}
	alone := len(f.members(g.id)) == 1
	if f.networks[address] != nil {
		if !alone {
			to = f.group()
		} else if to = nil; true {
			g.address, g.network = "", address
		}
		if to != nil {
			to.network = address
		}
	} else if to == nil {
		if !alone {
			to = f.group()
		} else {
			to = g
		}
		to.address, to.network = address, ""
	}
	if t.Address = address; to == nil || to == g {
		return t, true
	}
	h.group = to.id
	if f.release(g, 0); alone {
		f.drop(g)
	}
	if f.now().Before(to.ready) {
		return t, false
	}
	t.Lease, t.Delay = f.grant(to, t.Lease.Holder, t.Lease.Expires.Add(-t.Delay)), f.delay(to)
	return t, true
}

// split puts each host of a group into its own group in a network.
func (f *fleet) split(g *fleetGroup, rate float64) {
	f.networks[g.address] = &fleetNetwork{rate: rate}
	hosts := f.members(g.id)
	for _, h := range hosts[1:] {
		own := f.group()
		own.network, own.ready, h.group = g.address, g.ready, own.id
	}
	g.address, g.network = "", g.address
}
