// Package tct01 is the room of the Collaboration Tunnel Protocol (TCT),
// draft-jurkovikj-collab-tunnel-01 of 14 November 2025: a JSON document beside
// every page (its M-URL), and a list of them all with their validators (the
// M-Sitemap), so that whoever has read a site once reads only what has changed.
//
// # Names
//
//   - /llm-pages.json is the M-Sitemap. A site of more pages than fit in one
//     list has /llm-pages-1-of-4.json and so on: a power of two of them, each
//     page in the one that a hash of its identity names.
//   - The M-URL of /post/ and of /post is /post/llm.json, with the page's
//     query: /post/?x=1 has /post/llm.json?x=1. A page of the site that has
//     such a name keeps it. Of several pages that want one name the first in
//     order of URL gets it, the next ones /post/~2/llm.json, /post/~3/llm.json.
//   - A page whose canonical URL is elsewhere has /~HOST/path/llm.json.
//   - A last segment of tildes and digits gets one more tilde, so that no name
//     means two pages: /post/~2/ has /post/~~2/llm.json.
//
// A site whose / redirects to a page of it has no other document for it. One
// that publishes no home page at all has a synthesised overview as that page's
// document: title, description, and the sections, each with a page of it.
//
// # What is carried
//
// URL, title, language, published, modified, description, author and JSON-LD
// whole; content as plain text. Lost are the structure of blocks, summary,
// section, tags, kind and what other rooms keep. Archives (tag, date and
// search lists) and listings (/blog/, /news/) have no document, unless they are the
// home page. A page without a title goes by its first
// heading, else by the last segment of its URL. JSON-LD travels in canonical
// form; an element that has none (duplicate names, numbers outside doubles, no
// object) is dropped. Bytes that are not UTF-8 become U+FFFD, and other line
// ends become line feeds.
//
// # Deviations
//
//   - language, published, modified, structured_data, description and author
//     are members beyond the draft, present when known. Reading, an object
//     with none of them speaks for title and content only.
//   - The draft lets a client send the list's etag as If-None-Match for a body
//     that it does not hold (1.8.1). The reader never does: a 304 would then
//     stand for nothing.
//   - All content codings of a document have one strong ETag, against RFC 9110:
//     the draft's tag is that of the uncoded bytes (1.6.2, 1.9.1). That is why
//     there are no ranges.
//   - Read without an ETag, a document has its hash as its validator, if that
//     holds: the list's etag may be of another body.
//   - A list that is announced but is no M-Sitemap is passed over silently
//     while another one is (rel="index" has other uses, 1.4.1). A list with
//     an unknown version makes TCT unavailable.
//   - An M-URL on another origin than its list is skipped, since validators
//     are scoped to their origin (1.7.3).
//   - The hash is verified two ways: over the served bytes with the member cut
//     out, whatever the server's canonicalization, and over their RFC 8785
//     form. If neither holds, or the ETag names another SHA-256, the document is
//     fetched once more with Cache-Control: no-cache. If that does not help, the
//     page is accepted and marked as unconfirmed (1.8.4).
//   - Validators compare weakly (RFC 9110, section 8.8.3.2), without "sha256-" and
//     the suffix of a content coding: proxies change tags when they compress.
//   - The M-URL is linked in HTML, beside that of draft-00 if the site has both. A
//     document found by a link is of the draft that its hash has the form of.
//   - A list or document of draft-02 or a later draft is named in the error, and
//     not read. The checker does not judge it.
//   - The M-Sitemap's order of members is the draft's own, not that of RFC
//     8785: the draft asks for determinism of M-URLs only.
//   - There are at most 64 lists, since each has a Link on the root (1.4.1);
//     beyond that the lists grow.
//   - M-URL documents over 32 MiB are not read, and of a root's lists no more
//     than 1,000.
package tct01
