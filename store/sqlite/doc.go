// Package sqlite is the store in one SQLite file: an engine of the contract in
// package store.
//
// A site and each generation of its publications have a log. A row of entry is
// one state of one page in one log, with its own sequence number: the log and
// the versions of the pages are the same rows. A view at P shows the entry e of
// a page when e.seq <= P < e.until. Blocks are rows of body, one for each
// content, which all logs of a site share: JSON, compressed by package zdict. The
// sites of a file share its dictionaries. A transaction of Apply codes with the
// newest one, also of another process.
//
// Tags are versioned in the same way and are read by one point lookup. A long one
// is compressed as a body is, with a dictionary of tags. The row
// of a generation says how far of the site's log it has come; Refresh computes
// what it shows outside of the transaction that writes it.
//
// The names that a source has for pages are in memory, keyed by the URL that
// the source uses; what its pages were made of is in original, one row for each
// name that has something, compressed as bodies are. A trigger deletes it with its
// name.
//
// Requests of machines are rows of usage_event. Record adds them to the sums of
// their hour and day (usage_sum) and to what was asked for on the day (usage_top)
// in the same transaction. Texts have numbers (usage_kind, usage_text), so that
// rows are small.
//
// All writes go through one connection, one transaction at a time, fully
// synchronous: what Apply has acknowledged survives kill -9 and a power cut.
// Reads are bounded: no statement stays open while a caller handles a page.
package sqlite
