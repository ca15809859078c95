// Package postgres is an engine of package store that keeps the store in a database of
// PostgreSQL 15 or later. Package sqlstore describes the tables.
//
// A write transaction locks the row of its site, allocates sequence numbers in it, and commits
// everything at once. So the sequence numbers of a log become visible in their order, and
// transactions of different sites run at the same time. New rows are written by COPY or by an
// INSERT from arrays. Other statements are sent together.
//
// The engine keeps no state in a session: no session locks, no LISTEN, no settings. So it
// works behind PgBouncer in transaction mode, with default_query_exec_mode=exec in the DSN.
//
// Errors and the names of stores never contain a password.
package postgres
