package sqlstore

import (
	"cmp"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// usageKind is a row of usage_kind.
type usageKind struct {
	bot, family, identity, protocol, endpoint, outcome string
}

func (k usageKind) compare(o usageKind) int {
	return cmp.Or(cmp.Compare(k.bot, o.bot), cmp.Compare(k.family, o.family), cmp.Compare(k.identity, o.identity),
		cmp.Compare(k.protocol, o.protocol), cmp.Compare(k.endpoint, o.endpoint), cmp.Compare(k.outcome, o.outcome))
}

// usageTexts caches the IDs of the texts that the events of a site have used today.
type usageTexts struct {
	site, today, dropped int64
	ids                  map[string]int64
}

// mostTexts is the number of texts above which the next Record clears the cache.
const mostTexts = 1 << 14

// topics lists the topics by their number in the store. The numbers start at 1.
var topics = [...]store.Topic{"", store.TopPages, store.TopQueries, store.TopMissing}

// usageSite returns the ID of a site and the number of its next event.
func usageSite(q Querier, name string) (id, next int64, err error) {
	err = q.Row("SELECT id, next FROM site JOIN usage ON usage.site = site.id WHERE name = ?", []any{name}, &id, &next)
	if absent(err) {
		err = fmt.Errorf("%w: the store has no such site", millrace.ErrNotFound)
	}
	return id, next, err
}

const (
	hourMillis = int64(time.Hour / time.Millisecond)
	dayMillis  = 24 * hourMillis
	dayHours   = 24
	minTime    = -1 << 62
	maxTime    = 1 << 62
)

// floorDiv returns n/d rounded down, also for negative n. For a time n, the result is the number of
// its period of length d.
func floorDiv(n, d int64) int64 {
	q := n / d
	if n%d < 0 {
		q--
	}
	return q
}

// millis returns the first millisecond at or after a time. For the zero time, it returns other.
func millis(t time.Time, other int64) int64 {
	if t.IsZero() {
		return other
	}
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return ms
}

// span returns the range of periods of length d, in ms, that begin at or after from and before to.
func span(from, to time.Time, d int64) (first, end int64) {
	const ends = 1 << 50
	first, end = -ends, ends
	if !from.IsZero() {
		first = -floorDiv(-millis(from, 0), d)
	}
	if !to.IsZero() {
		end = -floorDiv(-millis(to, 0), d)
	}
	return first, end
}
