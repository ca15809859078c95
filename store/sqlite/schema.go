package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace"
)

// applicationID marks a file as a store ("mill").
const applicationID = 0x6D696C6C

// forever is the until of an entry or a tag that nothing has replaced. It is
// written out in statements, since a partial index is used only for a literal.
const forever = 1<<40 - 1

// siteBits is how far the site's number is shifted in entry.id: the rows of a
// site are one range of the table, in the order of the log.
const siteBits = 40

// schemaVersion is the version of the tables. Until the first release, every
// change of them is a new version, and files of another one are refused.
const schemaVersion = 11

// tables are the tables of a store.
var tables = []string{
	`
CREATE TABLE store (epoch TEXT NOT NULL);
INSERT INTO store VALUES (lower(hex(randomblob(16))));

CREATE TABLE site (
	id          INTEGER PRIMARY KEY,
	name        TEXT NOT NULL UNIQUE,
	seq         INTEGER NOT NULL DEFAULT 0, -- of the newest entry
	time        INTEGER NOT NULL DEFAULT 0, -- of the newest commit, Unix ms
	fingerprint TEXT NOT NULL,              -- every page is derived by it; '' = under way
	target      TEXT NOT NULL DEFAULT '',   -- what Derive is on the way to
	start       INTEGER NOT NULL DEFAULT 0, -- the entry that announces it
	after       TEXT NOT NULL DEFAULT '',   -- the last page that it has derived
	done        INTEGER NOT NULL DEFAULT 0, -- how many it has derived
	floor       INTEGER NOT NULL DEFAULT 0, -- views before it are gone
	horizon     INTEGER NOT NULL DEFAULT 0, -- cursors before it are refused
	rooms       TEXT NOT NULL DEFAULT ''    -- that have tags, separated by spaces
);

CREATE TABLE section ( -- pages visible at the newest entry
	site  INTEGER NOT NULL,
	name  TEXT NOT NULL,
	pages INTEGER NOT NULL,
	PRIMARY KEY (site, name)
) WITHOUT ROWID;

CREATE TABLE body (id INTEGER PRIMARY KEY, data BLOB NOT NULL);

CREATE TABLE raw (
	site  INTEGER NOT NULL,
	url   TEXT NOT NULL,    -- identity
	hint  INTEGER NOT NULL, -- Modified that the source does not speak for, Unix s, 0 = none
	body  INTEGER NOT NULL, -- 0 = no blocks
	meta  BLOB NOT NULL,
	PRIMARY KEY (site, url)
) WITHOUT ROWID;

CREATE TABLE entry (
	id        INTEGER PRIMARY KEY, -- site << 40 | seq
	site      INTEGER NOT NULL,
	kind      INTEGER NOT NULL,    -- 1 added, 2 updated, 3 deleted, 4 configuration
	time      INTEGER NOT NULL,    -- of the commit, Unix ms
	prev      INTEGER NOT NULL,    -- seq of the page's entry before, 0 = none
	until     INTEGER NOT NULL,    -- seq of the page's next entry
	modified  INTEGER NOT NULL,    -- Unix s
	rank      INTEGER NOT NULL,    -- published, newest first
	body      INTEGER NOT NULL,
	section   TEXT NOT NULL,
	url       TEXT NOT NULL,       -- identity, '' = of no page
	revision  BLOB,
	meta      BLOB                 -- NULL when compacted, or of no page
);
CREATE INDEX entry_url  ON entry (site, url, until, section);
CREATE INDEX entry_rank ON entry (site, rank, url, until, section) WHERE kind < 3;
CREATE INDEX entry_old  ON entry (site, until) WHERE until < 1099511627775;
CREATE INDEX entry_gone ON entry (id) WHERE kind > 2;

CREATE TABLE tag (
	site     INTEGER NOT NULL,
	room     TEXT NOT NULL,
	url      TEXT NOT NULL,
	seq      INTEGER NOT NULL,
	until    INTEGER NOT NULL,
	n        INTEGER NOT NULL,
	modified INTEGER NOT NULL,
	value    TEXT NOT NULL,
	named    INTEGER NOT NULL DEFAULT 0, -- an edition has shown the tag, or an earlier one of the page
	PRIMARY KEY (site, room, url, seq)
) WITHOUT ROWID;
CREATE INDEX tag_old ON tag (site, until) WHERE until < 1099511627775;

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
	mute     INTEGER NOT NULL, -- 1: it spoke for nothing, so it keeps no page alive
	version  TEXT NOT NULL,
	location TEXT NOT NULL,
	section  TEXT NOT NULL,
	PRIMARY KEY (source, url)
) WITHOUT ROWID;
CREATE INDEX memory_identity ON memory (identity, source) WHERE identity IS NOT NULL;

CREATE TABLE published (
	site        INTEGER NOT NULL,
	number      INTEGER NOT NULL, -- counts publications
	seq         INTEGER NOT NULL,
	time        INTEGER NOT NULL, -- when it was published, Unix ms
	fingerprint TEXT NOT NULL,
	state       BLOB NOT NULL,    -- millrace.Site as JSON
	manifest    BLOB,
	PRIMARY KEY (site, number)
) WITHOUT ROWID;
`, `
CREATE TABLE original (id INTEGER PRIMARY KEY, data BLOB NOT NULL); -- zstd
ALTER TABLE memory ADD COLUMN original INTEGER NOT NULL DEFAULT 0;   -- 0 = none
CREATE TRIGGER memory_original AFTER DELETE ON memory WHEN old.original <> 0
BEGIN
	DELETE FROM original WHERE id = old.original;
END;
`, `
CREATE TABLE generation ( -- of the index of a site; its words are in the table words_<id>
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	site     INTEGER NOT NULL,
	format   INTEGER NOT NULL,            -- of what it keeps of a passage
	stage    INTEGER NOT NULL,            -- 1 filled, 2 counted, 3 follows, 4 answers, 5 goes
	base     INTEGER NOT NULL,            -- views before it are not answered
	seq      INTEGER NOT NULL,            -- it has come as far
	after    TEXT NOT NULL DEFAULT '',    -- the last page that was filled in, or term that was counted
	done     INTEGER NOT NULL DEFAULT 0,  -- pages that were filled in
	next     INTEGER NOT NULL DEFAULT 1,  -- number of the next passage or sheet
	passages INTEGER NOT NULL DEFAULT 0,  -- current ones
	length   INTEGER NOT NULL DEFAULT 0,  -- of all of them
	model    INTEGER NOT NULL DEFAULT 0,  -- that vectors are made with, 0 = none
	moved    INTEGER NOT NULL DEFAULT 0   -- passages that came or went since the model was fitted
);
CREATE INDEX generation_site ON generation (site, stage);

CREATE TABLE sheet ( -- what the passages of a page share
	id         INTEGER PRIMARY KEY, -- generation << 32 | number
	generation INTEGER NOT NULL,
	url        TEXT NOT NULL,    -- identity
	title      TEXT NOT NULL,
	language   TEXT NOT NULL
);
CREATE INDEX sheet_url ON sheet (generation, url);

CREATE TABLE passage (
	id      INTEGER PRIMARY KEY, -- generation << 32 | number
	sheet   INTEGER NOT NULL,
	seq     INTEGER NOT NULL,    -- views from here on show it
	until   INTEGER NOT NULL,    -- and from here on no longer
	ord     INTEGER NOT NULL,    -- in the page
	length  INTEGER NOT NULL,    -- in words that say something
	print   INTEGER NOT NULL,    -- of its text, alike for texts that are
	hash    INTEGER NOT NULL,    -- of all that is searched of it
	chunk   TEXT NOT NULL,       -- its id in the page
	profile BLOB NOT NULL
);
CREATE INDEX passage_sheet ON passage (sheet, until);
CREATE INDEX passage_old   ON passage (until, id) WHERE until < 1099511627775;

CREATE TABLE passage_text (id INTEGER PRIMARY KEY, data BLOB NOT NULL);

CREATE TABLE term ( -- how many current passages have it
	generation INTEGER NOT NULL,
	term       TEXT NOT NULL,
	n          INTEGER NOT NULL,
	PRIMARY KEY (generation, term)
) WITHOUT ROWID;

CREATE TABLE model (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	generation INTEGER NOT NULL,
	name       TEXT NOT NULL,               -- of the embedder's, '' = fitted here
	size       INTEGER NOT NULL DEFAULT 0,  -- dimensions of its vectors, 0 = none is known yet
	after      INTEGER NOT NULL DEFAULT 0,  -- the last passage that was given a vector
	data       BLOB                         -- what was fitted
);
CREATE INDEX model_generation ON model (generation);

CREATE TABLE vector (id INTEGER PRIMARY KEY, data BLOB NOT NULL); -- model << 32 | number of the passage
`,
	weightColumns, keyTable, trafficTable, usageTables, stateTable,
}

// prepareFile makes an empty file a store and refuses what is not one of this
// version. A file that is a store needs no lock.
func prepareFile(ctx context.Context, c *sql.Conn) error {
	version, err := fileVersion(ctx, c)
	if err != nil || version != 0 {
		return err
	}
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() { _, _ = c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // of what is not committed
	// Another process may have done it in between.
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

// fileVersion returns schemaVersion for a store and 0 for an empty file.
// Anything else is an error.
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
		return 0, fmt.Errorf("%w: it is a database of something else: choose another file", millrace.Coded("no-store", millrace.ErrInvalid))
	case version > schemaVersion:
		return 0, millrace.Coded("store-newer", fmt.Errorf("%w: a newer millrace made it (version %d of the store, this one reads %d): use that millrace, or another file",
			millrace.ErrInvalid, version, schemaVersion))
	case version < schemaVersion:
		return 0, millrace.Coded("store-older", fmt.Errorf("%w: a millrace from before the first release made it (version %d of the store, this one reads %d): pull or serve again into a new store",
			millrace.ErrInvalid, version, schemaVersion))
	}
	return version, nil
}

var errNoRow = sql.ErrNoRows

// absent reports whether an error says that there is no such row.
func absent(err error) bool { return errors.Is(err, errNoRow) }
