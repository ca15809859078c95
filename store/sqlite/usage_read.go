package sqlite

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Events implements [store.Usage].
func (s *Store) Events(ctx context.Context, site string, q store.EventQuery) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		if err := s.events(ctx, site, q, func(e store.Event) bool { return yield(e, nil) }); err != nil {
			yield(store.Event{}, explain("events of "+site, err))
		}
	}
}

const (
	selectBlocks = "SELECT id, last, data FROM usage_event WHERE "
	eventsOn     = selectBlocks + fromNumber + " AND latest >= ?4 AND earliest < ?5 ORDER BY id LIMIT ?6"
	eventsBack   = selectBlocks + "id BETWEEN ?1 AND ?2 AND ?3 > 0 AND latest >= ?4 AND earliest < ?5 ORDER BY id DESC LIMIT ?6"
)

func (s *Store) events(ctx context.Context, site string, q store.EventQuery, yield func(store.Event) bool) error {
	id, err := s.usageSite(ctx, site)
	if err != nil || id == 0 {
		return err
	}
	query, number := eventsOn, int64(min(q.After, forever-1))+1
	if q.Newest {
		query, number = eventsBack, number-2
		if q.After == 0 {
			number = forever
		}
	}
	from, to := millis(q.From, minTime), millis(q.To, maxTime)
	outcomes := make(map[store.Outcome]bool)
	for _, o := range q.Outcomes {
		outcomes[o] = true
	}
	left := q.Limit
	if left <= 0 {
		left = math.MaxInt
	}
	var b block
	for number >= 0 {
		var list []packed
		err := s.read.rows(ctx, query, []any{id << siteBits, id<<siteBits | number, id<<siteBits | forever, from, to, blocksAtOnce},
			func(scan scanner) error {
				var p packed
				err := scan(&p.first, &p.last, &p.data)
				p.first &= forever
				list = append(list, p)
				return err
			})
		if err != nil {
			return err
		}
		for _, p := range list {
			next := p.last + 1
			if q.Newest {
				next = p.first - 1
			}
			var kinds []bool
			err := b.open(&s.coder, p.data)
			if err == nil {
				kinds = b.wanted(q, outcomes)
			}
			if kinds != nil {
				err = b.read(p.first)
			}
			if s.passed(ctx, id, err, eventsDamaged, "first", p.first, "last", p.last) || err == nil && kinds == nil {
				number = next
				continue
			} else if err != nil {
				return err
			}
			if q.Newest {
				slices.Reverse(b.rows)
			}
			for i := range b.rows {
				e := &b.rows[i]
				switch {
				case q.Newest && e.number > number, !q.Newest && e.number < number,
					e.time < from, e.time >= to, !kinds[e.kind], q.Path != "" && b.paths[e.path] != q.Path:
					continue
				}
				if !yield(b.event(e)) {
					return nil
				}
				if left--; left == 0 {
					return nil
				}
			}
			number = next
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if len(list) < blocksAtOnce {
			return nil
		}
	}
	return nil
}

// eventsDamaged is what the log says of a block that cannot be read.
const eventsDamaged = "events cannot be read and are left out"

// wanted says which kinds of events of a block are asked for; nil = none, or it
// has nothing of the path.
func (b *block) wanted(q store.EventQuery, outcomes map[store.Outcome]bool) []bool {
	if q.Path != "" {
		if _, ok := slices.BinarySearch(b.paths, q.Path); !ok {
			return nil
		}
	}
	wanted, some := make([]bool, len(b.kinds)), false
	for i := range b.kinds {
		k := &b.kinds[i]
		wanted[i] = (q.Bot == "" || k.bot == q.Bot) && (q.Protocol == "" || k.protocol == q.Protocol) &&
			(q.Endpoint == "" || k.endpoint == string(q.Endpoint)) && (len(outcomes) == 0 || outcomes[store.OutcomeOf(k.status)])
		some = some || wanted[i]
	}
	if !some {
		return nil
	}
	return wanted
}

// usageSite gives the number of a site, 0 if there is none: of it nobody has
// asked for anything.
func (s *Store) usageSite(ctx context.Context, name string) (id int64, err error) {
	if err = s.read.row(ctx, "SELECT id FROM site WHERE name = ?", []any{name}, &id); absent(err) {
		err = nil
	}
	return id, err
}

// Sums implements [store.Usage].
func (s *Store) Sums(ctx context.Context, site string, q store.SumQuery) iter.Seq2[store.Sum, error] {
	return func(yield func(store.Sum, error) bool) {
		if err := s.sums(ctx, site, q, func(e store.Sum) bool { return yield(e, nil) }); err != nil {
			yield(store.Sum{}, explain("sums of "+site, err))
		}
	}
}

// period is one hour or day of sums, and what is to be added to it.
type period struct {
	start int64 // hours since 1970
	per   int   // hours
	data  []byte
	more  []*sumRow
}

// periodsAtOnce is how many periods are read that agree with each other.
const periodsAtOnce = 32

func (s *Store) sums(ctx context.Context, site string, q store.SumQuery, yield func(store.Sum) bool) error {
	per := 1
	switch q.Per {
	case store.Hour:
	case store.Day, 0:
		per = dayHours
	default:
		return fmt.Errorf("%w: sums are of an hour or a day", millrace.ErrInvalid)
	}
	id, err := s.usageSite(ctx, site)
	if err != nil || id == 0 {
		return err
	}
	first, end := span(q.From, q.To, hourMillis)
	var buffer []byte
	var sum sums
	for more := true; more; {
		var list []period
		if list, first, err = s.periods(ctx, id, per, first, end); err != nil {
			return err
		}
		more = first < end
		for i := range list {
			p := &list[i]
			buffer, err = sum.decode(&s.coder, p.data, buffer)
			if !s.passed(ctx, id, err, "sums cannot be read and are left out", "hours since 1970", p.start, "hours", p.per) && err != nil {
				return err
			}
			if len(p.more) > 0 {
				for _, r := range p.more {
					sum.add(r)
				}
				sum.sort()
			}
			for j := range sum.rows {
				if !yield(sum.rows[j].sum(p)) {
					return nil
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sum gives a row as the sum of a period.
func (r *sumRow) sum(p *period) store.Sum {
	return store.Sum{
		Start: time.UnixMilli(p.start * hourMillis).UTC(), Per: store.Period(p.per) * store.Hour,
		Bot: r.bot, Family: r.family, Verdict: store.Verdict(r.verdict), Protocol: r.protocol, Endpoint: store.Endpoint(r.endpoint),
		Outcome: store.Outcome(r.outcome), Counts: r.Counts,
	}
}

const (
	daySums  = "SELECT start, per, data FROM usage_sum WHERE site = ?1 AND per = 24 AND start >= ?2 AND start < ?3 ORDER BY start LIMIT ?4"
	hourSums = `SELECT start, per, data FROM usage_sum WHERE site = ?1 AND per = 1 AND start >= ?2 AND start < ?3
		UNION ALL SELECT start, per, data FROM usage_sum WHERE site = ?1 AND per = 24 AND hours = 0 AND start >= ?2 AND start < ?3
		ORDER BY start LIMIT ?4`
)

// periods reads some periods between two hours, the earliest first, and gives
// the hour to go on from.
func (s *Store) periods(ctx context.Context, id int64, per int, first, end int64) (list []period, next int64, err error) {
	err = s.read.snapshot(ctx, func(q querier) error {
		query := daySums
		if per == 1 {
			query = hourSums
		}
		err := q.rows(query, []any{id, first, end, periodsAtOnce}, func(scan scanner) error {
			var p period
			err := scan(&p.start, &p.per, &p.data)
			list = append(list, p)
			return err
		})
		if err != nil {
			return err
		}
		next = end
		if len(list) == periodsAtOnce {
			next = list[len(list)-1].start + 1
		}
		a := &usageTotals{hours: make(map[int64]map[sumKind]*sumRow)}
		if err := s.pending(ctx, q, id, a, first, next); err != nil || len(a.hours) == 0 {
			return err
		}
		return s.addPending(q, id, per, a, first, next, &list)
	})
	return list, next, err
}

// pending adds the events that are in no sum yet, of the days of two hours.
func (s *Store) pending(ctx context.Context, q querier, id int64, a *usageTotals, first, end int64) error {
	next, summed, err := usageState(q, id)
	if err != nil || next == summed {
		return err
	}
	earliest, latest := int64(minTime), int64(maxTime)
	if first > minTime/hourMillis {
		earliest = floorDiv(first, dayHours) * dayMillis
	}
	if end < maxTime/hourMillis {
		latest = (floorDiv(end, dayHours) + 1) * dayMillis
	}
	return blocksFrom(q, id, summed, earliest, latest, func(b *packed) error {
		err := a.add(&s.coder, b, summed)
		if s.passed(ctx, id, err, eventsDamaged, "first", b.first, "last", b.last) {
			return nil
		}
		return err
	})
}

// addPending adds what is in no sum yet to the periods of it, from first to
// before end.
func (s *Store) addPending(q querier, id int64, per int, a *usageTotals, first, end int64, list *[]period) error {
	at := make(map[int64]int)
	for i := range *list {
		at[(*list)[i].start] = i
	}
	inDays := make(map[int64]bool) // a day of which no hours are kept
	for _, h := range sortedHours(a.hours) {
		day := floorDiv(h, dayHours) * dayHours
		whole, ok := inDays[day]
		if !ok {
			hours := 1
			err := q.row("SELECT hours FROM usage_sum WHERE site = ? AND per = 24 AND start = ?", []any{id, day}, &hours)
			if err != nil && !absent(err) {
				return err
			}
			whole = per == dayHours || hours == 0
			inDays[day] = whole
		}
		start, of := h, 1
		if whole {
			start, of = day, dayHours
		}
		if start < first || start >= end {
			continue
		}
		i, ok := at[start]
		if !ok {
			i = len(*list)
			at[start] = i
			*list = append(*list, period{start: start, per: of})
		}
		(*list)[i].more = append((*list)[i].more, sortedSums(a.hours[h])...)
	}
	slices.SortFunc(*list, func(a, b period) int { return int(a.start - b.start) })
	return nil
}

func sortedHours(m map[int64]map[sumKind]*sumRow) []int64 {
	hours := make([]int64, 0, len(m))
	for h := range m {
		hours = append(hours, h)
	}
	slices.Sort(hours)
	return hours
}

// Top implements [store.Usage].
func (s *Store) Top(ctx context.Context, site string, of store.Topic, from, to time.Time, limit int) ([]store.TopItem, error) {
	what := fmt.Sprintf("most asked %s of %s", of, site)
	topic := slices.Index(topics[:], of)
	if topic < 1 {
		return nil, fmt.Errorf("%s: %w: there is no such topic", what, millrace.ErrInvalid)
	}
	id, err := s.usageSite(ctx, site)
	if err != nil || id == 0 {
		return nil, explain(what, err)
	}
	first, end := span(from, to, dayMillis)
	var all topCounter
	err = s.read.snapshot(ctx, func(q querier) error {
		err := q.rows("SELECT day, data FROM usage_top WHERE site = ? AND topic = ? AND day >= ? AND day < ?",
			[]any{id, topic, first, end}, func(scan scanner) error {
				var day int64
				var data []byte
				if err := scan(&day, &data); err != nil {
					return err
				}
				rows, err := decodeTops(&s.coder, data, day*dayMillis)
				if !s.passed(ctx, id, err, "what was asked for most cannot be read and is left out", "days since 1970", day, "topic", string(of)) && err != nil {
					return err
				}
				all.add(rows)
				return ctx.Err()
			})
		if err != nil {
			return err
		}
		a := &usageTotals{tops: make(map[topDay][]tops), only: topic}
		if err := s.pending(ctx, q, id, a, first*dayHours, end*dayHours); err != nil {
			return err
		}
		for d, more := range a.tops {
			if d.day < first || d.day >= end {
				continue
			}
			for _, rows := range more {
				all.add(rows)
			}
		}
		return nil
	})
	if err != nil {
		return nil, explain(what, err)
	}
	if limit <= 0 {
		limit = len(all.rows)
	}
	items := make([]store.TopItem, 0, min(limit, len(all.rows)))
	for _, r := range all.rows.most(limit) {
		items = append(items, store.TopItem{Name: r.name, Events: r.events, Empty: r.empty, Bytes: r.bytes, Last: time.UnixMilli(r.last).UTC()})
	}
	return items, nil
}
