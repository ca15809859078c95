package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/zdict"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// DB is the database of an engine. All methods are safe for concurrent use. Errors of the database
// contain advice for operators.
//
// Statements are valid in both SQLite and PostgreSQL, except for the parts that an engine
// translates: the parameters "?" and "?1", the hints "INDEXED BY", and the condition "= ANY(?)" with
// a list as the last argument.
type DB interface {
	// Reader returns a Querier that runs each statement in a transaction of its own.
	Reader(ctx context.Context) Querier
	// Snapshot runs f with consistent reads.
	Snapshot(ctx context.Context, f func(q Querier) error) error
	// Write runs f in an atomic and durable transaction that holds the lock l. If the store is
	// read-only, Write returns ErrForbidden.
	Write(ctx context.Context, l Lock, f func(t Tx) error) error
	// Writable reports whether Write can succeed.
	Writable() bool
	// Reserve returns a clause for a query whose rows must not change before the transaction ends.
	Reserve() string
	// Claim returns a clause for a query whose rows the transaction changes. Rows that other
	// transactions have claimed are omitted.
	Claim() string
	// Shrink returns free space to the operating system, in transactions run by change. If rarely
	// is set, Shrink does so only if it is worth the work.
	Shrink(ctx context.Context, rarely bool, change func(f func(t Tx) error) error) error
	// Clock returns the time of the clock that all users of the database share. q is a Querier of
	// this database.
	Clock(q Querier) (time.Time, error)
	// ReleaseCache may release the memory of the database's cache after a few seconds, unless more
	// writes follow. It is called after each publication.
	ReleaseCache()
	// Close closes the database. Everything opened from it then returns errors.
	Close() error
}

// Lock names a row that one transaction at a time holds. The zero Lock locks nothing.
type Lock struct {
	Table string // LockSites, LockSite, LockUsage or LockFleet
	ID    int64
}

// Values of Lock.Table, and what each of them locks.
const (
	LockSites = "store" // all sites
	LockSite  = "site"  // the logs of a site
	LockUsage = "usage" // the events of a site
	LockFleet = "fleet" // all groups of the fleet
)

// Scanner copies the columns of one row to dest.
type Scanner func(dest ...any) error

// Querier reads rows.
type Querier interface {
	// Row reads one row. If no row is found, it returns [sql.ErrNoRows].
	Row(query string, args []any, dest ...any) error
	// Rows reads rows. f must not use the Querier, because the rows are open. If f returns
	// ErrEnough, Rows stops and returns nil.
	Rows(query string, args []any, f func(scan Scanner) error) error
}

// Tx is a write transaction.
type Tx interface {
	Querier
	// Exec runs a statement. An engine may delay it until the next call or the commit, which then
	// returns its error.
	Exec(query string, args ...any) error
	// Count runs a statement and returns the number of affected rows.
	Count(query string, args ...any) (int64, error)
	// Insert inserts rows of width columns each. into names the table and its columns.
	// conflict is the clause ON CONFLICT, or "".
	Insert(into, conflict string, width int, args []any) error
	// IDs returns n unused IDs of a table.
	IDs(table string, n int) ([]int64, error)
}

// ErrEnough stops the reading of rows early.
var ErrEnough = errors.New("enough rows")

// Store implements [store.Store] with a DB.
type Store struct {
	db     DB
	name   string // name of the store in errors
	epoch  string
	log    *slog.Logger
	now    func() time.Time // store.Options.Now; may be nil
	bodies zdict.Coder
	tags   zdict.Coder
	texts  atomic.Pointer[usageTexts] // nil = not loaded, or in use by a Record
}

var _ store.Store = (*Store)(nil)

// New returns the store in a database that contains the tables. name is the name of the store in
// errors.
func New(db DB, name, epoch string, o store.Options) *Store {
	return &Store{db: db, name: name, epoch: epoch, log: o.Logger, now: o.Now, bodies: zdict.Coder{Series: "body"}, tags: zdict.Coder{Series: "tag"}}
}

// Close implements [store.Store].
func (s *Store) Close() error { return wrap("close store "+s.name, s.db.Close()) }

// logBits is the number of bits that a sequence number takes in the ID of an entry or event. The
// higher bits are the ID of the log or site. So the ID represents the key (log, seq), and the rows
// of a log are one range of the table.
const logBits = 34

// forever is the value of until in a current entry or tag. Statements contain it as a literal,
// because a partial index requires a literal.
const forever = 1<<logBits - 1

// NewEpoch returns a random epoch.
func NewEpoch() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Read never fails.
	return hex.EncodeToString(b[:])
}

// change runs f in a transaction. If the lease has expired or has another holder, it returns
// ErrConflict. The zero Lease is not checked.
func (s *Store) change(ctx context.Context, lock Lock, l store.Lease, f func(t Tx, now time.Time) error) error {
	return s.db.Write(ctx, lock, func(t Tx) error {
		now, err := s.clock(t)
		if err != nil {
			return err
		}
		if group, ok := groupOf(l); ok {
			if err := heldGroup(t, l, group, now, s.db.Reserve()); err != nil {
				return err
			}
		} else if l != (store.Lease{}) {
			var value []byte
			if err := t.Row(stateValue+s.db.Reserve(), []any{record.LeaseNamespace, l.Name}, &value); err != nil && !absent(err) {
				return err
			}
			if err := record.CheckLease(l, value, now); err != nil {
				return err
			}
		}
		return f(t, now)
	})
}

// clock returns the time of the store's clock. q is a Querier of the store.
func (s *Store) clock(q Querier) (time.Time, error) {
	if s.now != nil {
		return s.now().UTC(), nil
	}
	now, err := s.db.Clock(q)
	return now.UTC(), err
}

// Now implements [store.Store].
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, err := s.clock(s.db.Reader(ctx))
	return now, wrap("clock of store "+s.name, err)
}

// wrap adds the operation to an error.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

var errNoRow = sql.ErrNoRows

// absent reports whether err means that no row was found.
func absent(err error) bool { return errors.Is(err, errNoRow) }

// column reads rows of one column.
func column[T any](q Querier, query string, args ...any) (values []T, err error) {
	err = q.Rows(query, args, func(scan Scanner) error {
		var v T
		err := scan(&v)
		values = append(values, v)
		return err
	})
	return values, err
}
