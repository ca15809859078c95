package index

import (
	"context"
	"database/sql"
	"errors"
)

// scanner copies the columns of a row.
type scanner func(dest ...any) error

// conn is a connection with its prepared statements. Statements run without the caller's
// context, because the driver would start a goroutine for each. Callers check their
// contexts between statements.
type conn struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

// connect opens a connection with the pragmas.
func connect(ctx context.Context, db *sql.DB, pragmas ...string) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pragmas {
		if _, err := c.ExecContext(ctx, "PRAGMA "+p); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return &conn{c, make(map[string]*sql.Stmt)}, nil
}

func (c *conn) close() error {
	for _, st := range c.stmts {
		st.Close()
	}
	return c.c.Close()
}

// within runs f in a transaction that the statement begin opens. If f fails, within rolls back
// all changes.
func (c *conn) within(ctx context.Context, begin string, f func() error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := c.exec(begin); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// SQLite may have rolled back already, for example if the disk is full.
			_, _ = c.exec("ROLLBACK")
		}
	}()
	if err := f(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err = c.exec("COMMIT")
	return err
}

// stmt returns the prepared statement of a query.
func (c *conn) stmt(query string) (*sql.Stmt, error) {
	if st := c.stmts[query]; st != nil {
		return st, nil
	}
	st, err := c.c.PrepareContext(context.Background(), query)
	if err == nil {
		c.stmts[query] = st
	}
	return st, err
}

// exec runs a statement.
func (c *conn) exec(query string, args ...any) (sql.Result, error) {
	st, err := c.stmt(query) //nolint:sqlclosecheck // the statement is cached
	if err != nil {
		return nil, err
	}
	return st.ExecContext(context.Background(), args...)
}

// run runs statements that have the same arguments.
func (c *conn) run(args []any, queries ...string) error {
	for _, q := range queries {
		if _, err := c.exec(q, args...); err != nil {
			return err
		}
	}
	return nil
}

// row reads one row. If there is no row, row returns sql.ErrNoRows.
func (c *conn) row(query string, args []any, dest ...any) error {
	st, err := c.stmt(query) //nolint:sqlclosecheck // the statement is cached
	if err != nil {
		return err
	}
	return st.QueryRowContext(context.Background(), args...).Scan(dest...)
}

// errEnough stops rows without an error.
var errEnough = errors.New("enough rows")

// rows calls f for each row. f must not use the connection, because the rows are open.
func (c *conn) rows(query string, args []any, f func(scan scanner) error) error {
	st, err := c.stmt(query) //nolint:sqlclosecheck // the statement is cached
	if err != nil {
		return err
	}
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

// set sets an option of the words table, or runs one of its commands.
func (c *conn) set(name string, value int) error {
	_, err := c.exec("INSERT INTO words (words, rank) VALUES (?, ?)", name, value)
	return err
}

func absent(err error) bool { return errors.Is(err, sql.ErrNoRows) }
