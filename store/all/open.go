// Package all opens a store by its name. It is the only package that imports the engines.
package all

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
	"github.com/millrace/millrace/store/postgres"
	"github.com/millrace/millrace/store/sqlite"
)

// Memory names a store in memory, which is lost when it is closed. Its publications show only dates
// that the sources have set. They have no tokens and no deltas, because the next store could not
// continue them.
const Memory = "memory:"

// Open opens the store that dsn names: [Memory], a URL such as
// "postgres://user@host/database", or a file, which Open creates if it does not exist. If the
// URL has another scheme, or the file is not a store, Open returns ErrInvalid. If the file
// cannot be written, it returns ErrForbidden. If a read-only store or a database does not
// exist, it returns ErrNotFound. See [postgres.Open] and [sqlite.Open]. o may be nil.
func Open(ctx context.Context, dsn string, o *store.Options) (store.Store, error) {
	if dsn == Memory {
		st := memory.New(o)
		st.Volatile = true
		return st, nil
	}
	switch scheme, _, is := strings.Cut(dsn, "://"); {
	case IsPostgres(dsn):
		return opened(postgres.Open(ctx, dsn, o))
	case is:
		return nil, millrace.Coded("store-scheme", fmt.Errorf("open store: %w: unknown scheme %q; name a file, or a URL that starts with postgres://", millrace.ErrInvalid, scheme))
	}
	return opened(sqlite.Open(ctx, dsn, o))
}

// IsPostgres reports whether a DSN names a database of PostgreSQL.
func IsPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// Name returns a DSN without its password and parameters, for messages.
func Name(dsn string) string {
	if IsPostgres(dsn) {
		dsn, _ = postgres.Name(dsn)
	}
	return dsn
}

// opened converts a pointer to the interface type. After an error, it returns a nil interface,
// because a nil pointer would become a Store that is not nil.
func opened[S store.Store](st S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return st, nil
}
