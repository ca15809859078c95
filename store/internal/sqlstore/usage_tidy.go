package sqlstore

import (
	"context"
	"time"

	"github.com/millrace/millrace/store"
)

const (
	// tidyRows is the maximum number of rows that one transaction deletes.
	tidyRows = 5000
	// slack is the time by which an event must be in the future to be attributed to a wrong clock.
	slack = 24 * time.Hour
	// liveTops is the maximum number of items of a topic on the current day. maxTops is the
	// maximum on earlier days.
	liveTops = 8192
	maxTops  = 2048
)

// Tidy implements [store.Usage].
func (s *Store) Tidy(ctx context.Context, l store.Lease, site string, events, hours time.Time) error {
	return wrap("tidy events of "+site, tidying{Store: s, lease: l}.tidy(ctx, site, millis(events, minTime), millis(hours, minTime)))
}

// tidying is one call of Tidy.
type tidying struct {
	*Store
	lease store.Lease
	site  int64
}

func (s tidying) do(ctx context.Context, f func(t Tx) error) error {
	return s.change(ctx, Lock{LockUsage, s.site}, s.lease, func(t Tx, _ time.Time) error { return f(t) })
}

func (s tidying) tidy(ctx context.Context, site string, events, hours int64) error {
	id, _, err := usageSite(s.db.Reader(ctx), site)
	if err != nil {
		return err
	}
	s.site = id
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	today := floorDiv(now.UnixMilli(), dayMillis)
	for _, step := range []func() error{
		func() error { return s.dropEvents(ctx, id, events, now.Add(slack).UnixMilli()) },
		func() error { return s.dropHours(ctx, id, hours, now.Add(slack).UnixMilli()) },
		func() error { return s.cutTops(ctx, id, today) },
		func() error { return s.dropTexts(ctx, id, min(floorDiv(events, dayMillis), today)) },
		func() error { return s.shrink(ctx, s.lease, true) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// dropEvents deletes the events before a time, in Unix ms. An event later than future is deleted
// with the next event that is not later than future.
func (s tidying) dropEvents(ctx context.Context, site, before, future int64) error {
	r := s.db.Reader(ctx)
	low, high, err := numbers(r, site, minTime, before)
	if err != nil {
		return err
	}
	var one int
	err = r.Row("SELECT 1 FROM usage_hour WHERE site = ? AND hour >= ? LIMIT 1", []any{site, floorDiv(future, hourMillis)}, &one)
	if err == nil {
		low, high, err = numbers(r, site, minTime, maxTime)
	}
	if err != nil && !absent(err) {
		return err
	}
	gone := false // the next event that is not later than future is deleted
	for low <= high {
		var runs [][2]int64 // IDs to delete
		rows := 0
		err := r.Rows("SELECT id, time FROM usage_event WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?", []any{site<<logBits | low, site<<logBits | high, tidyRows},
			func(scan Scanner) error {
				var id, ms int64
				err := scan(&id, &ms)
				rows++
				high = id&forever - 1
				if ms <= future {
					gone = ms < before
				}
				switch n := len(runs); {
				case !gone:
				case n > 0 && runs[n-1][0] == id+1:
					runs[n-1][0] = id
				default:
					runs = append(runs, [2]int64{id, id})
				}
				return err
			})
		if err == nil && len(runs) > 0 {
			err = s.do(ctx, func(t Tx) error {
				for _, run := range runs {
					if err := t.Exec("DELETE FROM usage_event WHERE id BETWEEN ? AND ?", run[0], run[1]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
		if rows < tidyRows {
			break
		}
	}
	return s.do(ctx, func(t Tx) error {
		return t.Exec("DELETE FROM usage_hour WHERE site = ?1 AND last < coalesce((SELECT min(id) FROM usage_event WHERE id BETWEEN ?2 AND ?3), ?3) & ?4",
			site, site<<logBits, site<<logBits|forever, int64(forever))
	})
}

// dropHours deletes the hourly sums of days that end before a time, in Unix ms, and of days after
// future.
func (s tidying) dropHours(ctx context.Context, site, before, future int64) error {
	days, err := column[int64](s.db.Reader(ctx), "SELECT day FROM usage_day WHERE site = ? AND hours = 1 AND (day < ? OR day > ?)",
		site, floorDiv(before, dayMillis), floorDiv(future, dayMillis))
	for _, day := range days {
		err := s.do(ctx, func(t Tx) error {
			if err := t.Exec("UPDATE usage_day SET hours = 0 WHERE site = ? AND day = ?", site, day); err != nil {
				return err
			}
			return t.Exec("DELETE FROM usage_sum WHERE site = ? AND per = 1 AND start >= ? AND start < ?", site, day*dayHours, (day+1)*dayHours)
		})
		if err != nil {
			return err
		}
	}
	return err
}

const (
	cutTop = `DELETE FROM usage_top WHERE site = ?1 AND topic = ?2 AND day = ?3 AND text NOT IN (
		SELECT text FROM usage_top WHERE site = ?1 AND topic = ?2 AND day = ?3 ORDER BY events DESC, last DESC LIMIT ?4)`
	keepTexts = "UPDATE usage_text SET used = NULL WHERE id IN (SELECT text FROM usage_top WHERE site = ? AND topic IN (1, 2, 3) AND day = ?)"
	keepDays  = "UPDATE usage_top SET last = 0 WHERE site = ? AND topic IN (1, 2, 3) AND day = ?"
	markCut   = "UPDATE usage_day SET cut = 1 WHERE site = ? AND day = ?"
)

// cutTops keeps the most requested items of each day. The texts of the kept items of past days are
// kept permanently.
func (s tidying) cutTops(ctx context.Context, site, today int64) error {
	days, err := column[int64](s.db.Reader(ctx), "SELECT day FROM usage_day WHERE site = ? AND cut = 0", site)
	if err != nil {
		return err
	}
	for _, day := range days {
		most, after := liveTops, []string{}
		if day != today && day != today+1 {
			most, after = maxTops, []string{keepTexts, keepDays, markCut}
		}
		for topic := 1; topic < len(topics); topic++ {
			if err := s.do(ctx, func(t Tx) error { return t.Exec(cutTop, site, topic, day, most) }); err != nil {
				return err
			}
		}
		err := s.do(ctx, func(t Tx) error {
			for _, q := range after {
				if err := t.Exec(q, site, day); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dropTexts deletes texts whose events were deleted.
func (s tidying) dropTexts(ctx context.Context, site, day int64) error {
	for n := int64(tidyRows); n == tidyRows; {
		err := s.do(ctx, func(t Tx) (err error) {
			n, err = t.Count("DELETE FROM usage_text WHERE id IN (SELECT id FROM usage_text WHERE site = ? AND used < ? LIMIT ?)", site, day, tidyRows)
			if err != nil || n == 0 {
				return err
			}
			return t.Exec("UPDATE usage SET dropped = dropped + 1 WHERE site = ?", site)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
