package sqlite

import (
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sqlitefile"
)

// advice explains errors of SQLite to operators.
var advice = map[int]struct {
	sentinel error
	code     string
	text     string
}{
	sqlite3.SQLITE_BUSY:     {millrace.ErrUnavailable, "store-busy", "another process is writing to the store; try again later"},
	sqlite3.SQLITE_LOCKED:   {millrace.ErrUnavailable, "store-busy", "another process is writing to the store; try again later"},
	sqlite3.SQLITE_FULL:     {millrace.ErrUnavailable, "disk-full", "the disk is full: nothing was changed; free some space and try again"},
	sqlite3.SQLITE_IOERR:    {millrace.ErrUnavailable, "disk-error", "disk I/O failed, because the disk is full, over a quota or broken: nothing was changed; check the disk and try again"},
	sqlite3.SQLITE_NOMEM:    {millrace.ErrUnavailable, "no-memory", "out of memory: nothing was changed"},
	sqlite3.SQLITE_CANTOPEN: {millrace.ErrInvalid, "store-open", "cannot open or create the file; check the folder, its permissions, and the limit of open files"},
	sqlite3.SQLITE_READONLY: {millrace.ErrForbidden, "store-read-only", "the file is read-only; make the file and its folder writable"},
	sqlite3.SQLITE_PERM:     {millrace.ErrForbidden, "store-read-only", "permission denied; make the file and its folder writable"},
	sqlite3.SQLITE_CORRUPT:  {millrace.ErrInvalid, "store-damaged", "the file is damaged; restore a backup, or remove it and pull or serve again"},
	sqlite3.SQLITE_NOTADB:   {millrace.ErrInvalid, "no-store", "not a store, or its header is damaged; choose another file, or restore a backup"},
	sqlite3.SQLITE_TOOBIG:   {millrace.ErrTooLarge, "row-size", "the page exceeds the maximum size of a row (1 GB)"},
}

// advise adds advice to an error of SQLite.
func advise(err error) error {
	a, ok := advice[sqlitefile.Code(err)]
	if !ok {
		return err
	}
	// Wrap only the text. Otherwise, an error that is wrapped again would be explained twice.
	return millrace.Coded(a.code, fmt.Errorf("%w: %s (%s)", a.sentinel, a.text, err.Error()))
}
