package sqlite

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/store"
)

// blocksAtOnce is how many blocks one statement reads.
const blocksAtOnce = 16

// fromNumber gives the block that has a number, or the next, of a site:
// the rows of usage_event whose id is not below it.
const fromNumber = "id >= coalesce((SELECT max(id) FROM usage_event WHERE id BETWEEN ?1 AND ?2), ?2) AND id <= ?3"

// blocksFrom reads the blocks of a site that have events from a number on, and
// that may have some between two times, in Unix ms, until f, which reads them at
// once, has enough.
func blocksFrom(q querier, site, number, earliest, latest int64, f func(b *packed) error) error {
	for {
		n, enough := 0, false
		err := q.rows("SELECT id, last, count, earliest, latest, data FROM usage_event WHERE "+fromNumber+
			" AND last >= ?4 AND latest >= ?5 AND earliest <= ?6 ORDER BY id LIMIT ?7",
			[]any{site << siteBits, site<<siteBits | number, site<<siteBits | forever, number, earliest, latest, blocksAtOnce},
			func(scan scanner) error {
				var b packed
				if err := scan(&b.first, &b.last, &b.count, &b.earliest, &b.latest, &b.data); err != nil {
					return err
				}
				b.first &= forever
				n++
				number = b.last + 1
				err := f(&b)
				enough = errors.Is(err, errEnough)
				return err
			})
		if err != nil || enough || n < blocksAtOnce {
			return err
		}
	}
}

// topDay is a topic on a day, since 1970.
type topDay struct {
	topic int
	day   int64
}

// usageTotals is what events come to that are in no sum yet.
type usageTotals struct {
	hours map[int64]map[sumKind]*sumRow // by the hour since 1970; nil = not wanted
	tops  map[topDay]tops               // nil = not wanted
	only  int                           // the one topic that is wanted, 0 = all

	block block
}

// add adds the events of a block from a number on.
func (a *usageTotals) add(c *coder, p *packed, number int64) error {
	b := &a.block
	if err := b.open(c, p.data); err != nil {
		return err
	}
	if err := b.read(p.first); err != nil {
		return err
	}
	var hour int64
	var sum map[sumKind]*sumRow
	byKind := make([]*sumRow, len(b.kinds)) // of the hour
	for i := range b.rows {
		e := &b.rows[i]
		if e.number < number {
			continue
		}
		k := &b.kinds[e.kind]
		if a.hours != nil {
			if h := floorDiv(e.time, hourMillis); h != hour || sum == nil {
				hour, sum = h, a.hours[h]
				if sum == nil {
					sum = make(map[sumKind]*sumRow)
					a.hours[h] = sum
				}
				clear(byKind)
			}
			r := byKind[e.kind]
			if r == nil {
				r = sumOf(sum, k)
				byKind[e.kind] = r
			}
			r.count(k, e)
		}
		if a.tops != nil {
			a.addTop(b, e, k)
		}
	}
	return nil
}

// sumOf gives the row that an event of a kind is counted in.
func sumOf(sum map[sumKind]*sumRow, k *eventKind) *sumRow {
	of := sumKind{k.bot, k.protocol, k.endpoint, string(store.OutcomeOf(k.status)), k.verdict}
	r := sum[of]
	if r == nil {
		r = &sumRow{sumKind: of}
		sum[of] = r
	}
	r.family = k.family
	return r
}

// count adds an event.
func (r *sumRow) count(k *eventKind, e *eventRow) {
	r.Events++
	if k.cached {
		r.Cached++
	}
	if e.html > 0 {
		r.Weighed++
	}
	if e.onWire > 0 {
		add(&r.Wired, e.html)
	}
	add(&r.Results, e.results)
	add(&r.Bytes, e.bytes)
	add(&r.Size, e.size)
	add(&r.HTML, e.html)
	add(&r.Received, e.onWire)
	took := int64(r.Took)
	add(&took, e.took*int64(time.Microsecond))
	r.Took = time.Duration(took)
}

// addTop counts what was asked for.
func (a *usageTotals) addTop(b *block, e *eventRow, k *eventKind) {
	topic, r := 0, topRow{events: 1, bytes: e.bytes, last: e.time}
	outcome := store.OutcomeOf(k.status)
	answered := outcome == store.Sent || outcome == store.Unmodified
	switch {
	case outcome == store.Missing:
		topic, r.name = 3, b.paths[e.path]
	case answered && k.endpoint == string(store.EndpointFetch):
		topic, r.name = 1, b.paths[e.path]
		if outcome == store.Unmodified {
			r.empty = 1
		}
	case answered && k.endpoint == string(store.EndpointSearch):
		topic, r.name = 2, b.queries[e.query]
		if outcome == store.Sent && e.results == 0 {
			r.empty = 1
		}
	}
	if r.name == "" || a.only != 0 && topic != a.only {
		return
	}
	d := topDay{topic, floorDiv(e.time, dayMillis)}
	t := a.tops[d]
	if t == nil {
		t = make(tops)
		a.tops[d] = t
	}
	t.add(&r)
}

// fold adds events that are in no sum yet to the sums and tops, and gives the
// number of those that are left.
func (s *Store) fold(ctx context.Context, site int64) (left int64, err error) {
	err = s.writer.do(ctx, func(t *tx) error {
		next, summed, err := usageState(t, site)
		if err != nil || next == summed {
			return err
		}
		a := &usageTotals{hours: make(map[int64]map[sumKind]*sumRow), tops: make(map[topDay]tops)}
		done := summed
		err = blocksFrom(t, site, summed, minTime, maxTime, func(b *packed) error {
			if done-summed >= int64(s.foldEvents) {
				return errEnough
			}
			done = b.last + 1
			if err := a.add(&s.coder, b, summed); damaged(err) {
				s.log.ErrorContext(ctx, "events cannot be read and are not counted", "first", b.first, "last", b.last)
			} else if err != nil {
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
		if done-summed < int64(s.foldEvents) {
			done = next // those between are gone
		}
		if err := s.keepSums(t, site, a.hours); err != nil {
			return err
		}
		if err := s.keepTops(t, site, a.tops); err != nil {
			return err
		}
		left = next - done
		return t.exec("UPDATE usage SET summed = ? WHERE site = ?", done, site)
	})
	return left, err
}

const (
	minTime = -1 << 62
	maxTime = 1 << 62
)

// keepSums adds to the sums of hours, where they are kept, and of their days.
func (s *Store) keepSums(t *tx, site int64, hours map[int64]map[sumKind]*sumRow) error {
	byDay := make(map[int64][]int64)
	for h := range hours {
		d := floorDiv(h, dayHours)
		byDay[d] = append(byDay[d], h)
	}
	for d, list := range byDay {
		withHours := 1
		err := t.row("SELECT hours FROM usage_sum WHERE site = ? AND per = 24 AND start = ?", []any{site, d * dayHours}, &withHours)
		if err != nil && !absent(err) {
			return err
		}
		slices.Sort(list)
		var rows []*sumRow
		for _, h := range list {
			of := sortedSums(hours[h])
			rows = append(rows, of...)
			if withHours == 1 {
				if err := s.keepSum(t, site, 1, h, of); err != nil {
					return err
				}
			}
		}
		if err := s.keepSum(t, site, dayHours, d*dayHours, rows); err != nil {
			return err
		}
	}
	return nil
}

// sortedSums gives rows in an order that is always the same.
func sortedSums(m map[sumKind]*sumRow) []*sumRow {
	rows := make([]*sumRow, 0, len(m))
	for _, r := range m {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *sumRow) int { return a.compare(b.sumKind) })
	return rows
}

// keepSum adds to the sums of a period.
func (s *Store) keepSum(t *tx, site int64, per int, start int64, rows []*sumRow) error {
	var data []byte
	err := t.row("SELECT data FROM usage_sum WHERE site = ? AND per = ? AND start = ?", []any{site, per, start}, &data)
	if err != nil && !absent(err) {
		return err
	}
	var sum sums
	if _, err := sum.decode(&s.coder, data, nil); damaged(err) {
		s.log.Error("sums cannot be read and begin anew", "hours since 1970", start)
	} else if err != nil {
		return err
	}
	for _, r := range rows {
		sum.add(r)
	}
	sum.sort()
	return t.exec("INSERT INTO usage_sum (site, per, start, hours, data) VALUES (?1, ?2, ?3, 1, ?4) ON CONFLICT DO UPDATE SET data = ?4",
		site, per, start, sum.encode(&s.coder))
}

// keepTops adds to the tops of days.
func (s *Store) keepTops(t *tx, site int64, days map[topDay]tops) error {
	for d, more := range days {
		var data []byte
		var over bool
		err := t.row("SELECT data, over FROM usage_top WHERE site = ? AND topic = ? AND day = ?", []any{site, d.topic, d.day}, &data, &over)
		if err != nil && !absent(err) {
			return err
		}
		old, err := decodeTops(&s.coder, data, d.day*dayMillis)
		if damaged(err) {
			s.log.Error("what was asked for most cannot be read and begins anew", "days since 1970", d.day)
		} else if err != nil {
			return err
		}
		for i := range old {
			more.add(&old[i])
		}
		if over {
			more.cut(keptTops)
		} else {
			more.cut(liveTops)
		}
		err = t.exec("INSERT INTO usage_top (site, topic, day, over, data) VALUES (?1, ?2, ?3, 0, ?4) ON CONFLICT DO UPDATE SET data = ?4",
			site, d.topic, d.day, more.encode(&s.coder, d.day*dayMillis, over))
		if err != nil {
			return err
		}
	}
	return nil
}
