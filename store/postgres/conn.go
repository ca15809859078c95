package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

// database implements [sqlstore.DB].
type database struct {
	pool     *pgxpool.Pool
	health   *health
	readOnly bool
	forms    sync.Map // statements translated to PostgreSQL, by their common form
}

var _ sqlstore.DB = (*database)(nil)

// begin starts a transaction. If this process hangs, the server ends the transaction. A transaction
// that waits for another one fails before its caller loses its lease.
const begin = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '60s'; SET LOCAL lock_timeout = '20s'"

// rollbackTimeout limits the time of a rollback. After it, the connection is closed.
const rollbackTimeout = 5 * time.Second

func rollback(ctx context.Context, conn *pgxpool.Conn) {
	if conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "ROLLBACK") // the pool closes a connection with an open transaction
}

// Reader implements [sqlstore.DB].
func (d *database) Reader(ctx context.Context) sqlstore.Querier { return querier{ctx, d, nil} }

// Snapshot implements [sqlstore.DB].
func (d *database) Snapshot(ctx context.Context, f func(q sqlstore.Querier) error) error {
	return d.transaction(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '60s'",
		func(ctx context.Context, conn *pgxpool.Conn) error { return f(querier{ctx, d, conn}) })
}

// Write implements [sqlstore.DB].
func (d *database) Write(ctx context.Context, l sqlstore.Lock, f func(t sqlstore.Tx) error) error {
	if d.readOnly {
		return millrace.Coded("store-read-only", fmt.Errorf("%w: the store is open for reading only", millrace.ErrForbidden))
	}
	start := begin
	switch l.Table {
	case sqlstore.LockSites, sqlstore.LockFleet:
		start += "; SELECT 1 FROM " + l.Table + " FOR UPDATE"
	case sqlstore.LockSite:
		start += fmt.Sprintf("; SELECT 1 FROM site WHERE id = %d FOR UPDATE", l.ID)
	case sqlstore.LockUsage:
		start += fmt.Sprintf("; SELECT 1 FROM usage WHERE site = %d FOR UPDATE", l.ID)
	}
	return d.transaction(ctx, start, func(ctx context.Context, conn *pgxpool.Conn) error {
		t := &tx{querier: querier{ctx, d, conn}, conn: conn}
		if err := f(t); err != nil {
			return err
		}
		return t.flush()
	})
}

// transaction runs f between a start and a commit.
func (d *database) transaction(ctx context.Context, start string, f func(ctx context.Context, conn *pgxpool.Conn) error) (err error) {
	ctx, end, err := d.health.watch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = end(err) }()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return advise(err)
	}
	defer conn.Release()
	defer rollback(ctx, conn)
	if _, err := conn.Exec(ctx, start); err != nil {
		return advise(err)
	}
	if err := f(ctx, conn); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done, err := conn.Exec(ctx, "COMMIT")
	if err == nil && done.String() != "COMMIT" {
		err = errors.New("the server has rolled back the transaction")
	}
	return advise(err)
}

// Writable implements [sqlstore.DB].
func (d *database) Writable() bool { return !d.readOnly }

// Reserve implements [sqlstore.DB].
func (d *database) Reserve() string { return " FOR SHARE" }

// Claim implements [sqlstore.DB].
func (d *database) Claim() string { return " FOR UPDATE SKIP LOCKED" }

// Clock implements [sqlstore.DB]. The clocks of the machines that share a database may differ.
func (d *database) Clock(q sqlstore.Querier) (time.Time, error) {
	var micros int64
	err := q.Row("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)", nil, &micros)
	return time.UnixMicro(micros), err
}

// ReleaseCache implements [sqlstore.DB]. It does nothing.
func (d *database) ReleaseCache() {}

// Shrink implements [sqlstore.DB]. It does nothing: autovacuum makes the space of deleted rows
// available.
func (d *database) Shrink(context.Context, bool, func(f func(t sqlstore.Tx) error) error) error {
	return nil
}

// Close implements [sqlstore.DB].
func (d *database) Close() error {
	d.health.close()
	d.pool.Close()
	return nil
}

// querier implements [sqlstore.Querier].
type querier struct {
	ctx context.Context
	d   *database
	c   *pgxpool.Conn // connection of the transaction. If nil, any connection of the pool.
}

// Row implements [sqlstore.Querier].
func (q querier) Row(query string, args []any, dest ...any) error {
	found := false
	err := q.Rows(query, args, func(scan sqlstore.Scanner) error {
		found = true
		if err := scan(dest...); err != nil {
			return err
		}
		return sqlstore.ErrEnough
	})
	if err == nil && !found {
		err = pgx.ErrNoRows
	}
	return err
}

// Rows implements [sqlstore.Querier].
func (q querier) Rows(query string, args []any, f func(scan sqlstore.Scanner) error) (err error) {
	if isEmpty(args) {
		return nil
	}
	ctx, send := q.ctx, q.d.pool.Query
	if q.c != nil {
		send = q.c.Query
	} else {
		var end func(error) error
		if ctx, end, err = q.d.health.watch(ctx); err != nil {
			return err
		}
		defer func() { err = end(err) }()
	}
	rows, err := send(ctx, q.d.translate(query), encodeAll(args)...)
	if err != nil {
		return advise(err)
	}
	defer rows.Close()
	scan := func(dest ...any) error {
		err := rows.Scan(dest...)
		decodeAll(dest)
		return err
	}
	for rows.Next() {
		if err := f(scan); errors.Is(err, sqlstore.ErrEnough) {
			rows.Close()
			break
		} else if err != nil {
			return err
		}
	}
	return advise(rows.Err())
}

// isEmpty reports whether the list of a condition "= ANY(?)" is empty.
func isEmpty(args []any) bool {
	if len(args) == 0 {
		return false
	}
	switch list := args[len(args)-1].(type) {
	case []string:
		return len(list) == 0
	case []int64:
		return len(list) == 0
	}
	return false
}

var (
	hints  = regexp.MustCompile(` INDEXED BY \w+`)
	marker = regexp.MustCompile(`\?\d*`)
)

// translate translates a statement to the syntax of PostgreSQL.
func (d *database) translate(query string) string {
	if t, ok := d.forms.Load(query); ok {
		return t.(string)
	}
	n := 0
	t := marker.ReplaceAllStringFunc(hints.ReplaceAllString(query, ""), func(m string) string {
		at, err := strconv.Atoi(m[1:])
		if err != nil { // a marker without a number means the number after the highest one so far
			at = n + 1
		}
		n = max(n, at)
		return "$" + strconv.Itoa(at)
	})
	d.forms.Store(query, t)
	return t
}
