// Package openfeeder implements OpenFeeder 1.0 (draft of February 2026): an
// endpoint that gives the index of a site, its pages in chunks, passages for a
// question, and what has changed since.
//
// # Names
//
//   - /.well-known/openfeeder.json is the discovery document. It is public even if
//     the feed needs a key. The site's root advertises it by a link with the
//     relation "openfeeder", because the specification has none, and robots.txt
//     by the comment of section 11. For readers, that comment permits the document
//     and the endpoint, whatever the rules say. If the documents have a base path,
//     the root of the host serves it too.
//   - /openfeeder is the index; with url a page, with q a search, with since or
//     until a sync reply. q wins over dates, and dates over url. q and url
//     together search in the page.
//   - /openfeeder/events is the log as server-sent events, /openfeeder/update
//     takes the URLs of pages that have changed.
//   - A static feed has /openfeeder.json, /openfeeder-2.json and so on for the
//     index, and /openfeeder/pages/PATH.json for each page, whose item names it
//     as document. A slash at the end of the path is "~d" there, and a query
//     "~q" with its base 32. There is no sync: revisions in the index tell what
//     has changed, and who is not in it is gone.
//
// # What is carried
//
// URL, title, author, published, modified (updated), language, summary and the
// content in chunks. A chunk is a passage of at most 2,000 characters: blocks
// that follow each other, headings among them, cut above a heading where that is
// possible. What a page says in chunks, a search finds. Its member blocks tells
// where each block starts, so that headings keep their level, lists their items
// and nesting, tables of two rows and more their cells, code its text, and quotes
// their type. A chunk of another site without that member is one block, or one
// for each of the paragraphs that empty lines part. Lost are links and other
// marks inside of text, languages of code, the media themselves, description,
// section, tags, kind, JSON-LD, and what other protocols keep. A text over 1,800 characters comes in several blocks.
//
// Archives (tag, date and search lists) have no document, nor have pages of
// another origin than the site's: a feed speaks for the origin that was asked,
// and for the one that this redirects to. A site.url of a third origin, such as
// www, http behind a proxy, or a CDN, is another name of where the feed was
// found. Relative URLs belong there, and so does each path that the feed names
// on that third origin: no page is lost, and none of another site is claimed.
// The reader notes it, and 2.1/site-origin is its rule. Other URLs, of pages and
// of tombstones, are reported and skipped. A page that came and went between two
// editions was never public: neither a reply nor an event names it. Where documents live on another host
// than their pages, ask the pages' host, which points at them: asked by
// themselves, they give the pages URLs of their own host.
//
// What a page must have and has not: title is its first heading, else the last
// segment of its URL; language is the site's, else "und", which is read as
// unknown; summary is the description, else how the text begins, without bylines
// and addresses. A summary has
// at most three sentences and 400 characters.
//
// # Sync
//
// A token names a place in the log. It is the standard base64 of {"t","n","e"}:
// the time of the last commit that was sent, its sequence number, and the epoch of
// the store. A page that changed twice is listed once. A page that is gone is
// listed as deleted. So is a page that has become an archive, even if it is new
// since the token: the client may have seen it when an earlier sync stopped half
// way. A listing by date does not list archives.
//
// A date starts at the first commit of the log at or after it, so that a page that
// arrives late with an old date is added. A date from before the log, or one with
// until, is compared with the dates of the pages. A page published since then is
// added, else a page modified since then is updated. A page without a published
// date counts as published when it was last modified. With until alone, all pages
// published until then are updated.
//
// A token without n counts as a date, and so does a token that is ahead of this
// server. For a token of another store every page is added, because sequence
// numbers of that store mean nothing here. deleted_tracking is false then, and
// also for a date from before the log's horizon: the deletions since are unknown.
// A token from before the horizon is answered with 410 RESYNC_REQUIRED.
//
// A reader deletes the page that a tombstone names, unless the same page of the
// reply also lists it. If a site says deleted_tracking: false, or has never sent a
// tombstone, the reader reads the whole index at every tenth reply and deletes
// what is missing. It reads the index at once after a 410, and after a reply with
// 1,000 tombstones, the number that the specification recommends to keep. Without
// tokens it reads the index each time.
//
// A page of a reply has 500 changes and the rest of the last commit. sync.next
// names the next page, of the same edition as long as that is remembered. In a
// reply from the log, each page's token covers everything sent so far. In a reply
// by date, only the token of the last page does.
//
// # Deletions alone
//
// The reader is also a [protocol.DeletionReader], for callers that read the pages
// another way, which does not report deletions. This needs a server that answers
// since with tombstones and says so: by sync_token in its index, by
// deleted_tracking: true, or by a tombstone sent before. A check costs one reply,
// which lists each changed page; the reader requests no page. A server that says
// deleted_tracking: false, answers 410, or sends 1,000 tombstones at once has lost
// some: the caller then reads the other way completely. Our server supports this
// as far back as its log reaches. Feeds of files do not.
//
// If the discovery document names an event stream, events wake the reader. It
// ignores their data and sends a sync request. It reconnects after the last id if
// the connection breaks, is silent for a minute, or sends too much.
//
// # Cost
//
// A page, a 304, and a token with nothing new are look-ups. A page of the
// index reads its own pages and at most 50 before it, once somebody has asked
// for one as far down in the same edition; the first to do so reads all before
// it, without their content. Sync costs what has changed; dates that are
// compared cost the site, at most 50,000 pages a request. All events are read
// and encoded once, however many listen.
//
// # Deviations
//
//   - Members beyond the specification: updated and revision in items (revision
//     moves with a page, and is in its document too), document in items of a
//     static feed, blocks in the chunks of a page, url in chunks that were
//     found, page and total_pages in meta, sync_token in an index, corrected in
//     an answer to a question that had to be mended, note in one that is less
//     than it could be (of a question over 4,000 characters the beginning counts,
//     of many words the 64 rarest that the site has), next in sync and in a
//     static index, schema in sync, events in the discovery document, and the
//     capability diff-sync.
//   - added is there, and empty, with until alone, where the specification has
//     no such member: clients break without it.
//   - meta.cached is false and cache_age_seconds null in every body, since one
//     strong validator stands for one sequence of bytes. X-OpenFeeder-Cache and
//     Age say how it is.
//   - q returns an index with ranked items, and also the chunks, each with the url
//     of its page.
//   - Codes of errors beyond section 8: INVALID_URL, INVALID_PARAM,
//     RESYNC_REQUIRED, and SLOW_CONSUMER in events. 403 is AUTH_REQUIRED, 405
//     and 413 are INVALID_PARAM.
//   - limit and page are never an error. What is no number is the default.
//   - A url that differs from a page's by the slash at the end of the path
//     finds it; the document says its URL.
package openfeeder
