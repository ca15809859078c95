package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace"
)

// scanner copies the columns of one row to dest.
type scanner func(dest ...any) error

// writer is the only connection that writes. Statements run without the caller's
// context, because the driver would start a goroutine for each. Callers check their
// context between statements.
type writer struct {
	turn  chan struct{} // holds one token while a transaction runs
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt

	// Only the holder of the turn uses the following fields:
	most  time.Duration // longest use of the lock without a pause
	used  time.Duration // time for which the lock was in use so far
	ended time.Time     // end of the last transaction

	idle *time.Timer // calls rest
}

// poll is the interval at which SQLite checks for the lock of another process.
const poll = 100 * time.Millisecond

// pause allows other processes to write after a long use of the lock. Without the pause, this
// process would acquire the lock again before they check it.
func (w *writer) pause(ctx context.Context) error {
	switch {
	case time.Since(w.ended) > poll:
		w.used = 0
	case w.used > w.most:
		w.used = 0
		select {
		case <-time.After(poll + poll/2):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// tx is one write transaction.
type tx struct{ w *writer }

// do runs f in an atomic transaction.
func (w *writer) do(ctx context.Context, f func(t *tx) error) error {
	if w.db == nil {
		return fmt.Errorf("%w: the store is open for reading only", millrace.ErrForbidden)
	}
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turn }()
	if err := w.pause(ctx); err != nil {
		return err
	}
	t := &tx{w}
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	began := time.Now()
	defer func() {
		w.ended = time.Now()
		w.used += w.ended.Sub(began)
	}()
	committed := false
	defer func() {
		if !committed {
			// SQLite may have rolled back already, for example on a full disk.
			_ = t.exec("ROLLBACK")
		}
	}()
	if err := f(t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := t.exec("COMMIT"); err != nil {
		return err
	}
	committed = true
	return nil
}

func (w *writer) pragma(ctx context.Context, p string) error {
	_, err := w.conn.ExecContext(ctx, "PRAGMA "+p)
	return err
}

// restAfter is the time from a publication until the memory of the writer's cache is released.
// Another publication within this time is likely to use the cache.
const restAfter = 2 * time.Second

// rest releases the memory of the writer's cache, unless a transaction is running.
func (w *writer) rest() {
	select {
	case w.turn <- struct{}{}:
		_ = w.pragma(context.Background(), "shrink_memory")
		<-w.turn
	default:
	}
}

func (w *writer) close() error {
	if w.db == nil {
		return nil // the store is read-only
	}
	if w.idle != nil {
		w.idle.Stop()
	}
	w.turn <- struct{}{} // wait for the current transaction
	defer func() { <-w.turn }()
	for _, st := range w.stmts {
		st.Close()
	}
	clear(w.stmts)
	var err error
	if w.conn != nil {
		if err = w.conn.Close(); errors.Is(err, sql.ErrConnDone) {
			err = nil
		}
	}
	return errors.Join(err, w.db.Close())
}

func (t *tx) stmt(query string) (*sql.Stmt, error) {
	st := t.w.stmts[query]
	if st == nil {
		var err error
		if st, err = t.w.conn.PrepareContext(context.Background(), query); err != nil {
			return nil, err
		}
		t.w.stmts[query] = st
	}
	return st, nil
}

// exec runs a statement.
func (t *tx) exec(query string, args ...any) error {
	_, err := t.count(query, args...)
	return err
}

// count runs a statement and returns the number of affected rows.
func (t *tx) count(query string, args ...any) (int64, error) {
	st, err := t.stmt(query) //nolint:sqlclosecheck // kept until the store closes
	if err != nil {
		return 0, err
	}
	r, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// row reads one row. If no row is found, it returns errNoRow.
func (t *tx) row(query string, args []any, dest ...any) error {
	st, err := t.stmt(query) //nolint:sqlclosecheck // kept until the store closes
	if err != nil {
		return err
	}
	return st.QueryRowContext(context.Background(), args...).Scan(dest...)
}

// rows reads rows. f must not use the transaction, because the rows are open.
func (t *tx) rows(query string, args []any, f func(scan scanner) error) error {
	st, err := t.stmt(query)
	if err != nil {
		return err
	}
	return each(st, args, f)
}

// errEnough stops the reading of rows early. Callers do not return it.
var errEnough = errors.New("enough rows")

func each(st *sql.Stmt, args []any, f func(scan scanner) error) error {
	rows, err := st.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return rows.Err()
}

// reader is the pool of read connections. Each statement runs in its own transaction.
type reader struct {
	db    *sql.DB
	stmts sync.Map // query to *sql.Stmt
}

func (r *reader) close() error { return r.db.Close() }

func (r *reader) stmt(query string) (*sql.Stmt, error) {
	if st, ok := r.stmts.Load(query); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := r.db.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	if old, ok := r.stmts.LoadOrStore(query, st); ok {
		st.Close() //nolint:sqlclosecheck // the other one is kept
		return old.(*sql.Stmt), nil
	}
	return st, nil
}

// row reads one row. If no row is found, it returns errNoRow.
func (r *reader) row(ctx context.Context, query string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st, err := r.stmt(query) //nolint:sqlclosecheck // kept until the store closes
	if err != nil {
		return err
	}
	return st.QueryRowContext(context.Background(), args...).Scan(dest...)
}

// rows reads a small number of rows. The connection is busy until f has handled the last row.
func (r *reader) rows(ctx context.Context, query string, args []any, f func(scan scanner) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st, err := r.stmt(query)
	if err != nil {
		return err
	}
	return each(st, args, f)
}

// snapshot runs f with consistent reads.
func (r *reader) snapshot(ctx context.Context, f func(q querier) error) error {
	c, err := r.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(context.Background(), "BEGIN"); err != nil {
		return err
	}
	defer func() { _, _ = c.ExecContext(context.Background(), "ROLLBACK") }()
	return f(connQuerier{c})
}

// querier reads rows in a write transaction or a snapshot.
type querier interface {
	row(query string, args []any, dest ...any) error
	rows(query string, args []any, f func(scan scanner) error) error
}

// column reads rows of one column.
func column[T any](q querier, query string, args ...any) (values []T, err error) {
	err = q.rows(query, args, func(scan scanner) error {
		var v T
		err := scan(&v)
		values = append(values, v)
		return err
	})
	return values, err
}

type connQuerier struct{ c *sql.Conn }

func (q connQuerier) row(query string, args []any, dest ...any) error {
	return q.c.QueryRowContext(context.Background(), query, args...).Scan(dest...)
}

func (q connQuerier) rows(query string, args []any, f func(scan scanner) error) error {
	st, err := q.c.PrepareContext(context.Background(), query)
	if err != nil {
		return err
	}
	defer st.Close()
	return each(st, args, f)
}
