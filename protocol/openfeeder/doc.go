// Package openfeeder implements OpenFeeder 1.0 (draft of February 2026). It defines an endpoint
// that returns the index of a site, its pages in chunks, passages for a question, and changes.
//
// # Names
//
//   - /.well-known/openfeeder.json is the discovery document. It is public even if the feed needs a
//     key. The site's root advertises it by a link with the relation "openfeeder", because the
//     specification has none, and robots.txt by the comment of section 11. For readers, that
//     comment permits the document and the endpoint, even if the rules disallow them. If the
//     documents have a base path, the root of the host serves it too.
//   - /openfeeder is the index; with url a page, with q a search, with since or until a sync reply.
//     q wins over dates, and dates over url. q and url together search in the page.
//   - /openfeeder/events is the log as server-sent events. /openfeeder/update accepts the URLs of
//     changed pages.
//   - A static feed has /openfeeder.json, /openfeeder-2.json and so on for the index, and
//     /openfeeder/pages/PATH.json for each page, which its item names as document. There, a slash
//     at the end of the path is "~d", and a query is "~q" with the query in base 32. There is no
//     sync: revisions in the index show changes, and pages missing from it are deleted.
//
// # Carried fields
//
// OpenFeeder carries URL, title, author, published, modified (updated), language, summary and the
// content in chunks. A chunk is a passage of at most 2,000 characters: consecutive blocks, headings
// among them, cut above a heading if possible. A search finds the same passages. The member blocks
// contains the start of each block. With it, headings keep their level, lists their items and
// nesting, tables of two or more rows and columns their cells, code its text, and quotes their
// type. A chunk of another site without that member is one block, or one for each paragraph between
// empty lines.
//
// OpenFeeder does not carry links and other formatting inside text, languages of code, the media
// themselves, description, section, tags, kind, JSON-LD, and the fields of other protocols. A text
// over 1,800 characters becomes several blocks.
//
// Archives (tag, date and search lists) have no document. Pages of another origin have no document
// either, because a feed covers only the requested origin and the one that it redirects to. A
// site.url of a third origin, such as www, http behind a proxy, or a CDN, is an alias of the place
// where the feed was found. Relative URLs belong there, and so does each path that the feed names
// on the third origin. Thus the feed loses no page and claims no page of another site. The reader
// reports such an alias in a note with the rule 2.1/site-origin. It reports and skips other URLs of
// pages and tombstones. A page that was added and removed between two editions was never public:
// neither a reply nor an event names it. If the documents are on another host than the pages,
// clients start at the host of the pages, which links to the documents. For clients that start at
// the documents' host, the documents name the pages with URLs of that host.
//
// Required members that a page lacks get defaults. title is the first heading, else the last
// segment of the URL. language is the site's, else "und", which is read as unknown. summary is the
// description, else the start of the text without bylines and e-mail addresses. A summary has at
// most three sentences and 400 characters.
//
// # Sync
//
// A token is a position in the log. It is the standard base64 of {"t","n","e"}: the time of the
// last commit that was sent, its sequence number, and the epoch of the store. A page that changed
// twice is listed once. A page that was deleted or has become an archive is listed as deleted, even
// if it is new since the token. The client may have received it in an earlier sync that did not
// finish. A listing by date does not list archives.
//
// A date starts at the first commit of the log at or after it, so that a page that arrives late
// with an old date is added. A date from before the log, or one with until, is compared with the
// dates of the pages. A page published since then is added, else a page modified since then is
// updated. A page without a published date is treated as published when it was last modified. With
// until alone, all pages published until then are updated.
//
// A token without n is treated as a date, as is a token that is ahead of this server. For a token
// of another store, every page is added, because its sequence number has no meaning in this store.
// deleted_tracking is false then, and also for a date from before the log's horizon: the deletions
// since then are unknown. The response to a token from before the horizon is 410 RESYNC_REQUIRED.
//
// A reader deletes the page that a tombstone names, unless the same page of the reply also lists
// it. If a site sends deleted_tracking: false, or has never sent a tombstone, the reader reads the
// whole index at every tenth reply and deletes what is missing. It reads the index at once after a
// 410, and after a reply with 1,000 tombstones, the number that the specification recommends to
// keep. If the site has no tokens, the reader reads the index each time.
//
// A page of a reply has at most 500 changes, plus the rest of the last commit. sync.next names the
// next page, of the same edition while the server has it in memory. In a reply from the log, each
// page's token covers everything sent so far. In a reply by date, only the token of the last page
// does.
//
// If the discovery document names an event stream, events notify the reader. The reader ignores the
// data of an event and sends a sync request. If the connection breaks, is silent for a minute, or
// sends too much, the reader reconnects and continues after the last ID.
//
// # Cost
//
// A page, a 304, and a token without changes need only lookups. A page of the index reads its own
// pages and at most 50 before them. The first request for a distant page of an edition reads all
// pages before it, without their content. The cost of sync is proportional to the number of
// changes. A comparison of dates scans the site, at most 50,000 pages per request. All events are
// read and encoded once, for any number of listeners.
//
// # Deviations
//
//   - Members beyond the specification: updated and revision in items (revision changes with a
//     page, and is also in its document), document in items of a static feed, blocks in the chunks
//     of a page, url in the chunks of a search, page and total_pages in meta, sync_token in an
//     index, corrected in the response to a question with corrected spelling, note in a limited
//     response (of a question over 4,000 characters, only the beginning is used; of many words, the
//     64 rarest), next in sync and in a static index, schema in sync, events in the discovery
//     document, and the capability diff-sync.
//   - With until alone, added is present and empty, although the specification has no such member:
//     clients fail without it.
//   - meta.cached is false and cache_age_seconds null in every body, because a strong ETag must
//     identify one sequence of bytes. X-OpenFeeder-Cache and Age contain the real values.
//   - q returns an index with ranked items, and also the chunks, each with the url of its page.
//   - Error codes beyond section 8: INVALID_URL, INVALID_PARAM, RESYNC_REQUIRED, and SLOW_CONSUMER
//     in events. 403 is AUTH_REQUIRED, 405 and 413 are INVALID_PARAM.
//   - limit and page never cause an error. If they are not numbers, the defaults apply.
//   - A url that differs from a page's only by a trailing slash finds it; the document contains its
//     URL.
package openfeeder
