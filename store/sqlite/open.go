package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sqlitefile"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

// settings are the options for opening a file.
type settings struct {
	store.Options
	wait     time.Duration // how long to wait for the lock of another process; a write waits maxTries times. If zero, 5 s.
	maxPages int64         // maximum size of the file in pages, for tests of a full disk; if zero, no limit
}

// readers is the maximum number of read connections. Each has a cache of 2 MB.
const readers = 4

// sqlStore is the part that the SQL engines share.
type sqlStore = sqlstore.Store

// Store is a store in one file. Its methods are safe for concurrent use.
type Store struct {
	*sqlStore
	db *database
}

// Open opens the store in a file, or creates it with access for the owner only. The folder
// must exist. If the file is not a store, is damaged or has an unsupported version, Open returns
// ErrInvalid. If another process locks it, Open returns ErrUnavailable. If it is not writable,
// Open returns ErrForbidden. With ReadOnly, if the file is absent, Open returns ErrNotFound. o
// may be nil.
func Open(ctx context.Context, path string, o *store.Options) (*Store, error) {
	return openFile(ctx, path, settings{Options: record.Options(o)})
}

func openFile(ctx context.Context, path string, o settings) (*Store, error) {
	o.Options = record.Options(&o.Options)
	o.wait = cmp.Or(o.wait, 5*time.Second)
	o.maxPages = cmp.Or(o.maxPages, 4294967294) // SQLite's limit
	what := "store " + path
	if err := usable(path, o.ReadOnly); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	f := &file{path: path}
	err := f.open(ctx, o)
	if err == nil {
		f.is, err = sqlitefile.Identify(path)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", what, advise(err))
	}
	return &Store{sqlstore.New(&f.database, path, f.epoch, o.Options), &f.database}, nil
}

// Present returns ErrUnavailable with the code store-removed if the file of the store was removed
// or replaced while the store was open. Writes then return the same error.
func (s *Store) Present() error { return s.db.present() }

// Verify implements store.Verifier. It also checks the structure of the file.
func (s *Store) Verify(ctx context.Context, repair bool, damaged func(name string, err error, repaired bool)) (read int, err error) {
	err = s.db.Reader(ctx).Rows("PRAGMA integrity_check(100)", nil, func(scan sqlstore.Scanner) error {
		var problem string
		if err := scan(&problem); err != nil || problem == "ok" {
			return err
		}
		damaged("database", millrace.Coded("store-damaged", fmt.Errorf("%w: %s; restore a backup", millrace.ErrInvalid, problem)), false)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return s.sqlStore.Verify(ctx, repair, damaged)
}

// file is a file that is being opened.
type file struct {
	path  string
	epoch string
	database
}

func (s *file) open(ctx context.Context, o settings) error {
	wait := fmt.Sprintf("_pragma=busy_timeout(%d)", o.wait.Milliseconds())
	if o.ReadOnly {
		return s.openReader(ctx, wait)
	}
	if err := s.inspectFile(ctx, wait); err != nil {
		return err
	}
	if err := private(s.path); err != nil {
		return err
	}
	db, err := connect(s.path, 1, wait)
	if err != nil {
		return err
	}
	s.writer = &writer{turn: make(chan struct{}, 1), db: db, stmts: make(map[string]*sql.Stmt), most: o.wait / 3}
	if s.writer.conn, err = db.Conn(ctx); err != nil {
		return err
	}
	version, err := fileVersion(ctx, s.writer.conn)
	if err != nil {
		return err
	}
	if version == 0 {
		// The pragma applies only to a file without tables that is not yet in WAL mode.
		if err := s.writer.pragma(ctx, "auto_vacuum = INCREMENTAL"); err != nil {
			return err
		}
	}
	if err := sqlitefile.UseWAL(ctx, s.writer.conn, o.wait); err != nil {
		return err
	}
	for _, p := range []string{
		"synchronous = FULL", "cache_size = -8000", "journal_size_limit = 67108864", "wal_autocheckpoint = 8000",
		fmt.Sprint("max_page_count = ", o.maxPages),
	} {
		if err := s.writer.pragma(ctx, p); err != nil {
			return err
		}
	}
	if err := prepareFile(ctx, s.writer.conn); err != nil {
		return err
	}
	if err := s.writer.conn.QueryRowContext(ctx, "SELECT epoch FROM store").Scan(&s.epoch); err != nil {
		return err
	}
	s.writer.idle = time.AfterFunc(cacheTime, s.writer.releaseCache)
	// Without mode=rw, a connection that is opened after the file was removed would create it again.
	db, err = connect(s.path, min(runtime.NumCPU(), readers), wait, "_pragma=query_only(1)", "_pragma=cache_size(-2000)", "mode=rw")
	if err != nil {
		return err
	}
	s.read = &reader{db: db}
	return nil
}

// openReader opens a store without changing it. It keeps the write-ahead log of a killed writer.
// Without such a log, the last process that closes the store removes SQLite's files next to it. If
// these files cannot be created, no process can be writing, so the store is opened as immutable.
func (s *file) openReader(ctx context.Context, wait string) error {
	s.writer = &writer{turn: make(chan struct{}, 1)}
	modes := []string{"mode=rw", "mode=ro&immutable=1"}
	if info, err := os.Stat(s.path + "-wal"); err == nil && info.Size() > 0 {
		modes = []string{"mode=ro"}
	}
	for i, mode := range modes {
		db, err := connect(s.path, min(runtime.NumCPU(), readers), wait, "_pragma=query_only(1)", "_pragma=cache_size(-2000)", mode)
		if err != nil {
			return err
		}
		s.read = &reader{db: db}
		err = s.inspect(ctx)
		if i == len(modes)-1 || !isSideFileError(sqlitefile.Code(err)) {
			return err
		}
		if err := s.read.close(); err != nil {
			return err
		}
	}
	return nil
}

// inspectFile rejects a file that is not a store of this version. It uses a read-only connection,
// because opening a file for writing replays the log of a killed process. It accepts files that
// SQLite cannot read this way, because the writer checks them.
func (s *file) inspectFile(ctx context.Context, wait string) error {
	mode := "mode=ro&immutable=1"
	if info, err := os.Stat(s.path + "-wal"); err == nil && info.Size() > 0 {
		mode = "mode=ro"
	}
	db, err := connect(s.path, 1, wait, "_pragma=query_only(1)", mode)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	c, err := db.Conn(ctx)
	if err == nil {
		defer c.Close()
		_, err = fileVersion(ctx, c)
	}
	if sqlitefile.Code(err) != 0 {
		return nil
	}
	return err
}

// isSideFileError reports whether an error code means that SQLite cannot create its files next to a
// store.
func isSideFileError(code int) bool {
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY
}

// inspect checks the version of the tables, and reads the epoch.
func (s *file) inspect(ctx context.Context) error {
	c, err := s.read.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	version, err := fileVersion(ctx, c)
	switch {
	case err != nil:
		return err
	case version == 0:
		return millrace.Coded("store-wal", fmt.Errorf("%w: the file is an empty database; recent writes may be next to it, in %s-wal", millrace.ErrNotFound, filepath.Base(s.path)))
	}
	if version < newest {
		return millrace.Coded("store-older", fmt.Errorf("%w: the tables are of an older millrace; open the store for writing once", millrace.ErrInvalid))
	}
	return c.QueryRowContext(ctx, "SELECT epoch FROM store").Scan(&s.epoch)
}

// connect returns a pool of connections with the given parameters. It opens no connection yet.
func connect(path string, size int, parameters ...string) (*sql.DB, error) {
	db, err := sqlitefile.Open(path, parameters...)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// usable returns a clear error for conditions that SQLite reports only by number.
func usable(path string, readOnly bool) error {
	if path == "" {
		return fmt.Errorf("%w: the path is empty", millrace.Coded("no-path", millrace.ErrInvalid))
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist) && readOnly:
		return millrace.ErrNotFound
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(path)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return millrace.Coded("no-folder", fmt.Errorf("%w: folder %s does not exist; create it first", millrace.ErrInvalid, dir))
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", millrace.ErrForbidden, err)
	case info.IsDir():
		return fmt.Errorf("%w: the path is a folder; name a file in it", millrace.Coded("is-folder", millrace.ErrInvalid))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: not a regular file", millrace.Coded("no-file", millrace.ErrInvalid))
	}
	flag := os.O_RDWR
	if readOnly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if errors.Is(err, fs.ErrPermission) && readOnly {
		return fmt.Errorf("%w: %w", millrace.ErrForbidden, err)
	} else if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: the file is read-only; make the file and its folder writable (%w)", millrace.ErrForbidden, err)
	} else if err != nil {
		return err
	}
	defer f.Close()
	// SQLite treats a file that is shorter than a header as an empty database.
	head := make([]byte, 16)
	if n, err := io.ReadFull(f, head); n > 0 && (err != nil || string(head) != "SQLite format 3\x00") {
		return fmt.Errorf("%w: not a store; choose another file, or restore a backup", millrace.Coded("no-store", millrace.ErrInvalid))
	}
	return nil
}
