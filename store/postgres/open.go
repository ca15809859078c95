package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

// sqlStore is the part that the SQL engines share.
type sqlStore = sqlstore.Store

// Store is a store in one database. Its methods are safe for concurrent use.
type Store struct {
	*sqlStore
	db *database
}

// Limits of the time to connect to a host if the DSN sets none. If one of several hosts is gone,
// each new connection waits for it, with TLS and without, before it tries the next host.
const (
	connectTimeout        = 10 * time.Second
	connectTimeoutOfHosts = 3 * time.Second
)

// Open opens the store in the database that a URL names, such as
// "postgres://user@host/database", or creates its tables. The parameters of the URL and the
// environment variables are those of libpq, including PGPASSWORD and PGPASSFILE. If the
// database does not exist, or has no store and ReadOnly is set, Open returns ErrNotFound. If
// the server cannot be reached, it returns ErrUnavailable. If the role lacks privileges, or the
// server is a standby and ReadOnly is not set, it returns ErrForbidden. If the DSN is malformed
// or the tables have an unsupported version, it returns ErrInvalid. o may be nil.
func Open(ctx context.Context, dsn string, o *store.Options) (*Store, error) {
	return open(ctx, dsn, record.Options(o), migrations, nil)
}

func open(ctx context.Context, dsn string, o store.Options, known []migration, configure func(c *pgxpool.Config)) (*Store, error) {
	name, ok := Name(dsn)
	if !ok {
		return nil, fmt.Errorf("store %s: %w", name, malformed("write @ as %40 in the password, or set PGPASSWORD"))
	}
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		_, cause, _ := strings.Cut(err.Error(), "`: ") // omits the DSN
		if cause == "" || strings.HasPrefix(cause, "failed to parse") {
			cause = "not a valid URL; escape special characters of the password, or set PGPASSWORD" // the cause may contain part of the password
		}
		return nil, fmt.Errorf("store %s: %w", name, malformed(cause))
	}
	several := slices.ContainsFunc(c.ConnConfig.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != c.ConnConfig.Host || f.Port != c.ConnConfig.Port
	})
	switch {
	case c.ConnConfig.ConnectTimeout != 0:
	case several:
		c.ConnConfig.ConnectTimeout = connectTimeoutOfHosts
	default:
		c.ConnConfig.ConnectTimeout = connectTimeout
	}
	c.ConnConfig.DialFunc = dialer(c.ConnConfig.ConnectTimeout).DialContext
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "millrace"
	}
	if configure != nil {
		configure(c)
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", name, advise(err))
	}
	db := &database{pool: pool, health: newHealth(c.ConnConfig, several, o.Logger), readOnly: o.ReadOnly}
	epoch, err := db.prepare(ctx, known)
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("store %s: %w", name, advise(err))
	}
	return &Store{sqlstore.New(db, name, epoch, o), db}, nil
}

// Name returns a DSN without its password and parameters, for messages. If it cannot tell where
// the password ends, the name is only the scheme, and ok is false.
func Name(dsn string) (name string, ok bool) {
	scheme, rest, _ := strings.Cut(dsn, "://")
	end := strings.IndexAny(rest+"/", "/?#")
	authority, path := rest[:end], rest[end:]
	user, host, found := strings.Cut(authority, "@")
	if strings.Contains(host+path, "@") {
		return scheme + ":", false
	}
	if user, _, _ = strings.Cut(user, ":"); !found {
		user, host = "", authority
	} else {
		user += "@"
	}
	path, _, _ = strings.Cut(path, "?")
	return scheme + "://" + user + host + path, true
}

func malformed(cause string) error {
	return millrace.Coded("store-dsn", fmt.Errorf("%w: malformed DSN: %s", millrace.ErrInvalid, cause))
}
