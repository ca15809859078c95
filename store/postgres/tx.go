package postgres

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/store/internal/sqlstore"
)

const (
	// copyRows is the minimum number of rows for which Insert uses COPY.
	copyRows = 64
	// queued is the maximum number of statements that are sent together.
	queued = 1000
)

// tx is a write transaction. It implements [sqlstore.Tx]. It queues statements whose result is not
// needed, and sends them with the next statement whose result is needed.
type tx struct {
	querier
	conn  *pgxpool.Conn
	batch pgx.Batch
}

// flush sends the queued statements.
func (t *tx) flush() error {
	if t.batch.Len() == 0 {
		return nil
	}
	b := t.batch
	t.batch = pgx.Batch{}
	return advise(t.conn.SendBatch(t.ctx, &b).Close())
}

// Exec implements [sqlstore.Tx].
func (t *tx) Exec(query string, args ...any) error {
	if isEmpty(args) {
		return nil
	}
	t.batch.Queue(t.d.translate(query), encodeAll(args)...)
	if t.batch.Len() < queued {
		return nil
	}
	return t.flush()
}

// Count implements [sqlstore.Tx].
func (t *tx) Count(query string, args ...any) (int64, error) {
	if isEmpty(args) {
		return 0, t.flush()
	}
	var n int64
	t.batch.Queue(t.d.translate(query), encodeAll(args)...).Exec(func(done pgconn.CommandTag) error {
		n = done.RowsAffected()
		return nil
	})
	err := t.flush()
	return n, err
}

// Row implements [sqlstore.Querier].
func (t *tx) Row(query string, args []any, dest ...any) error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.querier.Row(query, args, dest...)
}

// Rows implements [sqlstore.Querier].
func (t *tx) Rows(query string, args []any, f func(scan sqlstore.Scanner) error) error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.querier.Rows(query, args, f)
}

// IDs implements [sqlstore.Tx].
func (t *tx) IDs(table string, n int) (ids []int64, err error) {
	err = t.Rows("SELECT nextval(?::regclass) FROM generate_series(1, ?)", []any{table + "_id_seq", n}, func(scan sqlstore.Scanner) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// Insert implements [sqlstore.Tx]. It uses COPY for many new rows, and otherwise an INSERT with one
// array per column.
func (t *tx) Insert(into, conflict string, width int, args []any) error {
	n := len(args) / width
	if n == 0 {
		return nil
	}
	args = encodeAll(args)
	if conflict == "" && n >= copyRows {
		if err := t.flush(); err != nil {
			return err
		}
		table, columns, _ := strings.Cut(strings.TrimSuffix(into, ")"), " (")
		_, err := t.conn.CopyFrom(t.ctx, pgx.Identifier{table}, strings.Split(columns, ", "), pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			return args[i*width : (i+1)*width], nil
		}))
		return advise(err)
	}
	arrays, types := make([]any, width), make([]string, width)
	for i := range width {
		var err error
		if arrays[i], types[i], err = column(args, i, width); err != nil {
			return fmt.Errorf("column %d of %s: %w", i, into, err)
		}
		types[i] = fmt.Sprintf("$%d::%s[]", i+1, types[i])
	}
	t.batch.Queue("INSERT INTO "+into+" SELECT * FROM unnest("+strings.Join(types, ", ")+")"+conflict, arrays...)
	return nil
}

// column returns column i of the rows as an array, and the SQL type of its elements.
func column(args []any, i, width int) (array any, of string, err error) {
	var ints []int64
	var bools []bool
	var blobs [][]byte
	var texts []*string
	for ; i < len(args); i += width {
		switch v := args[i].(type) {
		case nil:
			texts = append(texts, nil)
		case string:
			texts = append(texts, &v)
		case []byte:
			blobs = append(blobs, v)
		case bool:
			bools = append(bools, v)
		default:
			n := reflect.ValueOf(v)
			if !n.CanInt() {
				return nil, "", fmt.Errorf("unexpected %T", v)
			}
			ints = append(ints, n.Int())
		}
	}
	switch {
	case ints != nil:
		return ints, "bigint", nil
	case bools != nil:
		return bools, "boolean", nil
	case blobs != nil:
		return blobs, "bytea", nil
	}
	return texts, "text", nil
}
