package sqlstore

import "github.com/millrace/millrace/internal/zdict"

// SchemaVersion is the version of Schema. Stores of earlier versions are rejected. Each of
// [Additions] increments the version.
const SchemaVersion = 22

// Schema creates the tables, in the dialect of SQLite. An engine translates the statements, and adds
// the trigger that deletes a row of original with its row of memory.
const Schema = `
CREATE TABLE log ( -- logs of sites, and of generations of publications
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	site    INTEGER NOT NULL,           -- id of the site's log
	seq     INTEGER NOT NULL DEFAULT 0, -- seq of the newest entry
	time    INTEGER NOT NULL DEFAULT 0, -- time of the newest moment, Unix ms
	floor   INTEGER NOT NULL DEFAULT 0, -- views before this seq are gone
	horizon INTEGER NOT NULL DEFAULT 0  -- cursors before this seq are rejected
);
CREATE INDEX log_site ON log (site);

CREATE TABLE moment ( -- when the entries of a log up to seq became visible
	log  INTEGER NOT NULL,
	seq  INTEGER NOT NULL,
	time INTEGER NOT NULL, -- Unix ms
	tags TEXT NOT NULL DEFAULT '{}', -- pages that have a tag, by protocol, as JSON
	PRIMARY KEY (log, seq)
) WITHOUT ROWID;
CREATE INDEX moment_time ON moment (log, time);

CREATE TABLE site (
	id   INTEGER PRIMARY KEY, -- id of its log
	name TEXT NOT NULL UNIQUE
);

CREATE TABLE publication ( -- generations of publications
	id          INTEGER PRIMARY KEY,        -- id of its log
	site        INTEGER NOT NULL,
	name        TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	epoch       TEXT NOT NULL,
	earlier     TEXT NOT NULL,              -- millrace.Site.Earlier as JSON
	parent      INTEGER NOT NULL,           -- generation from which this one was forked, 0 = none
	fork        INTEGER NOT NULL,           -- seq of the last entry of the parent that this one continues
	forked      BOOLEAN NOT NULL DEFAULT FALSE, -- another generation has been forked from this one
	published   INTEGER NOT NULL DEFAULT 0, -- published.id of its newest edition, 0 = none
	stage       INTEGER NOT NULL,           -- see the constants of stages
	after       TEXT NOT NULL DEFAULT '',   -- last page or tag that the stage has finished; when replaying, the seq of the site's log to reach
	position    INTEGER NOT NULL DEFAULT 0, -- seq reached in the site's log
	head        INTEGER NOT NULL,           -- newest entry of the last completed Refresh, -1 = none
	opened      INTEGER NOT NULL            -- time of the last use, Unix ms
);
CREATE INDEX publication_name ON publication (site, name, published);
CREATE INDEX publication_generation ON publication (site, name, fingerprint, id);

CREATE TABLE section ( -- numbers of pages present at the newest entry
	log   INTEGER NOT NULL,
	name  TEXT NOT NULL,
	pages INTEGER NOT NULL,
	PRIMARY KEY (log, name)
) WITHOUT ROWID;

CREATE TABLE tagged ( -- numbers of pages with a tag, including what a running Refresh has written so far
	log   INTEGER NOT NULL,
	protocol  TEXT NOT NULL,
	pages INTEGER NOT NULL,
	PRIMARY KEY (log, protocol)
) WITHOUT ROWID;

CREATE TABLE body (id INTEGER PRIMARY KEY, data BLOB NOT NULL); -- data is a zdict frame

CREATE TABLE entry (
	id        INTEGER PRIMARY KEY, -- log << 34 | seq
	log       INTEGER NOT NULL,
	kind      INTEGER NOT NULL,    -- 1 added, 2 updated, 3 deleted, 4 configuration
	prev      INTEGER NOT NULL,    -- seq of the page's previous entry, 0 = none
	until     INTEGER NOT NULL,    -- seq of the page's next entry
	modified  INTEGER NOT NULL,    -- Unix s
	rank      INTEGER NOT NULL,    -- sort key by publication date, newest first
	body      INTEGER NOT NULL,    -- id of the body, 0 = no blocks
	section   TEXT NOT NULL,
	url       TEXT NOT NULL,       -- path of the page, '' = no page
	revision  BLOB,
	meta      BLOB,                -- NULL if compacted or without a page
	hint      INTEGER NOT NULL DEFAULT 0, -- in a site: date of the page if the source has set none, Unix s
	html_bytes    INTEGER NOT NULL DEFAULT 0, -- in a site: bytes of the HTML, 0 = unknown
	html_received INTEGER NOT NULL DEFAULT 0  -- in a site: bytes of the HTML on the wire, 0 = unknown
);
CREATE INDEX entry_url  ON entry (log, url, until, section);
CREATE INDEX entry_rank ON entry (log, rank, url, until, section) WHERE kind < 3;
CREATE INDEX entry_old  ON entry (log, until) WHERE until < 17179869183;
CREATE INDEX entry_gone ON entry (id) WHERE kind > 2;
CREATE INDEX entry_html ON entry (log, url, html_bytes, html_received) WHERE html_bytes > 0 AND until = 17179869183 AND kind < 3;

CREATE TABLE tag (
	log      INTEGER NOT NULL,
	protocol     TEXT NOT NULL,
	url      TEXT NOT NULL,
	seq      INTEGER NOT NULL,
	until    INTEGER NOT NULL,
	n        INTEGER NOT NULL,
	modified INTEGER NOT NULL,
	value    BLOB NOT NULL, -- a long value is a zdict frame
	named    BOOLEAN NOT NULL DEFAULT FALSE, -- an edition has shown this or an earlier tag of the page
	PRIMARY KEY (log, protocol, url, seq)
) WITHOUT ROWID;
CREATE INDEX tag_old ON tag (log, until) WHERE until < 17179869183;

CREATE TABLE source (
	id     INTEGER PRIMARY KEY,
	site   INTEGER NOT NULL,
	name   TEXT NOT NULL,
	cursor TEXT NOT NULL DEFAULT '',
	UNIQUE (site, name)
);

CREATE TABLE memory (
	source   INTEGER NOT NULL,
	url      TEXT NOT NULL,    -- the source's name for the page
	identity TEXT,             -- path of the page, NULL = url
	mute     BOOLEAN NOT NULL, -- an alias, which does not keep a page
	version  TEXT NOT NULL,
	location TEXT NOT NULL,
	section  TEXT NOT NULL,
	original INTEGER NOT NULL DEFAULT 0, -- id of the original, 0 = none
	PRIMARY KEY (source, url)
) WITHOUT ROWID;
CREATE INDEX memory_identity ON memory (identity, source) WHERE identity IS NOT NULL;

CREATE TABLE original (id INTEGER PRIMARY KEY, data BLOB NOT NULL); -- data is a zdict frame

CREATE TABLE published (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	log      INTEGER NOT NULL,
	number   INTEGER NOT NULL, -- number of the edition
	own      BOOLEAN NOT NULL, -- false = from the generation from which this one was forked
	seq      INTEGER NOT NULL,
	time     INTEGER NOT NULL, -- when it was published, Unix ms
	state    BLOB,             -- millrace.Site as JSON, NULL when superseded
	manifest BLOB,
	UNIQUE (log, number)
);
CREATE TABLE state (
	namespace TEXT NOT NULL,
	key       TEXT NOT NULL,
	value     BLOB NOT NULL,
	PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

CREATE TABLE usage (
	site    INTEGER PRIMARY KEY,
	next    INTEGER NOT NULL, -- number of the next event
	dropped INTEGER NOT NULL  -- how often rows of usage_text were dropped
);

CREATE TABLE usage_kind ( -- properties by which events are counted; rows are never changed or deleted
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
	used INTEGER, -- day of the newest event with the text, or of its recording if later; NULL = keep permanently
	UNIQUE (site, text)
);
CREATE INDEX usage_text_used ON usage_text (site, used) WHERE used IS NOT NULL;
INSERT INTO usage_text VALUES (0, 0, '', NULL);

CREATE TABLE usage_event (
	id       INTEGER PRIMARY KEY, -- site << 34 | number
	time     INTEGER NOT NULL,    -- Unix ms
	kind     INTEGER NOT NULL,
	status   INTEGER NOT NULL,
	cached   BOOLEAN NOT NULL,
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

CREATE TABLE usage_hour ( -- numbers of the events of an hour
	site  INTEGER NOT NULL,
	hour  INTEGER NOT NULL, -- hours since 1970
	first INTEGER NOT NULL, -- lowest number
	last  INTEGER NOT NULL, -- highest number
	PRIMARY KEY (site, hour)
) WITHOUT ROWID;

CREATE TABLE usage_day ( -- days that have sums
	site  INTEGER NOT NULL,
	day   INTEGER NOT NULL, -- days since 1970
	hours INTEGER NOT NULL, -- 1 = the hours of the day have sums, too
	cut   INTEGER NOT NULL, -- 1 = usage_top has only the most requested items
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
	day    INTEGER NOT NULL, -- days since 1970
	text   INTEGER NOT NULL, -- usage_text
	events INTEGER NOT NULL,
	empty  INTEGER NOT NULL,
	bytes  INTEGER NOT NULL,
	last   INTEGER NOT NULL, -- ms since the day began, 0 once the day is cut
	PRIMARY KEY (site, topic, day, text)
) WITHOUT ROWID;
` + zdict.Schema
