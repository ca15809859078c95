// Package index is the search index of a site: a [millrace.Searcher] over any
// [millrace.View].
//
// An [Index] is one SQLite file. It follows the log of a view ([Index.Update])
// and holds one state of the site: the passages of each page, the words of the
// passages, and vectors of their meaning ([Index.Fit]). It may be behind the
// view that is searched, or ahead of it. [Index.Search] therefore looks up the
// page of each hit in that view and leaves out pages that are absent or have
// another version, so that no answer shows what the view does not.
//
// The file can always be made again from a view. [Open] deletes one of another
// format, and a damaged one.
//
// The first Update sweeps over the pages in the order of their URLs, then counts
// the terms, then replays what was logged meanwhile. Each later Update replays
// the log from the index's cursor. If the view refuses the cursor, Update sweeps
// again and replaces only the pages whose version differs. All of it is done in
// small transactions and goes on after a crash where it was.
//
// Several processes may use one file. Readers never wait. Of two that update it,
// each notices the transactions of the other and goes on from there.
package index
