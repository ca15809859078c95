// Package sqlitefile opens SQLite files that several processes use.
package sqlitefile

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	driver "modernc.org/sqlite" // also registers the driver "sqlite" for database/sql
	sqlite3 "modernc.org/sqlite/lib"
)

// Open returns a pool of connections with the given parameters, such as "_pragma=query_only(1)" or
// "mode=ro". It does not open a connection yet.
func Open(path string, parameters ...string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()+"?"+strings.Join(parameters, "&"))
}

// UseWAL switches the file to WAL mode, in which readers and the writer do not block
// each other. SQLite itself does not wait for other processes in this case, so UseWAL waits, up to
// the given time.
func UseWAL(ctx context.Context, c *sql.Conn, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		_, err := c.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		if Code(err) != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Identity identifies an open file. It detects a removed file, to which SQLite would continue to
// write.
type Identity struct {
	path string
	info fs.FileInfo
}

// Identify returns the identity of the file at a path.
func Identify(path string) (Identity, error) {
	info, err := os.Stat(path)
	return Identity{path, info}, err
}

// Removed reports whether the file was removed from its path or replaced.
func (i Identity) Removed() bool {
	info, err := os.Stat(i.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, i.info)
}

// Code returns the primary code of an SQLite error, and 0 for another error.
func Code(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xFF
	}
	return 0
}
