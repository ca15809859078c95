package sqlite

// stateTable stores the values of [store.State].
const stateTable = `
CREATE TABLE state (
	namespace TEXT NOT NULL,
	key       TEXT NOT NULL,
	value     BLOB NOT NULL,
	PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
`

// usageTables store events, their sums, and the most requested items.
const usageTables = `
CREATE TABLE usage (
	site    INTEGER PRIMARY KEY,
	next    INTEGER NOT NULL, -- number of the next event
	dropped INTEGER NOT NULL  -- how often rows of usage_text were dropped
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
	id       INTEGER PRIMARY KEY, -- site << 34 | number
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
