package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
	"github.com/millrace/millrace/internal/sqlitefile"
	"github.com/millrace/millrace/internal/zdict"
)

// applicationID identifies a file as an index ("milx").
const applicationID = 0x6D696C78

// format is the version of the tables and of their content.
const format = 1000*4 + search.Format

var schema = []string{
	`CREATE TABLE state (
		made     TEXT NOT NULL,    -- random; differs between files
		turn     INTEGER NOT NULL, -- counts the transactions of Update
		stage    INTEGER NOT NULL,
		epoch    TEXT NOT NULL,    -- of the indexed view
		seq      INTEGER NOT NULL,
		time     INTEGER NOT NULL, -- Unix ms
		after    TEXT NOT NULL,    -- last page read by the sweep, or last term counted
		done     INTEGER NOT NULL, -- pages read by the sweep
		next     INTEGER NOT NULL, -- id of the next passage
		passages INTEGER NOT NULL,
		length   INTEGER NOT NULL, -- of all passages
		model    INTEGER NOT NULL, -- model of the vectors in use; 0 = none
		moved    INTEGER NOT NULL  -- passages added or removed since the model was fitted
	)`,
	"INSERT INTO state VALUES (lower(hex(randomblob(8))), 0, 0, '', 0, 0, '', 0, 1, 0, 0, 0, 0)",
	`CREATE TABLE page ( -- pages with passages
		id       INTEGER PRIMARY KEY,
		url      TEXT NOT NULL UNIQUE, -- identity
		title    TEXT NOT NULL,
		language TEXT NOT NULL,
		version  TEXT NOT NULL
	)`,
	`CREATE TABLE passage (
		id      INTEGER PRIMARY KEY, -- below 1 << 32
		page    INTEGER NOT NULL,
		ord     INTEGER NOT NULL, -- in the page
		length  INTEGER NOT NULL, -- number of words except stop words
		print   INTEGER NOT NULL, -- fingerprint of the text
		hash    INTEGER NOT NULL, -- hash of all searchable data
		chunk   TEXT NOT NULL,    -- id of the passage in the page
		profile BLOB NOT NULL
	)`,
	"CREATE INDEX passage_page ON passage (page)",
	"CREATE TABLE texts (id INTEGER PRIMARY KEY, parts BLOB NOT NULL, data BLOB NOT NULL)", // texts of the passages of a page, see texts
	zdict.Schema,
	"CREATE VIRTUAL TABLE words USING fts5(body, headings, title, content = '', contentless_delete = 1, tokenize = 'ascii')",
	"CREATE TABLE term (term TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID", // number of passages with the term
	`CREATE TABLE model (
		id    INTEGER PRIMARY KEY AUTOINCREMENT,
		name  TEXT NOT NULL,               -- name of the embedder's model; '' = fitted to the site
		size  INTEGER NOT NULL DEFAULT 0,  -- dimensions of its vectors; 0 = unknown
		after INTEGER NOT NULL DEFAULT 0,  -- last passage with a vector
		data  BLOB                         -- the fitted model
	)`,
	"CREATE TABLE vector (id INTEGER PRIMARY KEY, data BLOB NOT NULL)", // model << 32 | passage
	fmt.Sprintf("PRAGMA application_id = %d", applicationID),
	fmt.Sprintf("PRAGMA user_version = %d", format),
}

// Errors for a file that has another format, is damaged, or was deleted or replaced since it was
// opened.
var (
	errFormat  = errors.New("the file has another format")
	errDamaged = errors.New("the file is damaged")
	errAnother = errors.New("the file was deleted or replaced")
)

// wait is the maximum time to wait for another process that writes.
const wait = 5 * time.Second

// open opens the file. It rebuilds the file if it has another format or is damaged.
func (x *Index) open(ctx context.Context) error {
	err := x.connect(ctx)
	if damaged(err) {
		x.log.Info("index is damaged; rebuilding it", "path", x.path, "err", err)
		if err = remove(x.path); err == nil {
			err = x.connect(ctx)
		}
	}
	return err
}

func (x *Index) connect(ctx context.Context) error {
	err := os.MkdirAll(filepath.Dir(x.path), 0o700)
	if err != nil {
		return err
	}
	if x.db, err = sqlitefile.Open(x.path, fmt.Sprintf("_pragma=busy_timeout(%d)", wait.Milliseconds())); err != nil {
		return err
	}
	// SQLite ignores auto_vacuum if the file has a table or is in WAL mode.
	x.writer, err = connect(ctx, x.db, "auto_vacuum = INCREMENTAL", "synchronous = NORMAL", "cache_size = -2000",
		"journal_size_limit = 67108864", "wal_autocheckpoint = 8000")
	if err == nil {
		err = sqlitefile.UseWAL(ctx, x.writer.c, wait)
	}
	if err == nil {
		err = x.writer.within(ctx, "BEGIN IMMEDIATE", func() error { return x.writer.prepare(x.fill) })
	}
	if err == nil {
		err = x.writer.row("SELECT made FROM state", nil, &x.file)
	}
	if err == nil {
		x.is, err = sqlitefile.Identify(x.path)
	}
	if err != nil {
		return errors.Join(err, x.disconnect())
	}
	return nil
}

// disconnect closes the file, which must not be in use.
func (x *Index) disconnect() error {
	var errs []error
	for range x.opened.Swap(0) {
		errs = append(errs, (<-x.idle).close())
	}
	if x.writer != nil {
		errs = append(errs, x.writer.close())
	}
	errs = append(errs, x.db.Close())
	x.writer, x.db = nil, nil
	return errors.Join(errs...)
}

// rebuild replaces a damaged file with an empty one. If another process has already replaced the
// file, or the file was only inaccessible, rebuild opens the existing file. If rebuild fails, the
// index stays broken.
func (x *Index) rebuild(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errClosed
	}
	x.broken.Store(true)
	made := x.file
	if x.db != nil {
		_ = x.disconnect() // ignore errors, because the content is not needed
	}
	err := x.open(ctx)
	if err == nil && x.file == made && !x.another.Load() {
		x.log.Warn("index is damaged; rebuilding it", "path", x.path)
		_ = x.disconnect() // ignore errors, because the file is deleted next
		if err = remove(x.path); err == nil {
			err = x.open(ctx)
		}
	}
	if x.broken.Store(err != nil); err == nil {
		x.another.Store(false)
	}
	return err
}

// prepare creates the tables in an empty file. If the file has another format, prepare returns
// errFormat.
func (c *conn) prepare(fillBytes int) error {
	var app, version, tables int
	err := c.row("SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version",
		nil, &app, &version, &tables)
	switch {
	case err != nil || app == applicationID && version == format:
		return err
	case app != 0 || version != 0 || tables != 0:
		return errFormat
	}
	if err := c.run(nil, schema...); err != nil {
		return err
	}
	return c.tune(fillBytes)
}

// remove deletes a file and SQLite's files next to it.
func remove(path string) error {
	var errs []error
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// unused is the time after which Tidy deletes an unused index, such as that of an earlier
// configuration.
const unused = 7 * 24 * time.Hour

// touch records that the index is in use.
func (x *Index) touch() error { return os.Chtimes(x.path, time.Time{}, time.Now()) }

// Tidy deletes the indexes in the folder of x that were unused for a week. Open and Tidy record
// that x is in use.
func (x *Index) Tidy() error {
	errs := []error{x.touch()}
	files, err := os.ReadDir(filepath.Dir(x.path))
	errs = append(errs, err)
	for _, f := range files {
		path := filepath.Join(filepath.Dir(x.path), f.Name())
		info, err := f.Info()
		if err != nil || filepath.Ext(path) != ".db" || time.Since(info.ModTime()) < unused {
			continue
		}
		if _, err := os.Stat(path + "-shm"); errors.Is(err, fs.ErrNotExist) { // this file exists while a process has the index open
			errs = append(errs, remove(path))
		}
	}
	return errors.Join(errs...)
}

// read runs do in a read transaction, which sees one state of the file.
func (x *Index) read(ctx context.Context, do func(c *conn) error) (err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		return errClosed
	}
	var c *conn
	select {
	case c = <-x.idle:
	default:
		if int(x.opened.Add(1)) <= cap(x.idle) {
			if c, err = x.reader(ctx); err != nil {
				x.opened.Add(-1)
				return err
			}
			break
		}
		x.opened.Add(-1)
		select {
		case c = <-x.idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { x.idle <- c }()
	return c.within(ctx, "BEGIN", func() error { return do(c) })
}

// reader opens a connection for reading. If the file was deleted or replaced, reader returns
// errAnother; open connections keep the old file.
func (x *Index) reader(ctx context.Context) (*conn, error) {
	c, err := connect(ctx, x.db, "query_only = 1", "cache_size = -2000")
	if err == nil {
		var made string
		if err = c.row("SELECT made FROM state", nil, &made); err == nil && made == x.file {
			return c, nil
		}
		err = errors.Join(err, c.close())
	}
	switch code := sqlitefile.Code(err); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil, code == sqlite3.SQLITE_CANTOPEN, code == sqlite3.SQLITE_ERROR: // another file, no file, or no table
		return nil, errors.Join(errAnother, err)
	}
	return nil, err // the error has another cause, or reports damage
}

// change runs do in a transaction, and stores the state if do changed it.
func (x *Index) change(ctx context.Context, do func(w *work) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		return errClosed
	}
	select {
	case x.writing <- struct{}{}:
		defer func() { <-x.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if x.is.Removed() {
		return errAnother
	}
	c := x.writer
	return c.within(ctx, "BEGIN IMMEDIATE", func() error {
		s, err := c.state()
		if err != nil {
			return err
		}
		w := &work{conn: c, state: s, x: x}
		if w.encoder, err = x.coder.Begin(c.row); err != nil {
			return err
		}
		if err := do(w); err != nil || w.state == s {
			return err
		}
		s = w.state
		_, err = c.exec(`UPDATE state SET turn = ?, stage = ?, epoch = ?, seq = ?, time = ?, after = ?, done = ?, next = ?,
			passages = ?, length = ?, model = ?, moved = ?`,
			s.turn, s.stage, s.epoch, s.seq, s.time, s.after, s.done, s.next, s.passages, s.length, s.model, s.moved)
		return err
	})
}

// rest releases the memory of the writer's cache. The writer is idle most of the time.
func (x *Index) rest() {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		return
	}
	select {
	case x.writing <- struct{}{}:
		_, _ = x.writer.exec("PRAGMA shrink_memory")
		<-x.writing
	default: // the writer is in use
	}
}

// damaged reports whether err means that the file must be rebuilt.
func damaged(err error) bool {
	return errors.Is(err, errFormat) || errors.Is(err, errDamaged) || errors.Is(err, errAnother) || sqlitefile.Code(err) == sqlite3.SQLITE_CORRUPT || sqlitefile.Code(err) == sqlite3.SQLITE_NOTADB
}

// readOnly reports whether err means that the file or its folder cannot be written.
func readOnly(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok || sqlitefile.Code(err) == sqlite3.SQLITE_READONLY || sqlitefile.Code(err) == sqlite3.SQLITE_CANTOPEN || sqlitefile.Code(err) == sqlite3.SQLITE_PERM
}

// explain adds the operation to an error. To errAnother and common SQLite errors, it also adds a
// code and a sentinel error.
func explain(what string, err error) error {
	if errors.Is(err, errAnother) {
		return millrace.Coded("index-damaged", fmt.Errorf("%s: %w: %w", what, millrace.ErrUnavailable, err))
	}
	var name string
	sentinel := millrace.ErrUnavailable
	switch sqlitefile.Code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		name = "index-busy"
	case sqlite3.SQLITE_FULL:
		name = "disk-full"
	case sqlite3.SQLITE_IOERR:
		name = "disk-error"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		name = "index-damaged"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		sentinel, name = millrace.ErrForbidden, "index-read-only"
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return millrace.Coded(name, fmt.Errorf("%s: %w: %w", what, sentinel, err))
}
