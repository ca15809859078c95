package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

const (
	// eventsAtOnce is the maximum number of events that one statement reads.
	eventsAtOnce = 1000
	// numbersAtOnce is the maximum number of event numbers that one statement searches.
	numbersAtOnce = 1 << 17
)

// Events implements [store.Usage].
func (s *Store) Events(ctx context.Context, site string, q store.EventQuery) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		err := s.events(ctx, site, q, func(e store.Event) bool { return yield(e, nil) })
		if err != nil && !errors.Is(err, millrace.ErrNotFound) {
			yield(store.Event{}, wrap("events of "+site, err))
		}
	}
}

func (s *Store) events(ctx context.Context, site string, q store.EventQuery, yield func(store.Event) bool) error {
	r := s.db.Reader(ctx)
	id, next, err := usageSite(r, site)
	if err != nil {
		return err
	}
	from, to := millis(q.From, minTime), millis(q.To, maxTime)
	low, high, err := numbers(r, id, from, to)
	if err != nil {
		return err
	}
	high = min(high, next-1)
	switch {
	case !q.Newest:
		low = max(low, int64(min(q.After, forever))+1)
	case q.After > 0:
		high = min(high, int64(min(q.After, forever))-1)
	}
	where, args := filter(id, q)
	order := ""
	if q.Newest {
		order = " DESC"
	}
	left := q.Limit
	if left <= 0 {
		left = math.MaxInt
	}
	for low <= high && left > 0 {
		first, last, limit := low, min(high, low+numbersAtOnce-1), min(left, eventsAtOnce)
		if q.Newest {
			first, last = max(low, high-numbersAtOnce+1), high
		}
		var list []store.Event
		err := r.Rows(`SELECT e.id, time, bot, family, identity, protocol, endpoint, status, cached, p.text, q.text, i.text, results, bytes, size, html, received, took
			FROM usage_event e CROSS JOIN usage_kind k CROSS JOIN usage_text p CROSS JOIN usage_text q CROSS JOIN usage_text i
			WHERE k.id = e.kind AND p.id = e.path AND q.id = e.query AND i.id = e.intent AND e.id BETWEEN ? AND ? AND time >= ? AND time < ?`+where+" ORDER BY e.id"+order+" LIMIT ?",
			slices.Concat([]any{id<<logBits | first, id<<logBits | last, from, to}, args, []any{limit}), func(scan Scanner) error {
				var e store.Event
				var number, ms, took int64
				err := scan(&number, &ms, &e.Bot, &e.Family, &e.Identity, &e.Protocol, &e.Endpoint, &e.Status, &e.Cached, &e.Path, &e.Query, &e.Intent,
					&e.Results, &e.Bytes, &e.Size, &e.HTML, &e.Received, &took)
				e.Number, e.Time, e.Took = uint64(number&forever), time.UnixMilli(ms).UTC(), time.Duration(took)*time.Microsecond
				list = append(list, e)
				return err
			})
		if err != nil {
			return err
		}
		for _, e := range list {
			if !yield(e) {
				return nil
			}
		}
		if left -= len(list); len(list) == limit {
			first, last = int64(list[limit-1].Number), int64(list[limit-1].Number)
		}
		if q.Newest {
			high = first - 1
		} else {
			low = last + 1
		}
	}
	return nil
}

// numbers returns bounds of the numbers of a site's events between two times, in Unix ms. If there
// are no events, low exceeds high.
func numbers(q Querier, site, from, to int64) (low, high int64, err error) {
	var first, last, least *int64
	err = q.Row(`SELECT (SELECT min(first) FROM usage_hour WHERE site = ?1 AND hour >= ?2), (SELECT max(last) FROM usage_hour WHERE site = ?1 AND hour <= ?3),
		(SELECT min(id) FROM usage_event WHERE id BETWEEN ?4 AND ?5)`,
		[]any{site, floorDiv(from, hourMillis), floorDiv(to-1, hourMillis), site << logBits, site<<logBits | forever}, &first, &last, &least)
	if err != nil || first == nil || last == nil || least == nil {
		return 1, 0, err
	}
	return max(*first, *least&forever), *last, nil
}

// filter returns the SQL conditions of a query, except those for numbers and times.
func filter(site int64, q store.EventQuery) (where string, args []any) {
	if q.Path != "" {
		where, args = " AND e.path = (SELECT id FROM usage_text WHERE site = ? AND text = ?)", []any{site, q.Path}
	}
	for _, c := range []struct{ column, value string }{{"bot", q.Bot}, {"protocol", q.Protocol}, {"endpoint", string(q.Endpoint)}} {
		if c.value != "" {
			where, args = where+" AND "+c.column+" = ?", append(args, c.value)
		}
	}
	if n := len(q.Outcomes); n > 0 {
		where += " AND outcome IN (?" + strings.Repeat(",?", n-1) + ")"
		for _, o := range q.Outcomes {
			args = append(args, o)
		}
	}
	return where, args
}

// Sums implements [store.Usage].
func (s *Store) Sums(ctx context.Context, site string, q store.SumQuery) iter.Seq2[store.Sum, error] {
	return func(yield func(store.Sum, error) bool) {
		err := s.sums(ctx, site, q, func(e store.Sum) bool { return yield(e, nil) })
		if err != nil && !errors.Is(err, millrace.ErrNotFound) {
			yield(store.Sum{}, wrap("sums of "+site, err))
		}
	}
}

// selectSums reads the sums of one day, by hour if requested and available.
var selectSums = "SELECT per, start, bot, family, identity, protocol, endpoint, outcome, " + strings.Join(counters, ", ") + `
	FROM usage_day CROSS JOIN usage_sum CROSS JOIN usage_kind
	WHERE usage_kind.id = kind AND usage_day.site = ?1 AND day = ?2 AND usage_sum.site = ?1 AND per = CASE WHEN hours = 1 THEN ?3 ELSE 24 END
		AND start >= ?4 AND start < ?5
	ORDER BY start, bot, protocol, endpoint, outcome, identity, family`

func (s *Store) sums(ctx context.Context, site string, q store.SumQuery, yield func(store.Sum) bool) error {
	per := cmp.Or(q.Per, store.Day)
	if per != store.Day && per != store.Hour {
		return fmt.Errorf("%w: unknown period; use an hour or a day", millrace.ErrInvalid)
	}
	r := s.db.Reader(ctx)
	id, _, err := usageSite(r, site)
	if err != nil {
		return err
	}
	first, end := span(q.From, q.To, hourMillis)
	days, err := column[int64](r, "SELECT day FROM usage_day WHERE site = ? AND day BETWEEN ? AND ? ORDER BY day", id, floorDiv(first, dayHours), floorDiv(end, dayHours))
	if err != nil {
		return err
	}
	for _, day := range days {
		var list []store.Sum
		err := r.Rows(selectSums, []any{id, day, int64(per / store.Hour), max(first, day*dayHours), min(end, (day+1)*dayHours)}, func(scan Scanner) error {
			var e store.Sum
			var start int64
			n := record.Numbers(&e.Counts)
			err := scan(&e.Per, &start, &e.Bot, &e.Family, &e.Identity, &e.Protocol, &e.Endpoint, &e.Outcome,
				n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9])
			e.Per, e.Start = e.Per*store.Hour, time.UnixMilli(start*hourMillis).UTC()
			*n[0] = min(*n[0], math.MaxInt64/1000) * 1000
			list = append(list, e)
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range list {
			if !yield(e) {
				return nil
			}
		}
	}
	return nil
}

// selectTop adds up the items of several days. Each sum is limited to the maximum int64.
const selectTop = `SELECT text, events, empty, bytes, last FROM (
	SELECT text AS id, CAST(sum(events) AS BIGINT) AS events, CAST(sum(empty) AS BIGINT) AS empty,
		CASE WHEN sum(bytes * 1.0) < 9223372036854775807 THEN CAST(sum(bytes * 1.0) AS BIGINT) ELSE 9223372036854775807 END AS bytes, max(day * 86400000 + last) AS last
	FROM usage_top WHERE site = ? AND topic = ? AND day >= ? AND day < ? GROUP BY text ORDER BY 2 DESC, 5 DESC LIMIT ?
) AS most JOIN usage_text USING (id) ORDER BY events DESC, last DESC, text`

// Top implements [store.Usage].
func (s *Store) Top(ctx context.Context, site string, of store.Topic, from, to time.Time, limit int) ([]store.TopItem, error) {
	what := fmt.Sprintf("most requested %s of %s", of, site)
	topic := slices.Index(topics[:], of)
	if topic < 1 {
		return nil, fmt.Errorf("%s: %w: unknown topic", what, millrace.ErrInvalid)
	}
	r := s.db.Reader(ctx)
	id, _, err := usageSite(r, site)
	if errors.Is(err, millrace.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, wrap(what, err)
	}
	if limit <= 0 {
		limit = math.MaxInt
	}
	first, end := span(from, to, dayMillis)
	var items []store.TopItem
	err = r.Rows(selectTop, []any{id, topic, first, end, limit}, func(scan Scanner) error {
		var item store.TopItem
		var last int64
		err := scan(&item.Name, &item.Events, &item.Empty, &item.Bytes, &last)
		item.Last = time.UnixMilli(last).UTC()
		items = append(items, item)
		return err
	})
	return items, wrap(what, err)
}
