package sqlite

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	apart int                           // how many rows there are in them
	tops  map[topDay][]tops             // of each block; nil = not wanted
	only  int                           // the one topic that is wanted, 0 = all

	block  block
	byKind []*sumRow             // of an hour, by the kinds of a block
	asked  [len(topics)][]topRow // of a day, by the texts of a block
	times  [len(topics)]int      // events in them
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
	a.count(b.kinds, b.paths, b.queries, b.rows, number)
	return nil
}

// count adds rows of a block from a number on. Its texts are in their order.
func (a *usageTotals) count(kinds []eventKind, paths, queries []string, rows []eventRow, number int64) {
	var hour, day int64
	var sum map[sumKind]*sumRow
	a.byKind = slices.Grow(a.byKind[:0], len(kinds))[:len(kinds)]
	texts := [len(topics)][]string{1: paths, 2: queries, 3: paths}
	for i := range rows {
		e := &rows[i]
		if e.number < number {
			continue
		}
		k := &kinds[e.kind]
		if a.hours != nil {
			if h := floorDiv(e.time, hourMillis); h != hour || sum == nil {
				hour, sum = h, a.hours[h]
				if sum == nil {
					sum = make(map[sumKind]*sumRow)
					a.hours[h] = sum
				}
				clear(a.byKind)
			}
			r := a.byKind[e.kind]
			if r == nil {
				r = a.sumOf(sum, k)
				a.byKind[e.kind] = r
			}
			r.count(k, e)
		}
		if a.tops != nil {
			if d := floorDiv(e.time, dayMillis); d != day {
				a.keepAsked(&texts, day)
				day = d
			}
			a.ask(&texts, k, e)
		}
	}
	a.keepAsked(&texts, day)
	clear(a.byKind)
}

// sumOf gives the row that an event of a kind is counted in.
func (a *usageTotals) sumOf(sum map[sumKind]*sumRow, k *eventKind) *sumRow {
	of := sumKind{k.bot, k.protocol, k.endpoint, string(store.OutcomeOf(k.status)), k.verdict}
	r := sum[of]
	if r == nil {
		// A text may be a piece of what is much larger.
		of = sumKind{strings.Clone(of.bot), strings.Clone(of.protocol), strings.Clone(of.endpoint), of.outcome, strings.Clone(of.verdict)}
		r = &sumRow{sumKind: of}
		sum[of] = r
		a.apart++
	}
	if r.family != k.family {
		r.family = strings.Clone(k.family)
	}
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

// ask counts what was asked for.
func (a *usageTotals) ask(texts *[len(topics)][]string, k *eventKind, e *eventRow) {
	var topic int
	at, empty := e.path, false
	outcome := store.OutcomeOf(k.status)
	answered := outcome == store.Sent || outcome == store.Unmodified
	switch {
	case outcome == store.Missing:
		topic = 3
	case answered && k.endpoint == string(store.EndpointFetch):
		topic, empty = 1, outcome == store.Unmodified
	case answered && k.endpoint == string(store.EndpointSearch):
		topic, at, empty = 2, e.query, outcome == store.Sent && e.results == 0
	default:
		return
	}
	if a.only != 0 && topic != a.only || texts[topic][at] == "" {
		return
	}
	if len(a.asked[topic]) == 0 {
		n := len(texts[topic])
		a.asked[topic] = slices.Grow(a.asked[topic], n)[:n]
	}
	r := &a.asked[topic][at]
	if r.events == 0 {
		r.last = e.time
		a.times[topic]++
	}
	r.events++
	if empty {
		r.empty++
	}
	add(&r.bytes, e.bytes)
	r.last = max(r.last, e.time)
}

// keepAsked makes tops of what was asked for on a day, and forgets it.
func (a *usageTotals) keepAsked(texts *[len(topics)][]string, day int64) {
	for topic, asked := range a.asked {
		if len(asked) == 0 {
			continue
		}
		list, size := make(tops, 0, a.times[topic]), 0
		for i := range asked {
			if asked[i].events > 0 {
				size += len(texts[topic][i])
			}
		}
		var names strings.Builder // a text may be a piece of what is much larger
		names.Grow(size)
		for i := range asked {
			if asked[i].events > 0 {
				names.WriteString(texts[topic][i])
			}
		}
		rest := names.String()
		for i := range asked {
			if r := &asked[i]; r.events > 0 {
				n := len(texts[topic][i])
				r.name, rest = rest[:n], rest[n:]
				list = append(list, *r)
			}
		}
		clear(asked)
		a.asked[topic], a.times[topic] = asked[:0], 0
		d := topDay{topic, day}
		a.tops[d] = append(a.tops[d], list)
	}
}

// fold adds events that are in no sum yet to the sums and tops, and gives the
// number of those that are left.
func (s *Store) fold(ctx context.Context, site int64) (left int64, err error) {
	run := s.running.take(site)
	err = s.writer.do(ctx, func(t *tx) error {
		next, summed, err := usageState(t, site)
		if err != nil || next == summed {
			return err
		}
		var a *usageTotals
		var done int64
		if run != nil && run.first == summed && run.next <= next {
			a, done = &run.usageTotals, run.next
		} else if a, done, err = s.unsummed(ctx, t, site, next, summed); err != nil {
			return err
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

// unsummed reads what events come to that are in no sum yet, and gives the
// number of the first that it has not read.
func (s *Store) unsummed(ctx context.Context, q querier, site, next, summed int64) (*usageTotals, int64, error) {
	a, done, enough := newTotals(), summed, false
	err := blocksFrom(q, site, summed, minTime, maxTime, func(b *packed) error {
		if enough = done-summed >= int64(s.foldEvents) || a.apart >= foldApart; enough {
			return errEnough
		}
		done = b.last + 1
		err := a.add(&s.coder, b, summed)
		if damaged(err) {
			s.log.ErrorContext(ctx, "events cannot be read and are not counted", "first", b.first, "last", b.last)
			return nil
		}
		return err
	})
	if !enough {
		done = next // those between are gone
	}
	return a, done, err
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
func (s *Store) keepTops(t *tx, site int64, days map[topDay][]tops) error {
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
		most := liveTops
		if over {
			most = keptTops
		}
		all := together(append(more, old)).cut(most)
		err = t.exec("INSERT INTO usage_top (site, topic, day, over, data) VALUES (?1, ?2, ?3, 0, ?4) ON CONFLICT DO UPDATE SET data = ?4",
			site, d.topic, d.day, all.encode(&s.coder, d.day*dayMillis, over))
		if err != nil {
			return err
		}
	}
	return nil
}
