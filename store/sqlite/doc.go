// Package sqlite is the store in one SQLite file: an engine of the contract in
// package store.
//
// A [Store] is the file, a [Site] is one site in it; sites do not see each
// other. What a site holds lies in two layers:
//
//   - raw: what the sources said of each page, merged, current only, with the
//     pages that nobody may see;
//   - entry: what is visible. Every change of what is visible is one row with
//     its own sequence number: the log and the versions of the pages are the
//     same rows. Entry e is what a view at P shows of its page when
//     e.seq <= P < e.until.
//
// The blocks of both layers lie in a third table, body, once per content. They
// are plain JSON: on pages of 10 kB zstd at its fastest costs more time than
// the bytes that it saves.
//
// The tags of the rooms have rows of their own, versioned in the same way, and
// are read by one point lookup. What a source is remembered by is in memory,
// keyed by the URL that the source uses; what its pages were made of is in
// original, one row for each name that has something, compressed with zstd. A
// trigger sees to it that a row goes with its name.
//
// Requests of machines are rows of usage_event. Record adds them to the sums of
// their hour and day (usage_sum) and to what was asked for on the day (usage_top)
// in the same transaction. Texts have numbers (usage_kind, usage_text), so that
// rows are small.
//
// All writes go through one connection, one transaction at a time, fully
// synchronous: what Apply has acknowledged survives kill -9 and a power cut.
// Reads are bounded: no statement stays open while a caller handles a page.
//
// URLs are kept as identities (paths under [store.Config.Base]), so that
// another base adds and deletes nothing; a source's own names of pages are kept
// as the source gave them, beside the identities that they stand for.
package sqlite
