// Package sqlite is an engine of package store that keeps the store in one SQLite file.
// Package sqlstore describes the tables.
//
// All writes use one connection, one transaction at a time, with full synchronization. Changes
// that Apply has acknowledged survive kill -9 and a power cut.
package sqlite
