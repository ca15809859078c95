package sqlstore

// Additions are statements in the dialect of SQLite that add to the tables of [Schema], or drop an
// index. Each increments the version by one. Processes of earlier versions can write at the same
// time.
var Additions = []string{`
CREATE TABLE fleet (last INTEGER NOT NULL); -- last is the newest group ID; the row is the lock of all groups
INSERT INTO fleet VALUES (0);

CREATE TABLE fleet_group ( -- unit of politeness and leases: one host, or the hosts of an address
	id      INTEGER PRIMARY KEY,
	address TEXT NOT NULL DEFAULT '', -- address that its hosts share
	network TEXT NOT NULL DEFAULT '', -- network whose rate limits its turns
	slotted BOOLEAN NOT NULL DEFAULT FALSE, -- the rate of the network permits a turn at ready
	class   INTEGER NOT NULL,     -- class of the site that is due first
	due     INTEGER NOT NULL,     -- time of the next turn, Unix ms; not before ready
	ready   INTEGER NOT NULL DEFAULT 0, -- end of the lease or of the delay, Unix ms
	holder  TEXT NOT NULL DEFAULT '',
	fence   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX fleet_group_due ON fleet_group (class, due, id);
CREATE INDEX fleet_group_address ON fleet_group (address) WHERE address <> '';

CREATE TABLE fleet_network (
	name TEXT PRIMARY KEY,
	rate INTEGER NOT NULL, -- requests in 1,000 s
	next INTEGER NOT NULL  -- when the rate permits the next request, Unix ms
);

CREATE TABLE fleet_host (
	host     TEXT PRIMARY KEY,
	grp      INTEGER NOT NULL,
	address  TEXT NOT NULL DEFAULT '',
	class    INTEGER NOT NULL,
	due      INTEGER NOT NULL,           -- when its first site is due, but not before until, Unix ms
	until    INTEGER NOT NULL DEFAULT 0, -- see TurnResult.Until, Unix ms
	why      TEXT NOT NULL DEFAULT '',
	failures INTEGER NOT NULL DEFAULT 0, -- number of failures in a row
	delay    INTEGER NOT NULL DEFAULT 0, -- ms
	since    INTEGER NOT NULL DEFAULT 0, -- start of the period of moves, Unix ms
	moves    INTEGER NOT NULL DEFAULT 0,
	cost     INTEGER NOT NULL,           -- requests of the last turn
	requests INTEGER NOT NULL DEFAULT 0,
	received INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX fleet_host_due ON fleet_host (grp, due);
CREATE INDEX fleet_host_failures ON fleet_host (failures) WHERE failures > 0;

CREATE TABLE fleet_site (
	id        INTEGER PRIMARY KEY,
	url       TEXT NOT NULL UNIQUE,
	host      TEXT NOT NULL,
	labels    TEXT NOT NULL,    -- each after a newline, and a newline at the end
	priority  INTEGER NOT NULL,
	class     INTEGER NOT NULL, -- the highest for a new site, else its priority
	shortest  INTEGER NOT NULL, -- FleetSite.Min, ms
	longest   INTEGER NOT NULL, -- FleetSite.Max, ms
	unlisted  BOOLEAN NOT NULL,
	paused    BOOLEAN NOT NULL DEFAULT FALSE,
	queued    BOOLEAN NOT NULL, -- neither unlisted nor paused
	added     INTEGER NOT NULL, -- Unix ms
	due       INTEGER NOT NULL, -- Unix ms
	soonest   INTEGER NOT NULL DEFAULT 0, -- Unix ms
	hinted    BOOLEAN NOT NULL DEFAULT FALSE,
	pulled    INTEGER NOT NULL DEFAULT 0, -- Unix ms
	error     TEXT NOT NULL DEFAULT '',
	name      TEXT NOT NULL DEFAULT '',
	state     BLOB
);
CREATE INDEX fleet_site_due ON fleet_site (host, queued, due);
CREATE INDEX fleet_site_lag ON fleet_site (due) WHERE queued;
`, `
CREATE INDEX state_key ON state (key, namespace);
`, `
ALTER TABLE fleet_site ADD COLUMN webhook TEXT NOT NULL DEFAULT '';
ALTER TABLE fleet_site ADD COLUMN removing BOOLEAN NOT NULL DEFAULT FALSE;
`, `
CREATE INDEX fleet_site_first ON fleet_site (host, due) WHERE queued AND class = 3; -- new sites, and sites of high priority
CREATE INDEX fleet_host_unused ON fleet_host (class) WHERE class = 0; -- hosts of removed sites
DROP INDEX fleet_site_lag;
`}
