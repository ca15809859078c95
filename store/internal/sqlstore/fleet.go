package sqlstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// fleet implements [store.Fleet]. A transaction that moves hosts between groups holds the lock of
// the table fleet. Rows are locked in the order site, host, group.
type fleet struct{ *Store }

// maxDeadlocks is the maximum number of attempts at a transaction of a fleet that deadlocks.
const maxDeadlocks = 5

// change runs do in a transaction, like [Store.change]. If it deadlocks with another transaction,
// change repeats it. So do must set all of its results.
func (f fleet) change(ctx context.Context, lock Lock, do func(t Tx, now time.Time) error) (err error) {
	for range maxDeadlocks {
		err = f.Store.change(ctx, lock, store.Lease{}, do)
		if millrace.ErrorCode(err) != "store-deadlock" {
			break
		}
	}
	return err
}

// Fleet implements [store.Store].
func (s *Store) Fleet() store.Fleet { return fleet{s} }

// never is the due time of a group or host without a scheduled site.
const never = 1 << 62

// fleetChunk is the maximum number of sites in one statement.
const fleetChunk = 500

const siteColumns = "s.url, s.host, s.labels, s.priority, s.shortest, s.longest, s.unlisted, s.paused, s.added, s.due, s.pulled, s.error, s.name, s.state, s.webhook, s.removing"

// fleetRow reads one site.
type fleetRow struct {
	store.FleetSite
	labels                                string
	shortest, longest, added, due, pulled int64
}

func (r *fleetRow) dest() []any {
	s := &r.FleetSite
	return []any{&s.URL, &s.Host, &r.labels, &s.Priority, &r.shortest, &r.longest, &s.Unlisted, &s.Paused, &r.added, &r.due, &r.pulled, &s.Error, &s.Name, &s.State, &s.Webhook, &s.Removing}
}

func (r *fleetRow) site() store.FleetSite {
	s := r.FleetSite
	s.Labels = strings.Fields(r.labels)
	s.Min, s.Max = time.Duration(r.shortest)*time.Millisecond, time.Duration(r.longest)*time.Millisecond
	s.Added, s.Due, s.Pulled = unixTime(r.added), unixTime(r.due), unixTime(r.pulled)
	return s
}

// unixTime converts milliseconds since 1970 to a time; 0 is the zero time.
func unixTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func unixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func labelText(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return "\n" + strings.Join(labels, "\n") + "\n"
}

// requeue updates the due times of hosts and of their groups.
func requeue(t Tx, hosts []string) error {
	err := t.Exec(fmt.Sprintf(`UPDATE fleet_host SET
		due = coalesce((SELECT CASE WHEN due < fleet_host.until THEN fleet_host.until ELSE due END FROM fleet_site WHERE host = fleet_host.host AND queued = TRUE ORDER BY due LIMIT 1), %d),
		class = coalesce((SELECT class FROM fleet_site WHERE host = fleet_host.host AND queued = TRUE ORDER BY due LIMIT 1), class)
		WHERE host = ANY(?)`, never), hosts)
	if err != nil {
		return err
	}
	return t.Exec(requeueGroups+" WHERE id IN (SELECT grp FROM fleet_host WHERE host = ANY(?))", hosts)
}

var requeueGroups = fmt.Sprintf(`UPDATE fleet_group SET
	due = coalesce((SELECT CASE WHEN due < fleet_group.ready THEN fleet_group.ready ELSE due END FROM fleet_host WHERE grp = fleet_group.id ORDER BY due LIMIT 1), %d),
	class = coalesce((SELECT class FROM fleet_host WHERE grp = fleet_group.id ORDER BY due LIMIT 1), class)`, never)

// Put implements [store.Fleet].
func (f fleet) Put(ctx context.Context, sites iter.Seq2[store.FleetSite, error]) (added, changed int, err error) {
	err = f.change(ctx, Lock{Table: LockFleet}, func(t Tx, now time.Time) error {
		added, changed = 0, 0
		next := func(some []store.FleetSite) error {
			a, c, err := put(t, some, now.UnixMilli())
			added, changed = added+a, changed+c
			return err
		}
		var some []store.FleetSite
		for s, err := range sites {
			if err == nil {
				s.Host, err = record.FleetHost(&s)
			}
			if err != nil {
				return err
			}
			if some = append(some, s); len(some) < fleetChunk {
				continue
			}
			if err := next(some); err != nil {
				return err
			}
			some = some[:0]
		}
		return next(some)
	})
	if err != nil {
		return 0, 0, wrap("put sites", err)
	}
	return added, changed, nil
}

// put adds or changes a chunk of sites.
func put(t Tx, some []store.FleetSite, now int64) (added, changed int, err error) {
	urls, names := make([]string, len(some)), make([]string, len(some))
	for i, s := range some {
		urls[i], names[i] = s.URL, s.Host
	}
	sites, err := fleetSites(t, urls)
	if err != nil {
		return 0, 0, err
	}
	hosts := make(map[string]bool)
	err = t.Rows("SELECT host FROM fleet_host WHERE host = ANY(?)", []any{names}, func(scan Scanner) error {
		var host string
		err := scan(&host)
		hosts[host] = true
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	var newSites, newHosts, newGroups []any
	var queues []string           // hosts whose queues change
	index := make(map[string]int) // indexes in newSites, by URL
	for _, s := range some {
		old, known := sites[s.URL]
		merged, differs, err := record.MergeFleet(old, s, unixTime(now))
		if err != nil {
			return 0, 0, err
		}
		sites[s.URL] = merged
		at, isNew := index[s.URL]
		if known && !isNew {
			if !differs {
				continue
			}
			changed++
			queues = append(queues, s.Host)
			if err := update(t, merged); err != nil {
				return 0, 0, err
			}
			continue
		}
		row := []any{
			s.URL, s.Host, labelText(merged.Labels), merged.Priority, record.FleetClass(&merged), merged.Min.Milliseconds(), merged.Max.Milliseconds(),
			merged.Unlisted, !merged.Unlisted, now, unixMillis(merged.Due), merged.Webhook,
		}
		if isNew { // the same site twice in sites
			copy(newSites[at:], row)
			continue
		}
		added++
		index[s.URL] = len(newSites)
		newSites = append(newSites, row...)
		if hosts[s.Host] {
			queues = append(queues, s.Host)
		} else {
			hosts[s.Host] = true
			newHosts = append(newHosts, s.Host)
		}
	}
	const columns = 12
	ids, err := groupIDs(t, len(newHosts))
	if err != nil {
		return 0, 0, err
	}
	rows := make([]any, 0, 5*len(newHosts))
	for i, host := range newHosts {
		newGroups = append(newGroups, ids[i], store.PriorityNormal, int64(never))
		rows = append(rows, host, ids[i], store.PriorityNormal, int64(never), record.FleetCost)
		queues = append(queues, host.(string))
	}
	for _, in := range []struct {
		into  string
		width int
		rows  []any
	}{
		{"fleet_site (url, host, labels, priority, class, shortest, longest, unlisted, queued, added, due, webhook)", columns, newSites},
		{"fleet_group (id, class, due)", 3, newGroups},
		{"fleet_host (host, grp, class, due, cost)", 5, rows},
	} {
		if err := t.Insert(in.into, "", in.width, in.rows); err != nil {
			return 0, 0, err
		}
	}
	var lifted []string
	for _, s := range some {
		if !s.Due.IsZero() {
			lifted = append(lifted, s.Host)
		}
	}
	if err := t.Exec("UPDATE fleet_host SET until = 0 WHERE until > 0 AND host = ANY(?)", lifted); err != nil {
		return 0, 0, err
	}
	queues = append(queues, lifted...)
	slices.Sort(queues)
	return added, changed, requeue(t, slices.Compact(queues))
}

// groupIDs returns n new IDs of groups. IDs are never reused, so the lease of a removed group stays
// lost.
func groupIDs(t Tx, n int) (ids []int64, err error) {
	var last int64
	err = t.Row("UPDATE fleet SET last = last + ? RETURNING last", []any{n}, &last)
	for i := range n {
		ids = append(ids, last-int64(n-1-i))
	}
	return ids, err
}

// update writes the settings of a site.
func update(t Tx, s store.FleetSite) error {
	return t.Exec("UPDATE fleet_site SET labels = ?, priority = ?, class = ?, shortest = ?, longest = ?, unlisted = ?, queued = ?, due = ?, webhook = ?, removing = ? WHERE url = ?",
		labelText(s.Labels), s.Priority, record.FleetClass(&s), s.Min.Milliseconds(), s.Max.Milliseconds(), s.Unlisted, !s.Unlisted && !s.Paused, unixMillis(s.Due), s.Webhook, s.Removing, s.URL)
}

// fleetSites reads sites by URL.
func fleetSites(q Querier, urls []string) (map[string]store.FleetSite, error) {
	found := make(map[string]store.FleetSite)
	err := q.Rows("SELECT "+siteColumns+" FROM fleet_site s WHERE s.url = ANY(?)", []any{urls}, func(scan Scanner) error {
		var r fleetRow
		err := scan(r.dest()...)
		found[r.URL] = r.site()
		return err
	})
	return found, err
}

// selected returns the SQL condition for the label and Removing of a query.
func selected(q store.FleetQuery) (condition string, args []any) {
	condition = "TRUE"
	if q.Removing {
		condition = "removing = TRUE"
	}
	if q.Label == "" {
		return condition, nil
	}
	return condition + " AND labels LIKE ? ESCAPE '!'", []any{"%\n" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(q.Label) + "\n%"}
}

// Sites implements [store.Fleet].
func (f fleet) Sites(ctx context.Context, q store.FleetQuery) iter.Seq2[store.FleetSite, error] {
	return func(yield func(store.FleetSite, error) bool) {
		err := f.sites(ctx, q, func(s store.FleetSite) error {
			if !yield(s, nil) {
				return ErrEnough
			}
			return nil
		})
		if err != nil && err != ErrEnough { //nolint:errorlint // the function above returns ErrEnough itself
			yield(store.FleetSite{}, wrap("list the fleet", err))
		}
	}
}

func (f fleet) sites(ctx context.Context, q store.FleetQuery, yield func(store.FleetSite) error) error {
	is := func(s store.FleetSite) bool {
		return (q.Label == "" || slices.Contains(s.Labels, q.Label)) && (!q.Removing || s.Removing)
	}
	if q.Sites != nil {
		found, err := fleetSites(f.db.Reader(ctx), q.Sites)
		for _, url := range slices.Compact(slices.Sorted(slices.Values(q.Sites))) {
			if s, ok := found[url]; err == nil && ok && is(s) {
				err = yield(s)
			}
		}
		return err
	}
	condition, args := selected(q)
	for after := ""; ; {
		var page []store.FleetSite
		err := f.db.Reader(ctx).Rows("SELECT "+siteColumns+" FROM fleet_site s WHERE url > ? AND "+condition+fmt.Sprintf(" ORDER BY url LIMIT %d", fleetChunk),
			append([]any{after}, args...), func(scan Scanner) error {
				var r fleetRow
				err := scan(r.dest()...)
				page = append(page, r.site())
				return err
			})
		for _, s := range page {
			if after = s.URL; err == nil {
				err = yield(s)
			}
		}
		if err != nil || len(page) < fleetChunk {
			return err
		}
	}
}

// each calls do with the URLs and the hosts of the sites of a query, a chunk at a time.
func (f fleet) each(t Tx, q store.FleetQuery, do func(urls, hosts []string) error) error {
	for after := ""; ; {
		var urls, hosts []string
		add := func(scan Scanner) error {
			var url, host string
			err := scan(&url, &host)
			urls, hosts = append(urls, url), append(hosts, host)
			return err
		}
		condition, args := selected(q)
		var err error
		if q.Sites != nil {
			err = t.Rows("SELECT url, host FROM fleet_site WHERE "+condition+" AND url = ANY(?)", append(args, q.Sites), add)
		} else {
			err = t.Rows("SELECT url, host FROM fleet_site WHERE url > ? AND "+condition+fmt.Sprintf(" ORDER BY url LIMIT %d", fleetChunk), append([]any{after}, args...), add)
		}
		if err == nil && len(urls) > 0 {
			err = do(urls, slices.Compact(slices.Sorted(slices.Values(hosts))))
		}
		if err != nil || q.Sites != nil || len(urls) < fleetChunk {
			return err
		}
		after = urls[len(urls)-1]
	}
}

// Remove implements [store.Fleet].
func (f fleet) Remove(ctx context.Context, q store.FleetQuery, pages bool) (removed int, err error) {
	if pages {
		return f.dueNow(ctx, "remove sites", q, "removing = TRUE, paused = FALSE, unlisted = FALSE, queued = TRUE, hinted = TRUE")
	}
	err = f.change(ctx, Lock{Table: LockFleet}, func(t Tx, now time.Time) error {
		removed = 0
		return f.each(t, q, func(urls, hosts []string) error {
			n, err := t.Count("DELETE FROM fleet_site WHERE url = ANY(?)", urls)
			removed += int(n)
			if err == nil {
				err = t.Exec(fmt.Sprintf("UPDATE fleet_host SET class = %d WHERE NOT EXISTS (SELECT 1 FROM fleet_site WHERE host = fleet_host.host) AND host = ANY(?)", visited), hosts)
			}
			if err == nil {
				err = requeue(t, hosts)
			}
			if err == nil {
				err = f.sweep(t, now)
			}
			return err
		})
	})
	return removed, wrap("remove sites", err)
}

// sweep deletes hosts and groups that have no site, and whose lease and delay are over. The
// transaction holds the lock of the fleet.
func (f fleet) sweep(t Tx, now time.Time) error {
	err := t.Exec(fmt.Sprintf(`DELETE FROM fleet_host WHERE class = %d AND (SELECT ready FROM fleet_group WHERE id = grp) <= ?
		AND NOT EXISTS (SELECT 1 FROM fleet_site WHERE host = fleet_host.host)`, visited), now.UnixMilli())
	if err != nil {
		return err
	}
	return t.Exec(`DELETE FROM fleet_group WHERE id IN (SELECT id FROM fleet_group g WHERE class = ? AND ready + CASE WHEN slotted THEN ? ELSE 0 END <= ?
		AND NOT EXISTS (SELECT 1 FROM fleet_host WHERE grp = g.id)`+f.db.Claim()+")", visited, record.SlotTime.Milliseconds(), now.UnixMilli())
}

// dueNow sets columns of the sites of a query, makes the sites due, and returns their number.
func (f fleet) dueNow(ctx context.Context, what string, q store.FleetQuery, columns string) (changed int, err error) {
	err = f.change(ctx, Lock{Table: LockFleet}, func(t Tx, now time.Time) error {
		changed = 0
		return f.each(t, q, func(urls, hosts []string) error {
			n, err := t.Count("UPDATE fleet_site SET due = CASE WHEN due < ? THEN due ELSE ? END, "+columns+" WHERE url = ANY(?)", now.UnixMilli(), now.UnixMilli(), urls)
			changed += int(n)
			if err == nil {
				err = t.Exec("UPDATE fleet_host SET until = 0 WHERE host = ANY(?)", hosts)
			}
			if err == nil {
				err = requeue(t, hosts)
			}
			return err
		})
	})
	return changed, wrap(what, err)
}

// Pause implements [store.Fleet].
func (f fleet) Pause(ctx context.Context, q store.FleetQuery, paused bool) (changed int, err error) {
	if !paused {
		return f.dueNow(ctx, "resume sites", q, "paused = FALSE, queued = NOT unlisted")
	}
	err = f.change(ctx, Lock{Table: LockFleet}, func(t Tx, _ time.Time) error {
		changed = 0
		return f.each(t, q, func(urls, hosts []string) error {
			n, err := t.Count("UPDATE fleet_site SET paused = TRUE, queued = FALSE WHERE NOT paused AND NOT removing AND url = ANY(?)", urls)
			changed += int(n)
			if err == nil {
				err = requeue(t, hosts)
			}
			return err
		})
	})
	return changed, wrap("pause sites", err)
}

// Hosts implements [store.Fleet].
func (f fleet) Hosts(ctx context.Context, label string, limit int) (all []store.FleetHost, err error) {
	condition, args := selected(store.FleetQuery{Label: label})
	err = f.db.Reader(ctx).Rows(`SELECT host, address, until, why, failures, requests, received, (SELECT count(*) FROM fleet_site s WHERE s.host = h.host)
		FROM fleet_host h WHERE failures > 0 AND EXISTS (SELECT 1 FROM fleet_site s WHERE s.host = h.host AND `+condition+") ORDER BY failures DESC, host LIMIT ?", append(args, limit), func(scan Scanner) error {
		var h store.FleetHost
		var until int64
		err := scan(&h.Host, &h.Address, &until, &h.Why, &h.Failures, &h.Requests, &h.Received, &h.Sites)
		h.Until = unixTime(until)
		all = append(all, h)
		return err
	})
	return all, wrap("list hosts", err)
}

// Stats implements [store.Fleet].
func (f fleet) Stats(ctx context.Context, label string) (st store.FleetStats, err error) {
	condition, args := selected(store.FleetQuery{Label: label})
	condition = "NOT unlisted AND " + condition
	err = f.db.Snapshot(ctx, func(q Querier) error {
		now, err := f.clock(q)
		if err != nil {
			return err
		}
		ms := now.UnixMilli()
		st.Time = unixTime(ms)
		var queued int
		err = q.Row(`SELECT count(*), count(CASE WHEN paused THEN 1 END), count(CASE WHEN queued AND error <> '' THEN 1 END), count(CASE WHEN queued AND pulled = 0 AND error = '' THEN 1 END),
			count(CASE WHEN webhook <> '' THEN 1 END), count(CASE WHEN queued THEN 1 END) FROM fleet_site WHERE `+condition,
			args, &st.Sites, &st.Paused, &st.Failing, &st.New, &st.Webhooks, &queued)
		if err != nil {
			return err
		}
		listed := "EXISTS (SELECT 1 FROM fleet_site s WHERE s.host = h.host AND " + condition + ")"
		if label == "" {
			listed = fmt.Sprintf("(h.due < %d OR %s)", int64(never), listed) // a scheduled host needs no lookup
		}
		err = q.Row("SELECT count(*), count(DISTINCT grp), CAST(coalesce(sum(requests), 0) AS BIGINT), CAST(coalesce(sum(received), 0) AS BIGINT) FROM fleet_host h WHERE "+listed,
			args, &st.Hosts, &st.Groups, &st.Requests, &st.Received)
		if err == nil {
			err = q.Row(`SELECT count(*) FROM fleet_group g WHERE holder <> '' AND ready > ?
				AND EXISTS (SELECT 1 FROM fleet_host h JOIN fleet_site s ON s.host = h.host WHERE h.grp = g.id AND `+condition+")", append([]any{ms}, args...), &st.Leased)
		}
		if err == nil && st.Failing > 0 {
			st.Errors = make(map[string]int)
			err = q.Rows("SELECT error, count(*) FROM fleet_site WHERE queued = TRUE AND error <> '' AND "+condition+" GROUP BY error", args, func(scan Scanner) error {
				var code string
				var n int
				err := scan(&code, &n)
				st.Errors[code] = n
				return err
			})
		}
		if err != nil {
			return err
		}
		// The list of deferred hosts is short, so no site needs a lookup on the disk.
		return q.Rows(`WITH h AS MATERIALIZED (SELECT host, until FROM fleet_host WHERE until > 0)
			SELECT CASE WHEN h.until > s.due THEN h.until ELSE s.due END AS since FROM fleet_site s LEFT JOIN h ON h.host = s.host
			WHERE queued = TRUE AND s.due <= ? AND coalesce(h.until, 0) <= ? AND `+condition+" ORDER BY since", append([]any{ms, ms}, args...), func(scan Scanner) error {
			var since int64
			err := scan(&since)
			for i, p := range record.LagPercentiles {
				if at := (queued*p + 99) / 100; st.Due == queued-at { // rank of the percentile
					st.Lag[i] = time.Duration(ms-since) * time.Millisecond
				}
			}
			st.Due++
			return err
		})
	})
	return st, wrap("count the fleet", err)
}

// Hint implements [store.Fleet].
func (f fleet) Hint(ctx context.Context, site string) error {
	err := f.change(ctx, Lock{}, func(t Tx, now time.Time) error {
		n, err := t.Count(`UPDATE fleet_site SET hinted = TRUE, due = CASE WHEN due <= ?1 OR due <= soonest THEN due WHEN soonest < ?1 THEN ?1 ELSE soonest END
			WHERE NOT paused AND url = ?2`, now.UnixMilli(), site)
		if err != nil || n == 0 {
			return err
		}
		hosts, err := column[string](t, "SELECT host FROM fleet_site WHERE url = ?", site)
		if err != nil {
			return err
		}
		return requeue(t, hosts)
	})
	return wrap("hint "+site, err)
}
