package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// groupOf returns the group that a lease is for. ok is false if the lease does not belong to a fleet.
func groupOf(l store.Lease) (id int64, ok bool) {
	text, ok := strings.CutPrefix(l.Name, record.FleetPrefix)
	id, err := strconv.ParseInt(text, 10, 64)
	return id, ok && err == nil
}

// heldGroup returns an error if the lease of a group was lost. lock is appended to the query.
func heldGroup(t Tx, l store.Lease, group int64, now time.Time, lock string) error {
	var one int
	err := t.Row("SELECT 1 FROM fleet_group WHERE id = ? AND holder = ? AND holder <> '' AND fence = ? AND ready > ?"+lock,
		[]any{group, l.Holder, int64(l.Fence), now.UnixMilli()}, &one)
	if absent(err) {
		return record.FleetLost(l)
	}
	return err
}

// groupLease returns a lease of a group.
func groupLease(id int64, holder string, fence uint64, until int64) store.Lease {
	return store.Lease{Name: fmt.Sprint(record.FleetPrefix, id), Holder: holder, Fence: fence, Expires: unixTime(until)}
}

// byName orders leases, so that transactions lock their groups in the same order.
func byName(a, b store.Lease) int { return strings.Compare(a.Name, b.Name) }

// leaseUntil sets the end of a lease: the time ?1 plus the delay of the group. So if the worker is
// killed after a request, the group does not get the next one too early.
var leaseUntil = strings.ReplaceAll("ready = $end, due = CASE WHEN due < $end THEN $end ELSE due END",
	"$end", "CAST(?1 AS BIGINT) + (SELECT coalesce(max(delay), 0) FROM fleet_host WHERE grp = fleet_group.id)")

// notBefore sets the time before which a group gets no turn.
const notBefore = "ready = ?, due = CASE WHEN due < ? THEN ? ELSE due END"

// groupRow is a group that may get a turn.
type groupRow struct {
	id, fence int64
	network   string
	slotted   bool
}

// Lease implements [store.Fleet].
func (f fleet) Lease(ctx context.Context, worker string, n int, d time.Duration, sites []string) (turns []store.Turn, next time.Time, err error) {
	if err := record.CheckTurn(worker, d); err != nil {
		return nil, next, wrap("lease turns", err)
	}
	if at, err := f.nextTurn(f.db.Reader(ctx), sites); err != nil || at == never {
		return nil, next, wrap("lease turns", err)
	} else if now, err := f.Now(ctx); err != nil || at > now.UnixMilli() {
		return nil, unixTime(at), err
	}
	err = f.change(ctx, Lock{}, func(t Tx, now time.Time) error {
		turns = nil
		c := &claim{f, t, worker, now.UnixMilli(), now.Add(d).UnixMilli(), turns}
		var err error
		if sites != nil {
			err = c.named(n, sites)
		} else {
			err = c.due(n)
		}
		if turns = c.turns; err != nil || len(turns) >= n {
			return err
		}
		at, err := f.nextTurn(t, sites)
		if at < never {
			next = unixTime(at)
		}
		return err
	})
	if err != nil { // nothing was leased
		return nil, time.Time{}, wrap("lease turns", err)
	}
	return turns, next, nil
}

// nextTurn returns the time at which the next turn is due.
func (f fleet) nextTurn(q Querier, sites []string) (at int64, err error) {
	at = never
	if sites == nil {
		for class := store.PriorityLow; class <= store.PriorityHigh && err == nil; class++ {
			var due int64
			err = q.Row("SELECT coalesce(min(due), ?) FROM fleet_group WHERE class = ?", []any{int64(never), class}, &due)
			at = min(at, due)
		}
		return at, err
	}
	err = q.Rows(`SELECT s.due, h.until, g.ready FROM fleet_site s JOIN fleet_host h ON h.host = s.host JOIN fleet_group g ON g.id = h.grp
		WHERE s.paused = FALSE AND s.url = ANY(?)`, []any{sites}, func(scan Scanner) error {
		var due, until, ready int64
		err := scan(&due, &until, &ready)
		at = min(at, max(due, until, ready))
		return err
	})
	return at, err
}

// claim is one call of Lease.
type claim struct {
	fleet
	Tx
	worker     string
	now, until int64
	turns      []store.Turn
}

// due claims groups that are due, by class.
func (c *claim) due(n int) error {
	shares := record.FleetShares(n)
	for _, all := range []bool{false, true} {
		for i, share := range shares {
			if all {
				share = n - len(c.turns)
			}
			if share == 0 {
				continue
			}
			groups, err := c.groups("SELECT g.id, g.fence, g.network, g.slotted FROM fleet_group g WHERE class = ? AND due <= ? ORDER BY due, id LIMIT ?"+c.db.Claim(),
				len(shares)-i, c.now, share)
			if err == nil {
				err = c.grant(groups, nextSite, c.now)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// named claims the groups of those of the given sites that are due.
func (c *claim) named(n int, sites []string) error {
	first := make(map[int64]string)
	err := c.Rows(`SELECT g.id, s.url FROM fleet_site s JOIN fleet_host h ON h.host = s.host JOIN fleet_group g ON g.id = h.grp
		WHERE s.due <= ? AND h.until <= ? AND g.ready <= ? AND s.paused = FALSE AND s.url = ANY(?)`, []any{c.now, c.now, c.now, sites}, func(scan Scanner) error {
		var id int64
		var url string
		err := scan(&id, &url)
		if len(first) < n && first[id] == "" {
			first[id] = url
		}
		return err
	})
	if err != nil {
		return err
	}
	for id, url := range first {
		groups, err := c.groups("SELECT g.id, g.fence, g.network, g.slotted FROM fleet_group g WHERE id = ? AND ready <= ?"+c.db.Claim(), id, c.now)
		if err == nil {
			err = c.grant(groups, "JOIN fleet_host h ON h.grp = g.id JOIN fleet_site s ON s.host = h.host AND s.url = ?", url)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nextSite selects the site of the next turn of a group. In the turns that [record.FleetFirst]
// counts, it is a due site of the highest class, if any, else the site that has been due the longest.
var nextSite = fmt.Sprintf(`JOIN fleet_host h ON h.host = coalesce(
		CASE WHEN %[1]s THEN (SELECT host FROM fleet_host f WHERE grp = g.id AND until <= ?1 AND EXISTS (SELECT 1 FROM fleet_site WHERE host = f.host AND %[2]s) ORDER BY due LIMIT 1) END,
		(SELECT host FROM fleet_host WHERE grp = g.id ORDER BY due LIMIT 1))
	JOIN fleet_site s ON s.id = coalesce(
		CASE WHEN %[1]s THEN (SELECT id FROM fleet_site WHERE host = h.host AND %[2]s ORDER BY due LIMIT 1) END,
		(SELECT id FROM fleet_site WHERE host = h.host AND queued = TRUE ORDER BY due LIMIT 1))`,
	fmt.Sprintf("g.fence %% %d < %d", record.FleetTurns, record.FleetFirst), fmt.Sprintf("queued AND class = %d AND due <= ?1", store.PriorityHigh))

func (c *claim) groups(query string, args ...any) (groups []groupRow, err error) {
	err = c.Rows(query, args, func(scan Scanner) error {
		var g groupRow
		err := scan(&g.id, &g.fence, &g.network, &g.slotted)
		groups = append(groups, g)
		return err
	})
	return groups, err
}

// grant leases groups to the worker, except those whose network permits no turn now. join selects the
// host h and the site s of each turn.
func (c *claim) grant(groups []groupRow, join string, arg any) error {
	var ids []int64
	for _, g := range groups {
		if g.network != "" && !g.slotted {
			if ok, err := permit(c.Tx, g, c.now, 0); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		ids = append(ids, g.id)
	}
	err := c.Exec("UPDATE fleet_group SET holder = ?2, slotted = FALSE, fence = fence + 1, "+leaseUntil+" WHERE id = ANY(?)", c.until, c.worker, ids)
	if err != nil {
		return err
	}
	var hinted []string
	query := "SELECT g.id, g.fence, g.ready, h.address, h.failures, s.hinted, (SELECT max(delay) FROM fleet_host WHERE grp = g.id), " + siteColumns + " FROM fleet_group g " + join + " WHERE g.id = ANY(?)"
	err = c.Rows(query, []any{arg, ids}, func(scan Scanner) error {
		var r fleetRow
		var t store.Turn
		var id, fence, ready, delay int64
		err := scan(append([]any{&id, &fence, &ready, &t.Address, &t.Failed, &t.Hinted, &delay}, r.dest()...)...)
		t.Lease = groupLease(id, c.worker, uint64(fence), ready)
		t.Site, t.Delay = r.site(), time.Duration(delay)*time.Millisecond
		if c.turns = append(c.turns, t); t.Hinted {
			hinted = append(hinted, t.Site.URL)
		}
		return err
	})
	if err != nil {
		return err
	}
	// Another transaction that changes a site may wait for this group, so skip the site: it stays hinted.
	return c.Exec("UPDATE fleet_site SET hinted = FALSE WHERE id IN (SELECT id FROM fleet_site WHERE url = ANY(?)"+c.db.Claim()+")", hinted)
}

// permit reports whether the rate of the group's network permits a number of requests now; 0 means
// the requests of a turn. Otherwise it reserves the next time at which the rate permits them.
func permit(t Tx, g groupRow, now, requests int64) (bool, error) {
	var rate, next, cost int64
	err := t.Row("SELECT rate, next, (SELECT coalesce(max(cost), 0) FROM fleet_host WHERE grp = ?) FROM fleet_network WHERE name = ?", []any{g.id, g.network}, &rate, &next, &cost)
	if absent(err) {
		return true, nil
	}
	at := max(now, next)
	if err == nil {
		err = t.Exec("UPDATE fleet_network SET next = CASE WHEN next < ?1 THEN ?1 ELSE next END + ?2 WHERE name = ?3", now, cmp.Or(requests, cost)*1_000_000/rate, g.network)
	}
	if err != nil || at <= now {
		return true, err
	}
	return false, t.Exec("UPDATE fleet_group SET slotted = TRUE, "+notBefore+" WHERE id = ?", at, at, at, g.id)
}

// Renew implements [store.Fleet].
func (f fleet) Renew(ctx context.Context, d time.Duration, leases ...store.Lease) (held []store.Lease, err error) {
	err = f.change(ctx, Lock{}, func(t Tx, now time.Time) error {
		held = nil
		until := now.Add(d).UnixMilli()
		for _, l := range slices.SortedFunc(slices.Values(leases), byName) {
			id, _ := groupOf(l)
			var ready int64
			err := t.Row("UPDATE fleet_group SET "+leaseUntil+" WHERE id = ?2 AND holder = ?3 AND holder <> '' AND fence = ?4 AND ready > ?5 RETURNING ready",
				[]any{until, id, l.Holder, int64(l.Fence), now.UnixMilli()}, &ready)
			switch l.Expires = unixTime(ready); {
			case err == nil:
				held = append(held, l)
			case !absent(err):
				return err
			}
		}
		return nil
	})
	return held, wrap("renew leases", err)
}

// Done implements [store.Fleet].
func (f fleet) Done(ctx context.Context, l store.Lease, site string, r store.TurnResult) error {
	id, _ := groupOf(l)
	err := f.change(ctx, Lock{}, func(t Tx, now time.Time) error {
		if err := endTurn(t, site, r, now); err != nil {
			return err
		}
		if err := charge(t, id, r.Requests-record.FleetCost); err != nil {
			return err
		}
		return release(t, l, id, now, 0)
	})
	return wrap("end turn of "+site, err)
}

// charge counts more requests to the network of a group, which permit has not counted.
func charge(t Tx, group, more int64) error {
	if more <= 0 {
		return nil
	}
	return t.Exec("UPDATE fleet_network SET next = next + ? / rate WHERE name = (SELECT network FROM fleet_group WHERE id = ?)", more*1_000_000, group)
}

// releaseGroup releases a group, and computes when its next turn is due.
var releaseGroup = fmt.Sprintf(`UPDATE fleet_group SET holder = '', ready = %[1]s,
	due = coalesce((SELECT CASE WHEN due < %[1]s THEN %[1]s ELSE due END FROM fleet_host WHERE grp = fleet_group.id ORDER BY due LIMIT 1), %[2]d),
	class = coalesce((SELECT class FROM fleet_host WHERE grp = fleet_group.id ORDER BY due LIMIT 1), class)
	WHERE id = ?2 AND holder = ?3 AND holder <> '' AND fence = ?4 AND ready > ?1`,
	"CAST(?1 AS BIGINT) + (SELECT coalesce(max(CASE WHEN h.delay > ?5 THEN h.delay ELSE ?5 END), ?5) FROM fleet_host h WHERE h.grp = fleet_group.id)", int64(never))

// release releases the lease of a group. The group is ready again after the given delay, or after
// its own delay if that is longer.
func release(t Tx, l store.Lease, id int64, now time.Time, delay time.Duration) error {
	n, err := t.Count(releaseGroup, now.UnixMilli(), id, l.Holder, int64(l.Fence), delay.Milliseconds())
	if err == nil && n == 0 {
		err = record.FleetLost(l)
	}
	return err
}

// endTurn records the result of a turn, and computes when the host is due again. A removed site is
// not an error.
func endTurn(t Tx, site string, r store.TurnResult, now time.Time) error {
	pulled, due := int64(0), unixMillis(r.Due)
	if r.OK {
		pulled = now.UnixMilli()
	}
	err := t.Exec(`UPDATE fleet_site SET due = CASE WHEN hinted THEN CAST(?1 AS BIGINT) ELSE CAST(?2 AS BIGINT) END, soonest = ?3,
		pulled = CASE WHEN ?4 > pulled THEN ?4 ELSE pulled END, class = priority, error = ?5, name = CASE WHEN ?6 = '' THEN name ELSE ?6 END, state = ?7
		WHERE url = ?8`, min(due, max(now.UnixMilli(), unixMillis(r.Soonest))), due, unixMillis(r.Soonest), pulled, r.Error, r.Name, r.State, site)
	if err != nil {
		return err
	}
	return t.Exec(fmt.Sprintf(`UPDATE fleet_host SET delay = ?1, cost = ?2, requests = requests + ?3, received = received + ?4,
		failures = CASE WHEN ?5 THEN 0 WHEN CAST(?7 AS BIGINT) > 0 THEN failures + 1 ELSE failures END, until = %[1]s, why = CASE WHEN CAST(?7 AS BIGINT) > 0 THEN ?8 WHEN ?5 THEN '' ELSE why END,
		due = coalesce((SELECT CASE WHEN due < %[1]s THEN %[1]s ELSE due END FROM fleet_site WHERE host = fleet_host.host AND queued = TRUE ORDER BY due LIMIT 1), %[2]d),
		class = coalesce((SELECT class FROM fleet_site WHERE host = fleet_host.host AND queued = TRUE ORDER BY due LIMIT 1), class)
		WHERE host = (SELECT host FROM fleet_site WHERE url = ?6)`, "CASE WHEN ?5 OR CAST(?7 AS BIGINT) > 0 THEN CAST(?7 AS BIGINT) ELSE fleet_host.until END", int64(never)),
		r.Delay.Milliseconds(), max(1, r.Requests), r.Requests, r.Received, r.OK, site, unixMillis(r.Until), r.Error)
}

// visited is the class of hosts and groups without a site, which get no turns: those of removed sites,
// and groups that Visit has created.
const visited = 0

// Visit implements [store.Fleet].
func (f fleet) Visit(ctx context.Context, turn store.Lease, d time.Duration, host, address string, rate float64) (visit store.Visit, err error) {
	var busy error
	err = f.change(ctx, Lock{Table: LockFleet}, func(t Tx, now time.Time) error {
		busy, visit = nil, store.Visit{}
		own, _ := groupOf(turn)
		if turn.Fence > 0 {
			if err := heldGroup(t, turn, own, now, ""); err != nil {
				return err
			}
		}
		id, err := f.visitedGroup(t, host, address, int64(rate*1000), now)
		if err != nil {
			return err
		}
		g := groupRow{id: id}
		var held string
		var ready, until, delay int64
		err = t.Row(`SELECT holder, fence, ready, network, slotted, coalesce((SELECT until FROM fleet_host WHERE host = ?), 0), coalesce((SELECT max(delay) FROM fleet_host WHERE grp = g.id), 0)
			FROM fleet_group g WHERE id = ?`, []any{host, id}, &held, &g.fence, &ready, &g.network, &g.slotted, &until, &delay)
		visit.Delay = time.Duration(delay) * time.Millisecond
		if err != nil {
			return err
		}
		holder, ms := record.VisitHolder(turn), now.UnixMilli()
		permitted := id != own && until <= ms && ready <= ms
		if permitted && g.network != "" && !g.slotted {
			if permitted, err = permit(t, g, ms, 1); err != nil {
				return err
			}
		}
		switch {
		case id == own:
			visit.Lease = turn
		case until > ms:
			visit.Lease = groupLease(id, holder, 0, until)
		case ready > ms && held == holder:
			visit.Lease = groupLease(id, holder, uint64(g.fence), ready)
		case permitted:
			visit.Lease, err = claimGroup(t, id, holder, ms, now.Add(d).UnixMilli())
		default:
			err = t.Row("SELECT ready FROM fleet_group WHERE id = ?", []any{id}, &ready)
			visit.Lease = groupLease(id, holder, 0, ready)
		}
		if err == nil && visit.Lease.Fence == 0 {
			busy = record.GroupBusy(host, address)
		}
		return err
	})
	return visit, cmp.Or(wrap("visit "+host, err), busy)
}

// claimGroup leases a group. If the group has no turn now, the fence of the lease is 0, and Expires
// says when to try again.
func claimGroup(t Tx, id int64, holder string, now, until int64) (store.Lease, error) {
	var fence uint64
	err := t.Row("UPDATE fleet_group SET holder = ?2, slotted = FALSE, fence = fence + 1, "+leaseUntil+" WHERE id = ?3 AND ready <= ?4 RETURNING fence, ready",
		[]any{until, holder, id, now}, &fence, &until)
	if absent(err) {
		err = t.Row("SELECT ready FROM fleet_group WHERE id = ?", []any{id}, &until)
	}
	return groupLease(id, holder, fence, until), err
}

// visitedGroup returns the group of a machine, or creates one of the class visited.
func (f fleet) visitedGroup(t Tx, host, address string, rate int64, now time.Time) (id int64, err error) {
	if rate > 0 {
		if err := addNetwork(t, address, rate); err != nil {
			return 0, err
		}
	}
	var network bool
	if err := t.Row("SELECT EXISTS (SELECT 1 FROM fleet_network WHERE name = ?)", []any{address}, &network); err != nil {
		return 0, err
	}
	key, name := address, ""
	if network {
		key, name = host, address
	}
	err = t.Row(`SELECT id FROM (SELECT id, ?1 AS rank FROM fleet_group WHERE address = ?2
		UNION ALL SELECT grp, NOT ?1 FROM fleet_host WHERE host = ?3) AS found ORDER BY rank LIMIT 1`, []any{network, key, host}, &id)
	if !absent(err) {
		return id, err
	}
	ids, err := groupIDs(t, 1)
	if err == nil {
		err = f.sweep(t, now)
	}
	if err != nil {
		return 0, err
	}
	return ids[0], t.Exec("INSERT INTO fleet_group (id, address, network, class, due) VALUES (?, ?, ?, ?, ?)", ids[0], key, name, visited, int64(never))
}

// Leave implements [store.Fleet].
func (f fleet) Leave(ctx context.Context, visits ...store.Visit) error {
	err := f.change(ctx, Lock{}, func(t Tx, now time.Time) error {
		for _, v := range slices.SortedFunc(slices.Values(visits), func(a, b store.Visit) int { return byName(a.Lease, b.Lease) }) {
			id, _ := groupOf(v.Lease)
			err := release(t, v.Lease, id, now, v.Delay)
			if err == nil {
				err = charge(t, id, v.Requests-1)
			}
			if err != nil && !errors.Is(err, millrace.ErrConflict) {
				return err
			}
		}
		return nil
	})
	return wrap("leave hosts", err)
}

// SetAddress implements [store.Fleet].
func (f fleet) SetAddress(ctx context.Context, turn store.Turn, address string, rate float64) (store.Turn, error) {
	var busy error
	out := turn
	id, _ := groupOf(turn.Lease)
	err := f.change(ctx, Lock{Table: LockFleet}, func(t Tx, now time.Time) error {
		busy, out = nil, turn
		p := &placement{Tx: t, now: now, from: id, host: turn.Site.Host, address: address, rate: int64(rate * 1000)}
		if err := heldGroup(t, turn.Lease, id, now, ""); err != nil || address == "" {
			return err
		}
		if ok, err := p.moves(); err != nil || !ok {
			return err
		}
		to, err := p.target()
		if out.Address = address; err != nil || to == id {
			return err
		}
		err = t.Exec("UPDATE fleet_host SET grp = ? WHERE host = ?", to, p.host)
		if err == nil {
			err = release(t, turn.Lease, id, now, 0)
		}
		if err != nil {
			return err
		}
		if err := t.Row("SELECT max(delay) FROM fleet_host WHERE grp = ?", []any{to}, &out.Delay); err != nil {
			return err
		}
		out.Delay *= time.Millisecond
		if out.Lease, err = claimGroup(t, to, turn.Lease.Holder, now.UnixMilli(), turn.Lease.Expires.Add(-turn.Delay).UnixMilli()); out.Lease.Fence == 0 {
			busy = record.GroupBusy(p.host, address)
		}
		if err == nil {
			err = t.Exec("DELETE FROM fleet_group WHERE id = ? AND NOT EXISTS (SELECT 1 FROM fleet_host WHERE grp = fleet_group.id)", id)
		}
		if err == nil {
			err = t.Exec(requeueGroups+" WHERE id = ANY(?)", []int64{id, to})
		}
		return err
	})
	return out, cmp.Or(wrap("set the address of "+turn.Site.Host, err), busy)
}

// placement moves a host to the group of an address.
type placement struct {
	Tx
	now           time.Time
	from          int64 // previous group
	host, address string
	rate          int64 // requests in 1,000 s; zero = the address is not the name of a network
}

// moves records a move of the host, and reports whether the host moves.
func (p *placement) moves() (bool, error) {
	var address string
	var since int64
	var moves int
	err := p.Row("SELECT address, since, moves FROM fleet_host WHERE host = ?", []any{p.host}, &address, &since, &moves)
	if absent(err) || err == nil && address == p.address {
		return false, nil
	}
	start, moves, ok := record.FleetMoves(unixTime(since), moves, p.now)
	if err != nil || !ok {
		return false, err
	}
	return true, p.Exec("UPDATE fleet_host SET address = ?, since = ?, moves = ? WHERE host = ?", p.address, start.UnixMilli(), moves, p.host)
}

// target returns the group to which the host moves.
func (p *placement) target() (int64, error) {
	var to, hosts int64
	err := p.Row("SELECT id, (SELECT count(*) FROM fleet_host WHERE grp = g.id) FROM fleet_group g WHERE address = ? AND address <> '' AND id <> ?", []any{p.address, p.from}, &to, &hosts)
	if err != nil && !absent(err) {
		return 0, err
	}
	if hosts >= store.MaxGroupHosts {
		p.rate = cmp.Or(p.rate, record.FleetRate*1000)
		if err := p.split(to); err != nil {
			return 0, err
		}
	}
	if p.rate > 0 {
		if err := addNetwork(p, p.address, p.rate); err != nil {
			return 0, err
		}
	}
	var alone, shared bool
	err = p.Row("SELECT (SELECT count(*) FROM fleet_host WHERE grp = ?) = 1, EXISTS (SELECT 1 FROM fleet_network WHERE name = ?)", []any{p.from, p.address}, &alone, &shared)
	if err != nil {
		return 0, err
	}
	address, network := p.address, ""
	if shared {
		address, network, to = "", p.address, 0
	}
	switch {
	case to != 0:
		return to, nil
	case alone:
		return p.from, p.Exec("UPDATE fleet_group SET address = ?, network = ? WHERE id = ?", address, network, p.from)
	}
	ids, err := groupIDs(p, 1)
	if err != nil {
		return 0, err
	}
	return ids[0], p.Exec("INSERT INTO fleet_group (id, address, network, class, due) VALUES (?, ?, ?, ?, ?)", ids[0], address, network, store.PriorityNormal, int64(never))
}

// addNetwork adds a network to the table, unless the table has it.
func addNetwork(t Tx, name string, rate int64) error {
	return t.Exec("INSERT INTO fleet_network (name, rate, next) VALUES (?, ?, 0) ON CONFLICT (name) DO NOTHING", name, rate)
}

// split puts each host of a group into its own group in a network.
func (p *placement) split(group int64) error {
	hosts, err := column[string](p, "SELECT host FROM fleet_host WHERE grp = ? ORDER BY host", group)
	if err != nil {
		return err
	}
	ids, err := groupIDs(p, len(hosts)-1)
	if err != nil {
		return err
	}
	for i, host := range hosts[1:] {
		err := p.Exec("INSERT INTO fleet_group (id, network, class, due, ready) SELECT ?, ?, class, due, ready FROM fleet_group WHERE id = ?", ids[i], p.address, group)
		if err == nil {
			err = p.Exec("UPDATE fleet_host SET grp = ? WHERE host = ?", ids[i], host)
		}
		if err != nil {
			return err
		}
	}
	if err := p.Exec("UPDATE fleet_group SET address = '', network = ? WHERE id = ?", p.address, group); err != nil {
		return err
	}
	if err := addNetwork(p, p.address, p.rate); err != nil {
		return err
	}
	return p.Exec(requeueGroups+" WHERE id = ANY(?)", append(ids, group))
}
