package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// fleet implements [store.Fleet]. The lock of the store guards it.
type fleet struct {
	store    *Store
	sites    map[string]*fleetSite
	hosts    map[string]*fleetHost
	groups   map[int64]*fleetGroup
	networks map[string]*fleetNetwork
	last     int64 // ID of the newest group
}

type fleetSite struct {
	store.FleetSite
	soonest time.Time
	hinted  bool
}

type fleetHost struct {
	store.FleetHost
	group int64
	delay time.Duration
	since time.Time // start of the period in which moves are counted
	moves int
	cost  int64 // requests of the last turn
}

// fleetGroup is a group. If it has no holder, ready is the time at which its next turn may begin;
// else ready is the end of the lease.
type fleetGroup struct {
	id int64
	// address is the address that the hosts share. It is empty for a single host without a known
	// address, and for a group on a network. If Visit creates a group on a network, address is the
	// name of the host.
	address string
	network string
	slotted bool // the rate of the network permits a turn at ready
	holder  string
	fence   uint64
	ready   time.Time
}

type fleetNetwork struct {
	rate float64
	next time.Time // time at which the rate permits the next request
}

func newFleet(s *Store) *fleet {
	return &fleet{s, make(map[string]*fleetSite), make(map[string]*fleetHost), make(map[int64]*fleetGroup), make(map[string]*fleetNetwork), 0}
}

// Fleet implements [store.Store].
func (s *Store) Fleet() store.Fleet { return s.fleet }

func (f *fleet) now() time.Time { return f.store.now().Truncate(time.Millisecond) }

// held returns the group of a lease, or an error if the lease was lost.
func (f *fleet) held(l store.Lease) (*fleetGroup, error) {
	id, _ := strconv.ParseInt(strings.TrimPrefix(l.Name, record.FleetPrefix), 10, 64)
	g := f.groups[id]
	if g == nil || g.holder == "" || g.holder != l.Holder || g.fence != l.Fence || !f.now().Before(g.ready) {
		return nil, record.FleetLost(l)
	}
	return g, nil
}

func (f *fleet) group() *fleetGroup {
	f.last++
	g := &fleetGroup{id: f.last}
	f.groups[g.id] = g
	return g
}

func (f *fleet) members(group int64) (hosts []*fleetHost) {
	for _, name := range slices.Sorted(maps.Keys(f.hosts)) {
		if h := f.hosts[name]; h.group == group {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Put implements [store.Fleet].
func (f *fleet) Put(ctx context.Context, sites iter.Seq2[store.FleetSite, error]) (added, changed int, err error) {
	var all []store.FleetSite
	for s, err := range sites {
		if err == nil {
			s.Host, err = record.FleetHost(&s)
		}
		if err != nil {
			return 0, 0, err
		}
		all = append(all, s)
	}
	err = f.store.change(ctx, store.Lease{}, "put sites", func() error {
		next := maps.Clone(f.sites)
		for _, s := range all {
			site := &fleetSite{}
			was := next[s.URL]
			if was != nil {
				*site = *was
			}
			var differs bool
			if site.FleetSite, differs, err = record.MergeFleet(site.FleetSite, s, f.now()); err != nil {
				return err
			}
			if next[s.URL] = site; was == nil {
				added++
			} else if differs && f.sites[s.URL] != nil {
				changed++
			}
		}
		f.sites = next
		for _, s := range all {
			if f.hosts[s.Host] == nil {
				f.hosts[s.Host] = &fleetHost{FleetHost: store.FleetHost{Host: s.Host}, group: f.group().id, cost: record.FleetCost}
			}
			if !s.Due.IsZero() {
				f.hosts[s.Host].Until = time.Time{}
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return added, changed, nil
}

func matches(q store.FleetQuery, s *fleetSite) bool {
	return (q.Sites == nil || slices.Contains(q.Sites, s.URL)) && (q.Label == "" || slices.Contains(s.Labels, q.Label)) && (!q.Removing || s.Removing)
}

// Remove implements [store.Fleet].
func (f *fleet) Remove(ctx context.Context, q store.FleetQuery, pages bool) (removed int, err error) {
	err = f.store.change(ctx, store.Lease{}, "remove sites", func() error {
		for url, s := range f.sites {
			if matches(q, s) && pages {
				s.Removing, s.Unlisted, s.hinted = true, false, true
				f.resume(s)
				removed++
			} else if matches(q, s) {
				delete(f.sites, url)
				removed++
			}
		}
		if removed > 0 && !pages {
			f.sweep()
		}
		return nil
	})
	return removed, err
}

// sweep deletes hosts and groups that have no site, and whose lease and delay are over.
func (f *fleet) sweep() {
	used := make(map[string]bool)
	for _, s := range f.sites {
		used[s.Host] = true
	}
	maps.DeleteFunc(f.hosts, func(name string, h *fleetHost) bool {
		return !used[name] && !f.now().Before(f.groups[h.group].ready)
	})
	maps.DeleteFunc(f.groups, func(id int64, g *fleetGroup) bool {
		end := g.ready
		if g.slotted {
			end = end.Add(record.SlotTime)
		}
		return !f.now().Before(end) && len(f.members(id)) == 0
	})
}

// drop removes a group if it has no hosts.
func (f *fleet) drop(g *fleetGroup) {
	if len(f.members(g.id)) == 0 {
		delete(f.groups, g.id)
	}
}

// Pause implements [store.Fleet].
func (f *fleet) Pause(ctx context.Context, q store.FleetQuery, paused bool) (changed int, err error) {
	err = f.store.change(ctx, store.Lease{}, "pause sites", func() error {
		for _, s := range f.sites {
			switch {
			case !matches(q, s) || paused && (s.Paused || s.Removing):
				continue
			case paused:
				s.Paused = true
			default:
				f.resume(s)
			}
			changed++
		}
		return nil
	})
	return changed, err
}

// resume makes a site due at once, even if the site was paused or its host was deferred.
func (f *fleet) resume(s *fleetSite) {
	s.Paused = false
	if now := f.now(); s.Due.After(now) {
		s.Due = now
	}
	f.hosts[s.Host].Until = time.Time{}
}

// Sites implements [store.Fleet].
func (f *fleet) Sites(ctx context.Context, q store.FleetQuery) iter.Seq2[store.FleetSite, error] {
	return list(ctx, f.store, "list the fleet", func() (all []store.FleetSite, _ error) {
		for _, url := range slices.Sorted(maps.Keys(f.sites)) {
			if s := f.sites[url]; matches(q, s) {
				all = append(all, s.FleetSite)
			}
		}
		return all, nil
	})
}

// Hosts implements [store.Fleet].
func (f *fleet) Hosts(ctx context.Context, label string, limit int) ([]store.FleetHost, error) {
	return get(ctx, f.store, "list hosts", func() (all []store.FleetHost, _ error) {
		for _, h := range f.hosts {
			out, labeled := h.FleetHost, false
			for _, s := range f.sites {
				if s.Host == h.Host {
					out.Sites++
					labeled = labeled || matches(store.FleetQuery{Label: label}, s)
				}
			}
			if h.Failures > 0 && labeled {
				all = append(all, out)
			}
		}
		slices.SortFunc(all, func(a, b store.FleetHost) int {
			return cmp.Or(cmp.Compare(b.Failures, a.Failures), strings.Compare(a.Host, b.Host))
		})
		return all[:min(limit, len(all))], nil
	})
}

// Stats implements [store.Fleet].
func (f *fleet) Stats(ctx context.Context, label string) (store.FleetStats, error) {
	return get(ctx, f.store, "count the fleet", func() (st store.FleetStats, _ error) {
		now := f.now()
		st.Time = now.UTC()
		var lags []time.Duration
		hosts, groups := make(map[string]bool), make(map[int64]bool)
		for _, s := range f.sites {
			if s.Unlisted || !matches(store.FleetQuery{Label: label}, s) {
				continue
			}
			st.Sites++
			hosts[s.Host], groups[f.hosts[s.Host].group] = true, true
			if s.Webhook != "" {
				st.Webhooks++
			}
			switch {
			case s.Paused:
				st.Paused++
				continue
			case s.Error != "":
				if st.Errors == nil {
					st.Errors = make(map[string]int)
				}
				st.Failing++
				st.Errors[s.Error]++
			case s.Pulled.IsZero():
				st.New++
			}
			lag := now.Sub(later(s.Due, f.hosts[s.Host].Until))
			if lag >= 0 {
				st.Due++
			}
			lags = append(lags, max(0, lag))
		}
		for _, g := range f.groups {
			if groups[g.id] && g.holder != "" && now.Before(g.ready) {
				st.Leased++
			}
		}
		for name := range hosts {
			st.Requests, st.Received = st.Requests+f.hosts[name].Requests, st.Received+f.hosts[name].Received
		}
		st.Hosts, st.Groups = len(hosts), len(groups)
		slices.Sort(lags)
		for i, p := range record.LagPercentiles {
			if len(lags) > 0 {
				st.Lag[i] = lags[(len(lags)*p+99)/100-1]
			}
		}
		return st, nil
	})
}

// Hint implements [store.Fleet].
func (f *fleet) Hint(ctx context.Context, site string) error {
	return f.store.change(ctx, store.Lease{}, "hint "+site, func() error {
		if s := f.sites[site]; s != nil && !s.Paused {
			s.hinted = true
			s.hint(f.now())
		}
		return nil
	})
}

// hint makes the site due now, or at soonest if that is later.
func (s *fleetSite) hint(now time.Time) {
	if at := later(now, s.soonest); at.Before(s.Due) {
		s.Due = at
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// checkLease returns an error if the lease of a group was lost.
func (s *Store) checkLease(l store.Lease) error {
	if strings.HasPrefix(l.Name, record.FleetPrefix) {
		_, err := s.fleet.held(l)
		return err
	}
	return record.CheckLease(l, s.values[[2]string{record.LeaseNamespace, l.Name}], s.now())
}

// lease returns the lease of a group for its holder.
func (g *fleetGroup) lease() store.Lease {
	return store.Lease{Name: fmt.Sprint(record.FleetPrefix, g.id), Holder: g.holder, Fence: g.fence, Expires: g.ready}
}
