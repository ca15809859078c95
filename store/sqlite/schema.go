package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

// applicationID marks a file as a store ("mill").
const applicationID = 0x6D696C6C

// tables contains the statements that create the tables of a store.
var tables = []string{
	"CREATE TABLE store (epoch TEXT NOT NULL)",
	"INSERT INTO store VALUES (lower(hex(randomblob(16))))",
	sqlstore.Schema,
	`CREATE TRIGGER memory_original AFTER DELETE ON memory WHEN old.original <> 0
BEGIN
	DELETE FROM original WHERE id = old.original;
END;`,
}

// newest is the version of the tables with all additions.
var newest = sqlstore.SchemaVersion + len(sqlstore.Additions)

// prepareFile turns an empty file into a store, adds missing tables to a store of an earlier
// version, and rejects other files. If nothing needs to change, it takes no lock.
func prepareFile(ctx context.Context, c *sql.Conn) error {
	version, err := fileVersion(ctx, c)
	if err != nil || version == newest {
		return err
	}
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() { _, _ = c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // has no effect after the commit
	// Another process may have created the tables since the check above.
	if version, err = fileVersion(ctx, c); err != nil || version == newest {
		return err
	}
	var script []string
	if version == 0 {
		version, script = sqlstore.SchemaVersion, slices.Clone(tables)
	}
	script = append(script, sqlstore.Additions[version-sqlstore.SchemaVersion:]...)
	for _, q := range append(script,
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", newest),
		"COMMIT",
	) {
		if _, err := c.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// fileVersion returns the version of the tables of a store, or 0 for an empty file. For any other
// file, it returns an error.
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
	case version > newest:
		return 0, millrace.Coded("store-newer", fmt.Errorf("%w: created by a newer millrace (store version %d, this millrace reads %d); use that millrace, or another file",
			millrace.ErrInvalid, version, newest))
	case version < sqlstore.SchemaVersion:
		return 0, millrace.Coded("store-older", fmt.Errorf("%w: created by a millrace before the first release (store version %d, this millrace reads %d); pull or serve again into a new store",
			millrace.ErrInvalid, version, newest))
	}
	return version, nil
}
