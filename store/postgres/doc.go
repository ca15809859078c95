// Package postgres is an engine of package store that keeps the store in a database of
// PostgreSQL 15 or later. Package sqlstore describes the tables.
//
// A write transaction locks the row of its site, allocates sequence numbers from it, and commits
// all changes together. So the sequence numbers of a log become visible in order, and transactions
// of different sites run concurrently. New rows are written by COPY or by an INSERT from arrays.
// Other statements are sent in batches.
//
// The engine keeps no state in a session: no session locks, no LISTEN, no settings. So it
// works behind PgBouncer in transaction mode, with default_query_exec_mode=exec in the DSN.
//
// Errors and the names of stores never contain a password.
package postgres
