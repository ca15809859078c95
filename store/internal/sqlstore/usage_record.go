package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// maxSums is the maximum number of sums in a period. Further kinds of events are counted under the
// bot "other".
const maxSums = 4096

// recording is one call of [Store.Record].
type recording struct {
	Tx
	dropped int64 // value of usage.dropped
	texts   *usageTexts
	kinds   map[usageKind]int64 // IDs of kinds
	site    int64
	today   int64                              // days since 1970
	sums    map[period]map[int64]*store.Counts // sums by period and ID of the kind
	tops    map[topKey]*store.TopItem
	hours   map[int64]*[2]int64 // lowest and highest event number of each hour
}

// period is one hour or day of sums.
type period struct{ per, start int64 } // in hours

type topKey struct{ topic, day, text int64 }

// Record implements [store.Usage].
func (s *Store) Record(ctx context.Context, site string, events []store.Event) error {
	events = slices.Clone(events)
	for i := range events {
		events[i] = record.Event(events[i])
	}
	id, _, err := usageSite(s.db.Reader(ctx), site)
	if err != nil || len(events) == 0 {
		return wrap("record events of "+site, err)
	}
	var r *recording
	err = s.db.Write(ctx, Lock{LockUsage, id}, func(t Tx) error {
		var next, dropped int64
		if err := t.Row("SELECT next, dropped FROM usage WHERE site = ?", []any{id}, &next, &dropped); err != nil {
			return err
		}
		if next+int64(len(events)) > forever {
			return fmt.Errorf("%w: no event number left", millrace.ErrTooLarge)
		}
		now, err := s.clock(t)
		if err != nil {
			return err
		}
		r = &recording{
			Tx: t, dropped: dropped, texts: s.texts.Swap(nil), kinds: make(map[usageKind]int64), site: id, today: floorDiv(now.UnixMilli(), dayMillis),
			sums: make(map[period]map[int64]*store.Counts), tops: make(map[topKey]*store.TopItem), hours: make(map[int64]*[2]int64),
		}
		if err := r.events(events, next); err != nil {
			return err
		}
		if err := r.keepSums(); err != nil {
			return err
		}
		if err := r.keepTops(); err != nil {
			return err
		}
		return t.Exec("UPDATE usage SET next = ? WHERE site = ?", next+int64(len(events)), id)
	})
	if err == nil {
		s.texts.Store(r.texts)
	}
	return wrap("record events of "+site, err)
}

// events inserts events and counts them.
func (r *recording) events(events []store.Event, number int64) error {
	texts, err := r.textIDs(events)
	if err != nil {
		return err
	}
	kinds := make([]usageKind, len(events))
	for i := range events {
		e := &events[i]
		kinds[i] = usageKind{e.Bot, e.Family, string(e.Identity), e.Protocol, string(e.Endpoint), string(store.OutcomeOf(e.Status))}
	}
	// All transactions add kinds in the same order, which prevents deadlocks.
	for _, k := range slices.SortedFunc(slices.Values(kinds), usageKind.compare) {
		if _, err := r.kind(k); err != nil {
			return err
		}
	}
	args := make([]any, 0, 14*len(events))
	for i := range events {
		e := &events[i]
		kind := r.kinds[kinds[i]]
		ms := e.Time.UnixMilli()
		args = append(args, r.site<<logBits|number, ms, kind, e.Status, e.Cached, texts[e.Path], texts[e.Query], texts[e.Intent],
			e.Results, e.Bytes, e.Size, e.HTML, e.Received, e.Took.Microseconds())
		hour := floorDiv(ms, hourMillis)
		r.sum(period{1, hour}, kind, e)
		r.sum(period{dayHours, floorDiv(hour, dayHours) * dayHours}, kind, e)
		r.top(texts, ms, e)
		if h := r.hours[hour]; h != nil {
			h[1] = number
		} else {
			r.hours[hour] = &[2]int64{number, number}
		}
		number++
	}
	return r.Insert("usage_event (id, time, kind, status, cached, path, query, intent, results, bytes, size, html, received, took)", "", 14, args)
}

// kind returns the ID of a kind, and adds the kind if it is new. A transaction of another site may
// add the same kind at the same time.
func (r *recording) kind(k usageKind) (id int64, err error) {
	id, ok := r.kinds[k]
	if ok {
		return id, nil
	}
	args := []any{k.bot, k.family, k.identity, k.protocol, k.endpoint, k.outcome}
	const read = "SELECT id FROM usage_kind WHERE bot = ? AND family = ? AND identity = ? AND protocol = ? AND endpoint = ? AND outcome = ?"
	if err = r.Row(read, args, &id); absent(err) {
		err = r.Exec(`INSERT INTO usage_kind (bot, family, identity, protocol, endpoint, outcome) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (bot, family, identity, protocol, endpoint, outcome) DO NOTHING`, args...)
		if err == nil {
			err = r.Row(read, args, &id)
		}
	}
	r.kinds[k] = id
	return id, err
}

// textIDs returns the IDs of the texts of events, and adds new texts.
func (r *recording) textIDs(events []store.Event) (map[string]int64, error) {
	days := make(map[string]int64) // day of the last use of each text, at least today
	for i := range events {
		day := max(floorDiv(events[i].Time.UnixMilli(), dayMillis), r.today)
		for _, s := range []string{events[i].Path, events[i].Query, events[i].Intent} {
			if old, ok := days[s]; s != "" && (!ok || day > old) {
				days[s] = day
			}
		}
	}
	if c := r.texts; c == nil || c.site != r.site || c.today != r.today || c.dropped != r.dropped || len(c.ids) > mostTexts {
		r.texts = &usageTexts{r.site, r.today, r.dropped, make(map[string]int64)}
	}
	ids := map[string]int64{"": 0}
	for s, day := range days {
		if id, ok := r.texts.ids[s]; ok && day == r.today {
			ids[s] = id
			delete(days, s)
		}
	}
	var older []any // IDs of texts whose last use has changed
	list := slices.Sorted(maps.Keys(days))
	err := r.Rows("SELECT id, text, coalesce(used, 4611686018427387904) FROM usage_text WHERE site = ? AND text = ANY(?)", []any{r.site, list},
		func(scan Scanner) error {
			var id, used int64
			var s string
			err := scan(&id, &s, &used)
			if ids[s] = id; used < days[s] {
				older = append(older, days[s], id)
			}
			return err
		})
	if err != nil {
		return nil, err
	}
	for ; len(older) > 0; older = older[2:] {
		if err := r.Exec("UPDATE usage_text SET used = ? WHERE id = ?", older[:2]...); err != nil {
			return nil, err
		}
	}
	added := slices.DeleteFunc(slices.Clone(list), func(s string) bool { _, ok := ids[s]; return ok })
	unused, err := r.IDs("usage_text", len(added))
	if err != nil {
		return nil, err
	}
	var args []any
	for i, s := range added {
		ids[s] = unused[i]
		args = append(args, ids[s], r.site, s, days[s])
	}
	for _, s := range list {
		r.texts.ids[strings.Clone(s)] = ids[s]
	}
	return ids, r.Insert("usage_text (id, site, text, used)", "", 4, args)
}

// sum counts an event in a period.
func (r *recording) sum(p period, kind int64, e *store.Event) {
	if r.sums[p] == nil {
		r.sums[p] = make(map[int64]*store.Counts)
	}
	c := r.sums[p][kind]
	if c == nil {
		c = new(store.Counts)
		r.sums[p][kind] = c
	}
	record.AddCounts(c, record.Count(e))
}

// counters are the summed columns of usage_sum, in the order of record.Numbers.
var counters = []string{"took", "events", "cached", "results", "bytes", "size", "html", "received", "html_known", "wired"}

// adding returns the clause of an INSERT that adds the new values to the columns of an existing
// row.
func adding(table, key string, columns ...string) string {
	var set []string
	for _, c := range columns {
		set = append(set, fmt.Sprintf("%s = CASE WHEN %[2]s.%[1]s > 9223372036854775807 - excluded.%[1]s THEN 9223372036854775807 ELSE %[2]s.%[1]s + excluded.%[1]s END", c, table))
	}
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(set, ", ")
}

var (
	insertSums = "usage_sum (site, per, start, kind, " + strings.Join(counters, ", ") + ")"
	addSums    = adding("usage_sum", "site, per, start, kind", counters...)
	addTops    = adding("usage_top", "site, topic, day, text", "events", "empty", "bytes") +
		", last = CASE WHEN usage_top.last < excluded.last THEN excluded.last ELSE usage_top.last END"
)

// keepSums adds to the sums of days, and to the sums of hours if they still exist.
func (r *recording) keepSums() error {
	for _, h := range slices.Sorted(maps.Keys(r.hours)) {
		err := r.Exec(`INSERT INTO usage_hour (site, hour, first, last) VALUES (?, ?, ?, ?)
			ON CONFLICT (site, hour) DO UPDATE SET first = CASE WHEN excluded.first < usage_hour.first THEN excluded.first ELSE usage_hour.first END,
			last = CASE WHEN excluded.last > usage_hour.last THEN excluded.last ELSE usage_hour.last END`, r.site, h, r.hours[h][0], r.hours[h][1])
		if err != nil {
			return err
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(r.sums), func(a, b period) int { return cmp.Or(cmp.Compare(a.per, b.per), cmp.Compare(a.start, b.start)) }) {
		var hours int64
		err := r.Row("INSERT INTO usage_day (site, day, hours, cut) VALUES (?, ?, 1, 0) ON CONFLICT (site, day) DO UPDATE SET cut = 0 RETURNING hours",
			[]any{r.site, floorDiv(p.start, dayHours)}, &hours)
		if err == nil && (p.per == dayHours || hours == 1) {
			err = r.keepSum(p, r.sums[p])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keepSum adds to the stored sums of a period.
func (r *recording) keepSum(p period, sums map[int64]*store.Counts) error {
	if err := r.limit(p, sums); err != nil {
		return err
	}
	var args []any
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		args = append(args, r.site, p.per, p.start, kind)
		for i, n := range record.Numbers(sums[kind]) {
			if i == 0 {
				*n /= int64(time.Microsecond)
			}
			args = append(args, *n)
		}
	}
	return r.Insert(insertSums, addSums, 4+len(counters), args)
}

// limit counts sums beyond maxSums in a period under the bot "other".
func (r *recording) limit(p period, sums map[int64]*store.Counts) error {
	const of = "FROM usage_sum WHERE site = ? AND per = ? AND start = ?"
	where := []any{r.site, p.per, p.start}
	var n int
	if err := r.Row("SELECT count(*) "+of, where, &n); err != nil || n+len(sums) <= maxSums {
		return err
	}
	known, err := column[int64](r, "SELECT kind "+of, where...)
	if err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		if slices.Contains(known, kind) {
			continue
		}
		if n++; n <= maxSums {
			continue
		}
		k := usageKind{bot: "other"}
		if err := r.Row("SELECT protocol, endpoint, outcome FROM usage_kind WHERE id = ?", []any{kind}, &k.protocol, &k.endpoint, &k.outcome); err != nil {
			return err
		}
		other, err := r.kind(k)
		if err != nil {
			return err
		}
		if other == kind {
			continue
		}
		if sums[other] == nil {
			sums[other] = new(store.Counts)
		}
		record.AddCounts(sums[other], *sums[kind])
		delete(sums, kind)
	}
	return nil
}

// top counts the item of an event.
func (r *recording) top(texts map[string]int64, ms int64, e *store.Event) {
	of, item := record.TopicOf(e)
	topic := int64(slices.Index(topics[:], of))
	if topic < 1 {
		return
	}
	key := topKey{topic, floorDiv(ms, dayMillis), texts[item.Name]}
	if r.tops[key] == nil {
		r.tops[key] = new(store.TopItem)
	}
	record.AddItem(r.tops[key], item)
}

func (r *recording) keepTops() error {
	keys := slices.SortedFunc(maps.Keys(r.tops), func(a, b topKey) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.day, b.day), cmp.Compare(a.text, b.text))
	})
	args := make([]any, 0, 8*len(keys))
	for _, k := range keys {
		c := r.tops[k]
		args = append(args, r.site, k.topic, k.day, k.text, c.Events, c.Empty, c.Bytes, c.Last.UnixMilli()-k.day*dayMillis)
	}
	return r.Insert("usage_top (site, topic, day, text, events, empty, bytes, last)", addTops, 8, args)
}
