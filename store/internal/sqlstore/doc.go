// Package sqlstore is the common part of the engines of package store that keep a store in SQL
// tables. An engine opens its database, creates the tables, and runs statements: see [DB]. The
// statements are in this package and are the same for every engine.
//
// A site and each generation of its publications have a log. A row of entry is one state of one
// page in one log, with its own sequence number. So the rows are both the log and the versions of
// the pages. A view at sequence number P contains the entry e of a page if e.seq <= P < e.until. A
// row of body holds the blocks of one content as JSON, compressed by package zdict. All logs of a
// site share the bodies, and all sites of a store share the dictionaries. A transaction of Apply
// compresses with the newest dictionary, even if another process created it.
//
// Tags have versions in the same way, and are read by one lookup. A long tag is compressed with a
// dictionary of tags. The row of a generation holds its position in the site's log. Refresh
// computes tags and pages outside the transaction that writes them.
//
// The table memory holds the names of a source for pages, by the URL that the source uses. The
// table original holds the originals of pages, in one compressed row per name. A trigger deletes
// the original with its name.
//
// The table usage_event holds requests by machines. In the same transaction, Record adds them to the
// sums of their hour and day (usage_sum), and to the requested items of the day (usage_top).
// Numbers replace texts (usage_kind, usage_text), which keeps rows small.
//
// A transaction reads all rows that it needs in few statements, and writes its changes at the end.
// So the number of statements does not grow with the number of pages. Each read is limited: no
// statement stays open while a caller handles a page.
package sqlstore
