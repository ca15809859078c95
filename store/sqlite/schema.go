package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/zdict"
)

// applicationID marks a file as a store ("mill").
const applicationID = 0x6D696C6C

// schemaVersion is the version of the tables. Until the first release, every change of the
// tables increments it, and other versions are rejected.
const schemaVersion = 21

// tables are the statements that create the tables of a store.
var tables = []string{
	`
CREATE TABLE store (epoch TEXT NOT NULL);
INSERT INTO store VALUES (lower(hex(randomblob(16))));

CREATE TABLE log ( -- of a site, or of one generation of a publication
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	site    INTEGER NOT NULL,           -- log of the site
	seq     INTEGER NOT NULL DEFAULT 0, -- of the newest entry
	time    INTEGER NOT NULL DEFAULT 0, -- of the newest moment, Unix ms
	floor   INTEGER NOT NULL DEFAULT 0, -- views before it are gone
	horizon INTEGER NOT NULL DEFAULT 0  -- cursors before it are refused
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
	id   INTEGER PRIMARY KEY, -- of its log
	name TEXT NOT NULL UNIQUE
);

CREATE TABLE publication ( -- one generation of it
	id          INTEGER PRIMARY KEY,        -- of its log
	site        INTEGER NOT NULL,
	name        TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	epoch       TEXT NOT NULL,
	earlier     TEXT NOT NULL,              -- millrace.Site.Earlier as JSON
	parent      INTEGER NOT NULL,           -- that it was forked from, 0 = none
	fork        INTEGER NOT NULL,           -- last entry of the parent that it continues
	forked      INTEGER NOT NULL DEFAULT 0, -- 1: another generation has been forked from it
	published   INTEGER NOT NULL DEFAULT 0, -- published.id of its newest edition, 0 = none
	stage       INTEGER NOT NULL,           -- see the constants
	after       TEXT NOT NULL DEFAULT '',   -- the last page or tag that the stage has done; of replaying, the number in the site's log that it goes to
	position    INTEGER NOT NULL DEFAULT 0, -- in the site's log
	head        INTEGER NOT NULL,           -- newest entry of the last completed Refresh, -1 = none
	opened      INTEGER NOT NULL            -- last, Unix ms
);
CREATE INDEX publication_name ON publication (site, name, published);
CREATE INDEX publication_generation ON publication (site, name, fingerprint, id);

CREATE TABLE section ( -- pages present at the newest entry
	log   INTEGER NOT NULL,
	name  TEXT NOT NULL,
	pages INTEGER NOT NULL,
	PRIMARY KEY (log, name)
) WITHOUT ROWID;

CREATE TABLE tagged ( -- pages that have a tag, as far as the Refresh that is under way has come
	log   INTEGER NOT NULL,
	protocol  TEXT NOT NULL,
	pages INTEGER NOT NULL,
	PRIMARY KEY (log, protocol)
) WITHOUT ROWID;

CREATE TABLE body (id INTEGER PRIMARY KEY, data BLOB NOT NULL); -- a frame of zdict

CREATE TABLE entry (
	id        INTEGER PRIMARY KEY, -- log << 34 | seq
	log       INTEGER NOT NULL,
	kind      INTEGER NOT NULL,    -- 1 added, 2 updated, 3 deleted, 4 configuration
	prev      INTEGER NOT NULL,    -- seq of the page's entry before, 0 = none
	until     INTEGER NOT NULL,    -- seq of the page's next entry
	modified  INTEGER NOT NULL,    -- Unix s
	rank      INTEGER NOT NULL,    -- published, newest first
	body      INTEGER NOT NULL,    -- 0 = no blocks
	section   TEXT NOT NULL,
	url       TEXT NOT NULL,       -- identity, '' = of no page
	revision  BLOB,
	meta      BLOB,                -- NULL when compacted, or of no page
	hint      INTEGER NOT NULL DEFAULT 0, -- of a site: date that the source does not speak for, Unix s
	html_bytes    INTEGER NOT NULL DEFAULT 0, -- of a site: bytes of the HTML, 0 = not known
	html_received INTEGER NOT NULL DEFAULT 0  -- the same over the wire
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
	value    BLOB NOT NULL, -- a long one is a frame of zdict
	named    INTEGER NOT NULL DEFAULT 0, -- an edition has shown the tag, or an earlier one of the page
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
	url      TEXT NOT NULL,    -- the source's own name for it
	identity TEXT,             -- of the page, NULL = url
	mute     INTEGER NOT NULL, -- 1: an alias, which keeps no page alive
	version  TEXT NOT NULL,
	location TEXT NOT NULL,
	section  TEXT NOT NULL,
	original INTEGER NOT NULL DEFAULT 0, -- 0 = none
	PRIMARY KEY (source, url)
) WITHOUT ROWID;
CREATE INDEX memory_identity ON memory (identity, source) WHERE identity IS NOT NULL;

CREATE TABLE original (id INTEGER PRIMARY KEY, data BLOB NOT NULL); -- a frame of zdict
CREATE TRIGGER memory_original AFTER DELETE ON memory WHEN old.original <> 0
BEGIN
	DELETE FROM original WHERE id = old.original;
END;

CREATE TABLE published (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	log      INTEGER NOT NULL,
	number   INTEGER NOT NULL, -- of the edition
	own      INTEGER NOT NULL, -- 0: of the generation that this one was forked from
	seq      INTEGER NOT NULL,
	time     INTEGER NOT NULL, -- when it was published, Unix ms
	state    BLOB,             -- millrace.Site as JSON, NULL when superseded
	manifest BLOB,
	UNIQUE (log, number)
);
`, zdict.Schema, usageTables, stateTable,
}

// prepareFile turns an empty file into a store, and rejects other versions. If the file is a
// store already, it takes no lock.
func prepareFile(ctx context.Context, c *sql.Conn) error {
	version, err := fileVersion(ctx, c)
	if err != nil || version != 0 {
		return err
	}
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() { _, _ = c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // roll back uncommitted changes
	// Another process may have created the tables meanwhile.
	if version, err = fileVersion(ctx, c); err != nil || version != 0 {
		return err
	}
	for _, q := range append(slices.Clone(tables),
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
		"COMMIT",
	) {
		if _, err := c.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// fileVersion returns schemaVersion for a store, and 0 for an empty file. For any other file,
// it returns an error.
func fileVersion(ctx context.Context, c *sql.Conn) (int, error) {
	var app, version, tables int
	err := c.QueryRowContext(ctx, `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`).Scan(&app, &version, &tables)
	switch {
	case err != nil:
		return 0, err
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, fmt.Errorf("%w: the file is a database of another program; choose another file", millrace.Coded("no-store", millrace.ErrInvalid))
	case version > schemaVersion:
		return 0, millrace.Coded("store-newer", fmt.Errorf("%w: created by a newer millrace (store version %d, this millrace reads %d); use that millrace, or another file",
			millrace.ErrInvalid, version, schemaVersion))
	case version < schemaVersion:
		return 0, millrace.Coded("store-older", fmt.Errorf("%w: created by a millrace before the first release (store version %d, this millrace reads %d); pull or serve again into a new store",
			millrace.ErrInvalid, version, schemaVersion))
	}
	return version, nil
}
