package sqlite

import (
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// usageTables store events, their sums, and the most requested items.
const usageTables = `
CREATE TABLE usage (
	site    INTEGER PRIMARY KEY,
	next    INTEGER NOT NULL,          -- number of the next event
	dropped INTEGER NOT NULL DEFAULT 0 -- how often rows of usage_text were dropped
);

CREATE TABLE usage_kind ( -- what events are counted by; rows are never changed or deleted
	id       INTEGER PRIMARY KEY,
	bot      TEXT NOT NULL,
	family   TEXT NOT NULL,
	identity TEXT NOT NULL,
	protocol TEXT NOT NULL,
	endpoint TEXT NOT NULL,
	outcome  TEXT NOT NULL,
	UNIQUE (bot, family, identity, protocol, endpoint, outcome)
);

CREATE TABLE usage_text ( -- paths, queries and intents
	id   INTEGER PRIMARY KEY,
	site INTEGER NOT NULL,
	text TEXT NOT NULL,
	used INTEGER, -- day of the newest event that has it or, if later, of its recording; NULL = keep for good
	UNIQUE (site, text)
);
CREATE INDEX usage_text_used ON usage_text (site, used) WHERE used IS NOT NULL;
INSERT INTO usage_text VALUES (0, 0, '', NULL);

CREATE TABLE usage_event (
	id       INTEGER PRIMARY KEY, -- site << 40 | number
	time     INTEGER NOT NULL,    -- Unix ms
	kind     INTEGER NOT NULL,
	status   INTEGER NOT NULL,
	cached   INTEGER NOT NULL,
	path     INTEGER NOT NULL,    -- usage_text
	query    INTEGER NOT NULL,    -- usage_text
	intent   INTEGER NOT NULL,    -- usage_text
	results  INTEGER NOT NULL,
	bytes    INTEGER NOT NULL,
	size     INTEGER NOT NULL,
	html     INTEGER NOT NULL,
	received INTEGER NOT NULL,
	took     INTEGER NOT NULL     -- µs
);

CREATE TABLE usage_hour ( -- where to look for the events of an hour
	site  INTEGER NOT NULL,
	hour  INTEGER NOT NULL, -- since 1970
	first INTEGER NOT NULL, -- lowest number
	last  INTEGER NOT NULL, -- highest number
	PRIMARY KEY (site, hour)
) WITHOUT ROWID;

CREATE TABLE usage_day ( -- days that have sums
	site  INTEGER NOT NULL,
	day   INTEGER NOT NULL, -- since 1970
	hours INTEGER NOT NULL, -- 1 = its hours have sums, too
	cut   INTEGER NOT NULL, -- 1 = usage_top has only what was asked for most
	PRIMARY KEY (site, day)
) WITHOUT ROWID;

CREATE TABLE usage_sum (
	site     INTEGER NOT NULL,
	per      INTEGER NOT NULL, -- hours: 1 or 24
	start    INTEGER NOT NULL, -- hours since 1970
	kind     INTEGER NOT NULL,
	events   INTEGER NOT NULL,
	cached   INTEGER NOT NULL,
	results  INTEGER NOT NULL,
	bytes    INTEGER NOT NULL,
	size     INTEGER NOT NULL,
	html     INTEGER NOT NULL,
	received INTEGER NOT NULL,
	html_known INTEGER NOT NULL,
	wired    INTEGER NOT NULL,
	took     INTEGER NOT NULL, -- µs
	PRIMARY KEY (site, per, start, kind)
) WITHOUT ROWID;

CREATE TABLE usage_top (
	site   INTEGER NOT NULL,
	topic  INTEGER NOT NULL,
	day    INTEGER NOT NULL, -- since 1970
	text   INTEGER NOT NULL, -- usage_text
	events INTEGER NOT NULL,
	empty  INTEGER NOT NULL,
	bytes  INTEGER NOT NULL,
	last   INTEGER NOT NULL, -- ms since the day began, 0 once the day is cut
	PRIMARY KEY (site, topic, day, text)
) WITHOUT ROWID;
`

// usageKind is a row of usage_kind.
type usageKind struct {
	bot, family string
	identity    store.BotIdentity
	protocol    string
	endpoint    store.Endpoint
	outcome     store.Outcome
}

// usageTexts caches the IDs of the texts that a site has used today.
type usageTexts struct {
	site, today, dropped int64
	ids                  map[string]int64
}

// mostTexts is the maximum number of texts in the cache.
const mostTexts = 1 << 14

// topics lists the topics by their number in the store, from 1.
var topics = [...]store.Topic{"", store.TopPages, store.TopQueries, store.TopMissing}

// usageSite returns the ID of a site and the number of its next event.
func usageSite(q querier, name string) (id, next int64, err error) {
	err = q.row("SELECT id, coalesce((SELECT next FROM usage WHERE usage.site = site.id), 1) FROM site WHERE name = ?", []any{name}, &id, &next)
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

// floorDiv returns n/d rounded down. For a time n, this is its period of length d, also before
// 1970.
func floorDiv(n, d int64) int64 {
	q := n / d
	if n%d < 0 {
		q--
	}
	return q
}

// millis returns the first millisecond at or after a time. If the time is zero, it
// returns other.
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

// span returns the periods of length d, in ms, that begin at or after from and
// before to.
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
