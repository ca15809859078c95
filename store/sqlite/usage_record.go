package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// maxSums is the maximum number of kinds of events in a period. Further events are counted
// under the bot "other".
const maxSums = 4096

// recording is one call of [Store.Record].
type recording struct {
	*tx
	texts *usageTexts
	kinds map[usageKind]int64 // kind to its ID
	site  int64
	today int64                              // days since 1970
	sums  map[period]map[int64]*store.Counts // sums by period and ID of the kind
	tops  map[topKey]*store.TopItem
	hours map[int64]*[2]int64 // hour to the lowest and highest number of its events
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
	var r *recording
	err := s.writer.do(ctx, func(t *tx) error {
		id, next, err := usageSite(t, site)
		if err != nil || len(events) == 0 {
			return err
		}
		if next+int64(len(events)) > forever {
			return fmt.Errorf("%w: no event number left", millrace.ErrTooLarge)
		}
		r = &recording{
			tx: t, texts: s.texts.Swap(nil), kinds: make(map[usageKind]int64), site: id, today: floorDiv(s.now().UnixMilli(), dayMillis),
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
		return t.exec("INSERT INTO usage (site, next) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET next = ?2", id, next+int64(len(events)))
	})
	if err == nil && r != nil {
		s.texts.Store(r.texts)
	}
	return explain("record events of "+site, err)
}

// events inserts events and counts them.
func (r *recording) events(events []store.Event, number int64) error {
	texts, err := r.textIDs(events)
	if err != nil {
		return err
	}
	args := make([]any, 0, 14*len(events))
	for i := range events {
		e := &events[i]
		kind, err := r.kind(usageKind{e.Bot, e.Family, e.Identity, e.Protocol, e.Endpoint, store.OutcomeOf(e.Status)})
		if err != nil {
			return err
		}
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
	return r.bulk("INSERT INTO usage_event VALUES ", "", 14, args)
}

// bulk inserts rows of width columns each.
func (t *tx) bulk(insert, conflict string, width int, args []any) error {
	for len(args) > 0 {
		n := chunkOf(len(args) / width)
		row := "(?" + strings.Repeat(",?", width-1) + ")"
		if err := t.exec(insert+row+strings.Repeat(","+row, n-1)+conflict, args[:n*width]...); err != nil {
			return err
		}
		args = args[n*width:]
	}
	return nil
}

// chunkOf returns the number of rows per statement. It is a power of two, so that the number
// of different statements is small.
func chunkOf(n int) int { return min(1<<(bits.Len(uint(n))-1), 64) }

// kind returns the ID of a kind, and adds it if it is new.
func (r *recording) kind(k usageKind) (int64, error) {
	id, ok := r.kinds[k]
	if ok {
		return id, nil
	}
	args := []any{k.bot, k.family, k.identity, k.protocol, k.endpoint, k.outcome}
	err := r.row("SELECT id FROM usage_kind WHERE bot = ? AND family = ? AND identity = ? AND protocol = ? AND endpoint = ? AND outcome = ?", args, &id)
	if absent(err) {
		err = r.row("INSERT INTO usage_kind (bot, family, identity, protocol, endpoint, outcome) VALUES (?, ?, ?, ?, ?, ?) RETURNING id", args, &id)
	}
	r.kinds[k] = id
	return id, err
}

// textIDs returns the IDs of the texts of events, and adds new texts.
func (r *recording) textIDs(events []store.Event) (map[string]int64, error) {
	days := make(map[string]int64) // last use of each text, at least today
	for i := range events {
		day := max(floorDiv(events[i].Time.UnixMilli(), dayMillis), r.today)
		for _, s := range []string{events[i].Path, events[i].Query, events[i].Intent} {
			if old, ok := days[s]; s != "" && (!ok || day > old) {
				days[s] = day
			}
		}
	}
	var dropped int64
	if err := r.row("SELECT coalesce((SELECT dropped FROM usage WHERE site = ?), 0)", []any{r.site}, &dropped); err != nil {
		return nil, err
	}
	if c := r.texts; c == nil || c.site != r.site || c.today != r.today || c.dropped != dropped || len(c.ids) > mostTexts {
		r.texts = &usageTexts{r.site, r.today, dropped, make(map[string]int64)}
	}
	ids := map[string]int64{"": 0}
	for s, day := range days {
		if id, ok := r.texts.ids[s]; ok && day == r.today {
			ids[s] = id
			delete(days, s)
		}
	}
	var older []any // IDs of texts with a newer use
	list := slices.Sorted(maps.Keys(days))
	for left := list; len(left) > 0; {
		n := chunkOf(len(left))
		args := []any{r.site}
		for _, s := range left[:n] {
			args = append(args, s)
		}
		err := r.rows("SELECT id, text, ifnull(used, 1 << 62) FROM usage_text WHERE site = ? AND text IN (?"+strings.Repeat(",?", n-1)+")", args,
			func(scan scanner) error {
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
		left = left[n:]
	}
	for ; len(older) > 0; older = older[2:] {
		if err := r.exec("UPDATE usage_text SET used = ? WHERE id = ?", older[:2]...); err != nil {
			return nil, err
		}
	}
	var next int64
	if err := r.row("SELECT max(id) FROM usage_text", nil, &next); err != nil {
		return nil, err
	}
	var args []any
	for _, s := range list {
		if _, ok := ids[s]; !ok {
			next++
			ids[s] = next
			args = append(args, next, r.site, s, days[s])
		}
		r.texts.ids[strings.Clone(s)] = ids[s]
	}
	return ids, r.bulk("INSERT INTO usage_text VALUES ", "", 4, args)
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

// adding returns the end of an INSERT that adds to an existing row.
func adding(columns ...string) string {
	for i, c := range columns {
		columns[i] = fmt.Sprintf("%s = min(%[1]s, 9223372036854775807 - excluded.%[1]s) + excluded.%[1]s", c)
	}
	return " ON CONFLICT DO UPDATE SET " + strings.Join(columns, ", ")
}

var (
	insertSums = "INSERT INTO usage_sum (site, per, start, kind, " + strings.Join(counters, ", ") + ") VALUES "
	addSums    = adding(slices.Clone(counters)...)
	addTops    = adding("events", "empty", "bytes") + ", last = max(last, excluded.last)"
)

// keepSums adds to the sums of days, and to the sums of hours if they still exist.
func (r *recording) keepSums() error {
	for _, h := range slices.Sorted(maps.Keys(r.hours)) {
		err := r.exec(`INSERT INTO usage_hour (site, hour, first, last) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)`, r.site, h, r.hours[h][0], r.hours[h][1])
		if err != nil {
			return err
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(r.sums), func(a, b period) int { return cmp.Or(cmp.Compare(a.per, b.per), cmp.Compare(a.start, b.start)) }) {
		var hours int64
		err := r.row("INSERT INTO usage_day (site, day, hours, cut) VALUES (?, ?, 1, 0) ON CONFLICT DO UPDATE SET cut = 0 RETURNING hours",
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

// keepSum adds to the sums of a period.
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
	return r.bulk(insertSums, addSums, 4+len(counters), args)
}

// limit moves sums above maxSums per period to the bot "other".
func (r *recording) limit(p period, sums map[int64]*store.Counts) error {
	const of = "FROM usage_sum WHERE site = ? AND per = ? AND start = ?"
	where := []any{r.site, p.per, p.start}
	var n int
	if err := r.row("SELECT count(*) "+of, where, &n); err != nil || n+len(sums) <= maxSums {
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
		if err := r.row("SELECT protocol, endpoint, outcome FROM usage_kind WHERE id = ?", []any{kind}, &k.protocol, &k.endpoint, &k.outcome); err != nil {
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

// top counts the items of an event.
func (r *recording) top(texts map[string]int64, ms int64, e *store.Event) {
	of, item := record.Asked(e)
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
	return r.bulk("INSERT INTO usage_top VALUES ", addTops, 8, args)
}
