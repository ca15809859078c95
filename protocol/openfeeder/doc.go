// Package openfeeder implements OpenFeeder 1.0 (draft of February 2026). The protocol defines an
// endpoint that returns the index of a site, its pages in chunks, passages for a question, and
// changes.
//
// # Names
//
//   - /.well-known/openfeeder.json is the discovery document. It is public even if the feed needs a
//     key. The site's root advertises the document by a link with the relation "openfeeder",
//     because the specification defines no relation. robots.txt advertises the document by the
//     comment of section 11. For readers, that comment permits the document and the endpoint, even
//     if the rules disallow them. If the documents have a base path, the root of the host also
//     serves the document.
//   - /openfeeder is the index; with url a page, with q a search, with since or until a sync reply.
//     q takes precedence over dates, and dates over url. With q and url, the search covers only
//     that page.
//   - /openfeeder/events is the log as server-sent events. /openfeeder/update accepts the URLs of
//     changed pages.
//   - A static feed has /openfeeder.json, /openfeeder-2.json and so on for the index, and
//     /openfeeder/pages/PATH.json for each page. The member document of an item is the path of that
//     file. In PATH, a slash at the end is written "~d", and a query "~q" followed by the query in
//     base 32. There is no sync: revisions in the index show changes, and pages missing from it are
//     deleted.
//
// # Carried fields
//
// OpenFeeder carries URL, title, author, published, modified (updated), language, summary and the
// content in chunks. A chunk is a passage of at most 2,000 characters: consecutive blocks,
// including headings, divided above a heading if possible. A search finds the same passages. The
// member blocks contains the start of each block. With it, headings keep their level, lists their
// items and nesting, tables of two or more rows and columns their cells, code its text, and quotes
// their type. A chunk of another site without that member is one block, or one for each paragraph
// between empty lines.
//
// OpenFeeder does not carry links and other formatting inside text, languages of code, the media
// themselves, description, section, tags, kind, JSON-LD, or the fields of other protocols. A text
// over 1,800 characters becomes several blocks.
//
// Archives (tag, date and search lists) have no document. Pages of another origin have no document
// either, because a feed covers only the requested origin and the one that it redirects to. A
// site.url of a third origin, such as www, http behind a proxy, or a CDN, is an alias of the origin
// where the feed was found. Relative URLs, and the paths of URLs on the third origin, are resolved
// against the origin of the feed. Thus the feed loses no page and claims no page of another site.
// The reader reports such an alias in a note with the rule 2.1/site-origin. It reports and skips
// pages and tombstones on any other origin. A page that was added and removed between two editions
// was never public: neither a reply nor an event names it. If the documents and the pages are on
// different hosts, clients start at the host of the pages, which links to the documents. For
// clients that start at the documents' host, the documents name the pages with URLs of that host.
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
// If since is a date, the reply starts at the first commit at or after that date, so a page that
// arrives late with an old date is still listed as added. If the date is before the start of the
// log, or the request also has until, the dates of the pages are compared instead. A page published
// since then is listed as added, else a page modified since then as updated. A page without a
// published date is treated as published when it was last modified. With until alone, all pages
// published by then are listed as updated.
//
// A token without n is treated as a date, as is a token that is ahead of this server. For a token
// of another store, every page is listed as added, because the token's sequence number has no
// meaning in this store. The horizon is the oldest position from which the log is still complete.
// For a token of another store, and for a date before the horizon, deleted_tracking is false,
// because the deletions since then are unknown. The response to a token from before the horizon is
// 410 RESYNC_REQUIRED.
//
// A reader deletes the page that a tombstone names, unless the same page of the reply also lists
// that page as added or updated. If a site sends deleted_tracking: false, or has sent neither a
// token in its index nor a tombstone, the reader reads the whole index at every tenth reply and
// deletes the pages that are missing from the index. It reads the index at once after a 410, and
// after a reply with 1,000 tombstones, the number that the specification recommends to keep. If the
// site has no tokens, the reader reads the index each time.
//
// A page of a reply has at most 500 changes, plus the rest of the last commit. sync.next names the
// next page. It belongs to the same edition if the server still has that edition in memory. In a
// reply from the log, each page's token covers everything sent so far. In a reply by date, only the
// token of the last page does.
//
// If the discovery document names an event stream, events notify the reader. The reader ignores the
// data of an event and sends a sync request. If the connection breaks, is silent for a minute, or
// sends too much, the reader reconnects and continues after the last ID.
//
// # Cost
//
// The response for a page, a 304, and the reply to a token without changes need only lookups. To
// render a page of the index, the publisher reads the listed pages and at most 50 pages before
// them. The first request for a distant page of an edition reads all pages before it, without their
// content. The cost of sync is proportional to the number of changes. A comparison of dates scans
// the site, at most 50,000 pages per request. All events are read and encoded once, for any number
// of clients.
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
//   - A url that differs from a page's URL only by a trailing slash finds the page; the document
//     contains the page's own URL.
package openfeeder
