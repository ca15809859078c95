package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sqlitefile"
	"github.com/millrace/millrace/internal/zdict"
)

// Verify reads an index file: its structure and the texts of all passages. It reports whether the
// file is damaged, and why. With repair, it removes a damaged file, and the next [Open] creates
// another one.
func Verify(ctx context.Context, path string, repair bool) (bad bool, err error) {
	err = inspect(ctx, path)
	if err == nil {
		return false, nil
	}
	if !damaged(err) {
		return false, explain("verify index "+path, err)
	}
	reason := millrace.Coded("index-damaged", fmt.Errorf("%w: %w", millrace.ErrInvalid, err))
	if repair {
		if err := remove(path); err != nil {
			return false, err
		}
	}
	return true, reason
}

// inspect returns the first damage that it finds.
func inspect(ctx context.Context, path string) error {
	db, err := sqlitefile.Open(path, fmt.Sprintf("_pragma=busy_timeout(%d)", wait.Milliseconds()))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // opened only for reading
	c, err := connect(ctx, db, "query_only = 1")
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	var found string
	var version int
	if err := c.row("PRAGMA integrity_check(1)", nil, &found); err != nil || found != "ok" {
		return cmp.Or(err, fmt.Errorf("%w: %s", errDamaged, found))
	}
	if err := c.row("PRAGMA user_version", nil, &version); err != nil || version != format {
		return err // Open replaces the file
	}
	x := &Index{coder: zdict.Coder{Series: "texts"}}
	for page := int64(0); ctx.Err() == nil; {
		t, last := new(texts), 0
		err := c.row("SELECT id, parts, data, (SELECT coalesce(max(ord), -1) FROM passage WHERE page = texts.id) FROM texts WHERE id > ? ORDER BY id LIMIT 1", []any{page},
			&t.page, &t.parts, &t.data, &last)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		for ord := 0; err == nil && ord <= last; ord = t.end {
			err = x.part(c, t, ord)
		}
		if err != nil {
			return err
		}
		page = t.page
	}
	return ctx.Err()
}

// Files returns the paths of the index files of a store, which are in the folder STORE.index.
func Files(store string) (paths []string, err error) {
	files, err := os.ReadDir(store + ".index")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) == ".db" {
			paths = append(paths, filepath.Join(store+".index", f.Name()))
		}
	}
	return paths, err
}
