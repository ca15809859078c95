package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/millrace/millrace"
)

type explanation struct {
	sentinel error
	code     string
	text     string
}

var (
	login   = &explanation{millrace.ErrForbidden, "store-credentials", "the server refuses the login; set PGPASSWORD or PGPASSFILE, or check pg_hba.conf"}
	busy    = &explanation{millrace.ErrUnavailable, "store-busy", "another process is writing to the store: nothing was changed; try again"}
	crowded = &explanation{millrace.ErrUnavailable, "store-busy", "the server has no connection left; raise its max_connections, or set pool_max_conns in the DSN"}
	down    = &explanation{millrace.ErrUnavailable, "store-down", "the server cannot be reached or has closed the connection; check that it runs, and try again"}
	damaged = &explanation{millrace.ErrInvalid, "store-damaged", "the database is damaged; restore a backup"}
	missing = &explanation{millrace.ErrInvalid, "no-store", "the database has no store, or tables of another program; use a separate database"}
	noTLS   = &explanation{millrace.ErrUnavailable, "store-tls", "the connection cannot be encrypted as sslmode requires; check the certificate and the name of the server, and sslrootcert in the DSN"}
	unknown = &explanation{millrace.ErrInvalid, "store-dsn", "the server or a pooler does not know a parameter of the DSN; remove it"}
	pooler  = &explanation{millrace.ErrInvalid, "store-pooler", "a pooler is between millrace and the server; add default_query_exec_mode=exec to the DSN"}
)

// advice explains errors of PostgreSQL to operators, by SQLSTATE or by its first two characters,
// the class.
var advice = map[string]*explanation{
	"08":    down,
	"08P01": unknown, // sent by PgBouncer
	"25006": {millrace.ErrForbidden, "store-read-only", "the server is read-only; connect to the primary"},
	"25P03": {millrace.ErrUnavailable, "store-down", "the server has ended a transaction that this process had left open: nothing was changed; try again"},
	"26000": pooler,
	"28":    login,
	"3D000": {millrace.ErrNotFound, "store-database", "the database does not exist; create it, or name another one"},
	"40":    busy,
	"40P01": {millrace.ErrUnavailable, "store-deadlock", "another process changes the same rows: nothing was changed; try again"},
	"42501": {millrace.ErrForbidden, "store-permission", "the role lacks a privilege; make it the owner of the database"},
	"42P01": missing,
	"42P05": pooler,
	"42P07": missing,
	"42703": missing,
	"42704": unknown,
	"53100": {millrace.ErrUnavailable, "disk-full", "the disk of the server is full: nothing was changed; free some space and try again"},
	"53200": {millrace.ErrUnavailable, "no-memory", "the server is out of memory: nothing was changed; try again"},
	"53300": crowded,
	"54":    {millrace.ErrTooLarge, "row-size", "a URL or a page exceeds the limits of the server"},
	"55P03": busy,
	"57":    down,
	"58030": {millrace.ErrUnavailable, "disk-error", "the server failed to read or write its disk: nothing was changed; check the disk and try again"},
	"XX001": damaged,
	"XX002": damaged,
}

// advise adds advice to an error of PostgreSQL or of the connection to it.
func advise(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !isConnect(err) {
		return err
	}
	var e *explanation
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if e = advice[pg.Code]; e == nil && len(pg.Code) == 5 {
			e = advice[pg.Code[:2]]
		}
	} else if _, invalid := errors.AsType[*tls.CertificateVerificationError](err); invalid || strings.HasSuffix(err.Error(), refusedTLS) {
		e = noTLS
	} else if _, network := errors.AsType[net.Error](err); network || isConnect(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.Timeout(err) {
		e = down
	}
	if e == nil {
		return err
	}
	// Wrap only the text. Otherwise, an error that is wrapped again would be explained twice.
	return millrace.Coded(e.code, fmt.Errorf("%w: %s (%s)", e.sentinel, e.text, reason(err)))
}

// refusedTLS is the end of the error text for a server without TLS.
const refusedTLS = "server refused TLS connection"

// reason returns the text of an error in one line. The text of a connection error has a line per
// attempt. If the server has no TLS and another attempt follows, the attempt with TLS is omitted.
func reason(err error) string {
	lines := strings.Split(err.Error(), "\n\t")
	kept := slices.DeleteFunc(lines[1:], func(l string) bool { return strings.HasSuffix(l, refusedTLS) })
	return strings.Join(append(lines[:1], slices.Compact(kept)...), " ")
}

func isConnect(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}
