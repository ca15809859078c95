package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sqlitefile"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

// database implements [sqlstore.DB].
type database struct {
	writer *writer
	read   *reader
	is     sqlitefile.Identity
}

var _ sqlstore.DB = (*database)(nil)

// Reader implements [sqlstore.DB].
func (d *database) Reader(ctx context.Context) sqlstore.Querier { return readQuerier{ctx, d.read} }

// Snapshot implements [sqlstore.DB].
func (d *database) Snapshot(ctx context.Context, f func(q sqlstore.Querier) error) error {
	return d.read.snapshot(ctx, f)
}

// Write implements [sqlstore.DB]. A file has one writer, so no row needs a lock.
func (d *database) Write(ctx context.Context, _ sqlstore.Lock, f func(t sqlstore.Tx) error) error {
	return d.writer.do(ctx, func(t *tx) error {
		if err := d.present(); err != nil {
			return err
		}
		return f(t)
	})
}

// present returns ErrUnavailable if the file was removed or replaced.
func (d *database) present() error {
	if d.is.Removed() {
		return millrace.Coded("store-removed", fmt.Errorf("%w: the file of the store was removed or replaced while it was open; put it back, or restart", millrace.ErrUnavailable))
	}
	return nil
}

// Writable implements [sqlstore.DB].
func (d *database) Writable() bool { return d.writer.db != nil }

// Reserve implements [sqlstore.DB].
func (d *database) Reserve() string { return "" }

// Claim implements [sqlstore.DB].
func (d *database) Claim() string { return "" }

// ReleaseCache implements [sqlstore.DB].
func (d *database) ReleaseCache() { d.writer.idle.Reset(cacheTime) }

// Clock implements [sqlstore.DB]. All processes are on one machine.
func (d *database) Clock(sqlstore.Querier) (time.Time, error) { return time.Now(), nil }

// Shrink implements [sqlstore.DB]. It returns free pages to the file system, 1000 at a time. If rarely
// is set, it does so only if at least 4096 pages and a quarter of the file are free.
func (d *database) Shrink(ctx context.Context, rarely bool, change func(f func(t sqlstore.Tx) error) error) error {
	if rarely {
		var free, pages int
		err := d.read.row(ctx, "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count", nil, &free, &pages)
		if err != nil || free < 4096 || free < pages/4 {
			return err
		}
	}
	for {
		var free int
		err := change(func(t sqlstore.Tx) error {
			if err := t.Row("PRAGMA freelist_count", nil, &free); err != nil || free == 0 {
				return err
			}
			return t.Rows("PRAGMA incremental_vacuum(1000)", nil, func(sqlstore.Scanner) error { return nil })
		})
		if err != nil || free <= 1000 {
			return err
		}
	}
}

// Close implements [sqlstore.DB].
func (d *database) Close() error {
	var errs []error
	if d.read != nil {
		errs = append(errs, d.read.close())
	}
	if d.writer != nil {
		errs = append(errs, d.writer.close())
	}
	return advise(errors.Join(errs...))
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

// Exec implements [sqlstore.Tx].
func (t *tx) Exec(query string, args ...any) error {
	_, err := t.Count(query, args...)
	return err
}

// Count implements [sqlstore.Tx].
func (t *tx) Count(query string, args ...any) (n int64, err error) {
	err = eachKey(query, args, func(query string, args []any) error {
		st, err := t.stmt(query) //nolint:sqlclosecheck // kept until the store closes
		if err != nil {
			return err
		}
		r, err := st.ExecContext(context.Background(), args...)
		if err != nil {
			return err
		}
		more, err := r.RowsAffected()
		n += more
		return err
	})
	return n, advise(err)
}

// Row implements [sqlstore.Tx].
func (t *tx) Row(query string, args []any, dest ...any) error {
	st, err := t.stmt(query) //nolint:sqlclosecheck // kept until the store closes
	if err != nil {
		return advise(err)
	}
	return advise(st.QueryRowContext(context.Background(), args...).Scan(dest...))
}

// Rows implements [sqlstore.Tx].
func (t *tx) Rows(query string, args []any, f func(scan sqlstore.Scanner) error) error {
	return rows(t.stmt, query, args, f)
}

// Insert implements [sqlstore.Tx].
func (t *tx) Insert(into, conflict string, width int, args []any) error {
	row := "(?" + strings.Repeat(",?", width-1) + ")"
	for len(args) > 0 {
		// A power of two keeps the number of different statements small.
		n := min(1<<(bits.Len(uint(len(args)/width))-1), 64)
		if err := t.Exec("INSERT INTO "+into+" VALUES "+row+strings.Repeat(","+row, n-1)+conflict, args[:n*width]...); err != nil {
			return err
		}
		args = args[n*width:]
	}
	return nil
}

// IDs implements [sqlstore.Tx].
func (t *tx) IDs(table string, n int) ([]int64, error) {
	var last int64
	err := t.Row("SELECT coalesce(max(id), 0) FROM "+table, nil, &last)
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = last + int64(i) + 1
	}
	return ids, err
}

// eachKey runs f once or, if the last argument is a list, once for each of its elements.
func eachKey(query string, args []any, f func(query string, args []any) error) error {
	var keys []any
	n := len(args) - 1
	if n < 0 {
		return f(query, args)
	}
	switch list := args[n].(type) {
	case []string:
		for _, k := range list {
			keys = append(keys, k)
		}
	case []int64:
		for _, k := range list {
			keys = append(keys, k)
		}
	default:
		return f(query, args)
	}
	query = strings.Replace(query, "= ANY(?)", "= ?", 1)
	for _, k := range keys {
		if err := f(query, append(args[:n:n], k)); err != nil {
			return err
		}
	}
	return nil
}

// rows reads rows with a statement.
func rows(prepare func(query string) (*sql.Stmt, error), query string, args []any, f func(scan sqlstore.Scanner) error) error {
	err := eachKey(query, args, func(query string, args []any) error {
		st, err := prepare(query)
		if err != nil {
			return err
		}
		return each(st, args, f)
	})
	if errors.Is(err, sqlstore.ErrEnough) {
		return nil
	}
	return advise(err)
}

func each(st *sql.Stmt, args []any, f func(scan sqlstore.Scanner) error) error {
	rows, err := st.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// reader is the pool of read connections. Each statement runs in its own transaction.
type reader struct {
	db    *sql.DB
	stmts sync.Map // map from the text of a query to its *sql.Stmt
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
		st.Close() //nolint:sqlclosecheck // use the statement that was stored first
		return old.(*sql.Stmt), nil
	}
	return st, nil
}

// row reads one row. If no row is found, it returns [sql.ErrNoRows].
func (r *reader) row(ctx context.Context, query string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st, err := r.stmt(query) //nolint:sqlclosecheck // kept until the store closes
	if err != nil {
		return advise(err)
	}
	return advise(st.QueryRowContext(context.Background(), args...).Scan(dest...))
}

// rows reads a small number of rows. The connection is busy until f has handled the last row.
func (r *reader) rows(ctx context.Context, query string, args []any, f func(scan sqlstore.Scanner) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return rows(r.stmt, query, args, f)
}

// snapshot runs f with consistent reads.
func (r *reader) snapshot(ctx context.Context, f func(q sqlstore.Querier) error) error {
	c, err := r.db.Conn(ctx)
	if err != nil {
		return advise(err)
	}
	defer c.Close()
	if _, err := c.ExecContext(context.Background(), "BEGIN"); err != nil {
		return advise(err)
	}
	defer func() { _, _ = c.ExecContext(context.Background(), "ROLLBACK") }()
	return f(connQuerier{ctx, c})
}

// readQuerier reads without a transaction.
type readQuerier struct {
	ctx context.Context
	r   *reader
}

func (q readQuerier) Row(query string, args []any, dest ...any) error {
	return q.r.row(q.ctx, query, args, dest...)
}

func (q readQuerier) Rows(query string, args []any, f func(scan sqlstore.Scanner) error) error {
	return q.r.rows(q.ctx, query, args, f)
}

// connQuerier reads in a snapshot. After the end of ctx, it starts no statement.
type connQuerier struct {
	ctx context.Context
	c   *sql.Conn
}

func (q connQuerier) Row(query string, args []any, dest ...any) error {
	if err := q.ctx.Err(); err != nil {
		return err
	}
	return advise(q.c.QueryRowContext(context.Background(), query, args...).Scan(dest...))
}

func (q connQuerier) Rows(query string, args []any, f func(scan sqlstore.Scanner) error) error {
	if err := q.ctx.Err(); err != nil {
		return err
	}
	st, err := q.c.PrepareContext(context.Background(), query)
	if err != nil {
		return advise(err)
	}
	defer st.Close()
	if err := each(st, args, f); !errors.Is(err, sqlstore.ErrEnough) {
		return advise(err)
	}
	return nil
}
