// Package index is the search index of a site: a [millrace.Searcher] over any [millrace.View].
//
// An [Index] is one SQLite file. [Index.Update] follows the log of a view. The index holds one
// state of the site: the passages of each page, their words, and their vectors
// ([Index.Fit]). It may be older or newer than the searched view. [Index.Search] therefore
// looks up the page of each hit in the view. It omits pages that are absent or have another
// version, so it returns only pages of the view.
//
// Update can always rebuild the file from a view. [Open] replaces a file that is damaged or has
// another format.
//
// The first Update reads the pages in the order of their URLs, counts the terms, and then replays
// the changes that were logged in the meantime. Later calls replay the log from the cursor of the
// index. If the view rejects the cursor, Update compares the versions of all pages, and reads the
// pages whose version differs. It works in small transactions and continues after a crash.
//
// Several processes may use one file. Readers never wait for a writer. If two processes update the
// index, each detects the other's transactions and continues after them.
package index
