// Package openfeeder implements OpenFeeder 1.0 (draft of February 2026): an
// endpoint that gives the index of a site, its pages in chunks, passages for a
// question, and what has changed since.
//
// # Names
//
//   - /.well-known/openfeeder.json is the discovery document, which is public
//     whatever else needs a key. The site's root announces it by a link with
//     the relation "openfeeder", since the specification has none, and
//     robots.txt in the words of section 11. Readers take that comment as
//     permission for the document and the endpoint, whatever rules say. It is answered at the root of
//     the host, too, when the documents have a base path.
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
// A token names a place in the log: standard base64 of {"t","n","e"}, the time
// of the last commit that was told, its sequence number, and the epoch of the
// store that counts. What has changed twice since is there once. A page that is
// gone is told as deleted, and so is one that is an archive now, also if it came
// in between: who asks may have seen it there, when its last try to follow stopped
// half way. Where pages are listed by date an archive is told of by nothing.
//
// A date goes by the log too, from the first commit at or after it. So a page
// that arrives late with an old date is added. A date from before the log had
// begun, and one with until, is compared with the dates that pages have:
// published from since on is added, else modified from since on is updated. An
// undated page is taken for published when it was last modified. With until
// alone everything published so far is updated.
//
// A token without n is a date, and so is one that is ahead of this server. For
// a token of another store every page is added, since that store's numbers
// mean nothing here; deleted_tracking is false then, as it is for a date from
// before the log's horizon: what has gone since is not known. A token from
// before the horizon is 410 RESYNC_REQUIRED.
//
// A reader takes away what a tombstone names, unless the same page of the reply
// lists it, too. Of a site that says deleted_tracking: false, or has never
// shown a tombstone, it reads the whole index at every tenth reply, and what is
// not there is gone. After a 410, and after 1,000 tombstones at once, which are
// as many as the specification would keep, it reads the index at once, as it does
// each time where there are no tokens.
//
// A reply has pages of 500 changes, and of what else the last commit of them
// has changed. sync.next leads on, to the same edition for as long as that is
// remembered. Where the log is told each page's token covers all that was told
// so far; where pages are listed by date, that of the last page does.
//
// # Deletions alone
//
// The reader of a site is a [protocol.DeletionReader], too: for who has the
// pages another way, and is not told there what has gone. A server serves that
// if it answers since with tombstones, and says that it does: by sync_token in
// its index, by deleted_tracking: true, or by having told of one. What it costs
// is a reply that names each changed page in its lists; nothing is asked for. A
// server that says deleted_tracking: false, answers 410, or gives 1,000
// tombstones at once, has lost some: the other way has to be read whole. Ours
// supports it, as far back as its log reaches, but for feeds of files.
//
// A reader is woken by events, where the discovery document names them; what
// they say is not taken, but asked for. A connection that breaks, says nothing
// for a minute, or more than anybody would, is made anew, after the last id.
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
//   - q gives an index with ranked items, and the chunks beside them, each with
//     the url of its page.
//   - Codes of errors beyond section 8: INVALID_URL, INVALID_PARAM,
//     RESYNC_REQUIRED, and SLOW_CONSUMER in events. 403 is AUTH_REQUIRED, 405
//     and 413 are INVALID_PARAM.
//   - limit and page are never an error. What is no number is the default.
//   - A url that differs from a page's by the slash at the end of the path
//     finds it; the document says its URL.
package openfeeder
