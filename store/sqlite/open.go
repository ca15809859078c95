package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	driver "modernc.org/sqlite" // also the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Options configure a [Store]. The zero value works.
type Options struct {
	Logger *slog.Logger     // nil = silence
	Now    func() time.Time // the clock; nil = time.Now
	Wait   time.Duration    // how long to wait for another process that writes; 0 = 5 s
	// Readers is the number of connections that read, each with a cache of
	// 4 MB; 0 = one per processor, at most 4.
	Readers int
	// ReadOnly: the file is there, and stays as it is: what would change it is
	// ErrForbidden. Others may write to it all the while.
	ReadOnly bool

	maxPages  int // of the file, 0 = no limit: how tests fill a disk
	fillBytes int // 0 = fillBytes: how tests have many segments
}

// Store is one file that keeps sites. Its methods are safe for concurrent use.
type Store struct {
	path   string
	epoch  string
	log    *slog.Logger
	now    func() time.Time
	writer *writer
	read   *reader
	coder  coder
	kinds  usageKinds
	texts  atomic.Pointer[usageTexts] // nil = none, or a Record has them

	fillBytes int // of words, gathered before they are written
}

// Open opens the store in a file, which it creates if need be, for its owner
// alone to read. The folder must exist.
// ErrInvalid: the file is no store, damaged, or of another version of the store;
// ErrUnavailable: another process keeps it locked; ErrForbidden: it cannot be
// written. With ReadOnly, ErrNotFound: there is no such file. nil options are
// the zero value.
func Open(ctx context.Context, path string, o *Options) (*Store, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Wait <= 0 {
		opts.Wait = 5 * time.Second
	}
	if opts.Readers <= 0 {
		opts.Readers = min(runtime.NumCPU(), 4)
	}
	what := "store " + path
	if err := usable(path, opts.ReadOnly); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	s := &Store{
		path: path, log: opts.Logger, now: opts.Now, fillBytes: cmp.Or(opts.fillBytes, fillBytes),
	}
	if err := s.open(ctx, opts); err != nil {
		_ = s.Close()
		return nil, explain(what, err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) error {
	wait := fmt.Sprintf("busy_timeout(%d)", o.Wait.Milliseconds())
	if o.ReadOnly {
		return s.openReader(ctx, o, wait)
	}
	if o.maxPages == 0 {
		o.maxPages = 4294967294 // SQLite's own limit
	}
	if err := private(s.path); err != nil {
		return err
	}
	db, err := connect(s.path, 1, wait)
	if err != nil {
		return err
	}
	s.writer = &writer{turn: make(chan struct{}, 1), db: db, stmts: make(map[string]*sql.Stmt), most: o.Wait / 3}
	if s.writer.conn, err = db.Conn(ctx); err != nil {
		return err
	}
	version, err := fileVersion(ctx, s.writer.conn)
	if err != nil {
		return err // before anything in somebody else's file is changed
	}
	if version == 0 {
		// Only a file without a table and not yet in WAL mode takes it.
		if err := s.writer.pragma(ctx, "auto_vacuum = INCREMENTAL"); err != nil {
			return err
		}
	}
	for _, p := range []string{
		"journal_mode = WAL", "synchronous = FULL", "cache_size = -8000", "journal_size_limit = 67108864",
		"wal_autocheckpoint = 8000", fmt.Sprint("max_page_count = ", o.maxPages),
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
	db, err = connect(s.path, o.Readers, wait, "query_only(1)", "cache_size(-4000)")
	if err != nil {
		return err
	}
	s.read = &reader{db: db}
	return nil
}

// openReader opens a store that is not changed. What a writer that was killed
// has left in the log stays there. If there is nothing, whoever closes last
// takes the files away that SQLite keeps beside the store. Where these cannot be
// made, nobody can be writing to it.
func (s *Store) openReader(ctx context.Context, o Options, wait string) error {
	s.writer = &writer{turn: make(chan struct{}, 1)}
	modes := []string{"&mode=rw", "&mode=ro&immutable=1"}
	if info, err := os.Stat(s.path + "-wal"); err == nil && info.Size() > 0 {
		modes = []string{"&mode=ro"}
	}
	for i, mode := range modes {
		db, err := connect(s.path, o.Readers, wait, "query_only(1)", "cache_size(-4000)"+mode)
		if err != nil {
			return err
		}
		s.read = &reader{db: db}
		err = s.inspect(ctx)
		if e, ok := errors.AsType[*driver.Error](err); !ok || i == len(modes)-1 || !beside(e.Code()) {
			return err
		}
		if err := s.read.close(); err != nil {
			return err
		}
	}
	return nil
}

// beside reports whether an error of SQLite says that it cannot keep its files
// beside a store.
func beside(code int) bool {
	return code&0xFF == sqlite3.SQLITE_CANTOPEN || code&0xFF == sqlite3.SQLITE_READONLY
}

// inspect reads what every store says of itself.
func (s *Store) inspect(ctx context.Context) error {
	c, err := s.read.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	switch version, err := fileVersion(ctx, c); {
	case err != nil:
		return err
	case version == 0:
		return millrace.Coded("store-wal", fmt.Errorf("%w: nothing is in the file; what was written last may lie beside it, in %s-wal", millrace.ErrNotFound, filepath.Base(s.path)))
	}
	return c.QueryRowContext(ctx, "SELECT epoch FROM store").Scan(&s.epoch)
}

// connect makes a pool of connections with the given pragmas, none of them
// open yet.
func connect(path string, size int, pragmas ...string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := "file:" + (&url.URL{Path: filepath.ToSlash(abs)}).EscapedPath() + "?_pragma=" + strings.Join(pragmas, "&_pragma=")
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// usable finds early what SQLite has only numbers for.
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
			return millrace.Coded("no-folder", fmt.Errorf("%w: there is no folder %s: create it first", millrace.ErrInvalid, dir))
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", millrace.ErrForbidden, err)
	case info.IsDir():
		return fmt.Errorf("%w: it is a folder: name a file in it", millrace.Coded("is-folder", millrace.ErrInvalid))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file", millrace.Coded("no-file", millrace.ErrInvalid))
	}
	flag := os.O_RDWR
	if readOnly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if errors.Is(err, fs.ErrPermission) && readOnly {
		return fmt.Errorf("%w: %w", millrace.ErrForbidden, err)
	} else if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: it is read-only: make the file and its folder writable (%w)", millrace.ErrForbidden, err)
	} else if err != nil {
		return err
	}
	defer f.Close()
	// SQLite takes a file that is shorter than its head for an empty one.
	head := make([]byte, 16)
	if n, err := io.ReadFull(f, head); n > 0 && (err != nil || string(head) != "SQLite format 3\x00") {
		return fmt.Errorf("%w: it is not a store: choose another file, or restore a backup", millrace.Coded("no-store", millrace.ErrInvalid))
	}
	return nil
}

// Close closes the store. Views of it give errors from then on.
func (s *Store) Close() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	s.coder.close()
	if err := errors.Join(errs...); err != nil {
		return explain("close store "+s.path, err)
	}
	return nil
}

// Sites lists the names of the sites in the store that have ever had a page,
// in order.
func (s *Store) Sites(ctx context.Context) ([]string, error) {
	var names []string
	err := s.read.rows(ctx, "SELECT name FROM site WHERE seq > 0 ORDER BY name", nil, func(scan scanner) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	})
	if err != nil {
		return nil, explain("list the sites of store "+s.path, err)
	}
	return names, nil
}

// Site opens the site of a name, which it creates if need be. The
// configuration is not kept: what was derived by another one is told by its
// fingerprint, and [Site.Derive] brings it up to date. ErrInvalid: a base is
// no absolute URL that ends with "/", or two taggers are of one room.
func (s *Store) Site(ctx context.Context, name string, c store.Config) (*Site, error) {
	what := "site " + name
	if name == "" {
		return nil, fmt.Errorf("open site: %w: its name is empty", millrace.ErrInvalid)
	}
	if c.Docs == "" {
		c.Docs = c.Base
	}
	for _, base := range []string{c.Base, c.Docs} {
		if u, err := url.Parse(base); err != nil || u.Host == "" || !strings.HasSuffix(base, "/") {
			return nil, fmt.Errorf("%s: %w: base %q is no absolute URL that ends with /", what, millrace.ErrInvalid, base)
		}
	}
	rooms := make(map[string]bool)
	for _, t := range c.Taggers {
		if t.Room == "" || strings.ContainsAny(t.Room, " ") || rooms[t.Room] || t.Tag == nil {
			return nil, fmt.Errorf("%s: %w: the tagger of room %q is incomplete or the second one", what, millrace.ErrInvalid, t.Room)
		}
		rooms[t.Room] = true
	}
	site := &Site{store: s, name: name, config: c, rooms: rooms, fingerprint: fingerprint(c), indexer: make(chan *indexing, 1)}
	err := s.read.row(ctx, "SELECT id FROM site WHERE name = ?", []any{name}, &site.id)
	if absent(err) {
		err = s.writer.do(ctx, func(t *tx) error {
			err := t.exec("INSERT INTO site (name, fingerprint) VALUES (?, ?) ON CONFLICT DO NOTHING", name, site.fingerprint)
			if err != nil {
				return err
			}
			return t.row("SELECT id FROM site WHERE name = ?", []any{name}, &site.id)
		})
	}
	if err != nil {
		return nil, explain(what+" of store "+s.path, err)
	}
	return site, nil
}

// Site is one site in a [Store]. It implements [store.Site].
type Site struct {
	store       *Store
	id          int64
	name        string
	config      store.Config
	rooms       map[string]bool // of the taggers
	fingerprint string
	indexer     chan *indexing // one that is idle
	searches    searches
}

var _ store.Site = (*Site)(nil)
