// Package tct00 is the room of the Collaboration Tunnel Protocol (TCT),
// draft-jurkovikj-collab-tunnel-00: a JSON document beside every page (its
// M-URL) under a fingerprint of its text, and one list of them all with their
// fingerprints, so that whoever has read a site once reads only what has
// changed. Package tct01 is the room of the draft after it; a site can have
// both, since no name means something in either.
//
// The draft's text has no numbers of sections; those here are in the order of
// its headings: 3 is Bidirectional Discovery, 8 the M-URL Response Format.
//
// # Names
//
//   - /llm-sitemap.json is the list of all pages, one file, home page first.
//   - /llm-policy.json is the policy descriptor, if the owner has said
//     anything; the list then has a Link with rel=describedby to it.
//   - /llm-manifest.json says which URLs have which M-URLs. The draft asks for
//     it and leaves its form open; see [NewPublisher].
//   - The M-URL of /post/ and of /post is /post/llm/, with the page's query:
//     /post/?x=1 has /post/llm/?x=1. A page of the site that has such a name
//     keeps it. Of several pages that want one name the first in order of URL
//     gets it, the next ones /post/~2/llm/, /post/~3/llm/.
//   - A page whose canonical URL is elsewhere has /~HOST/path/llm/.
//   - A last segment of tildes and digits gets one more tilde, so that no name
//     means two pages: /post/~2/ has /post/~~2/llm/.
//
// A site whose / redirects to a page of it has no other document for it: that
// page is the first of the list (6.1). One
// that publishes no home page at all has a synthesised overview as that page's
// document: title, description, and the sections, each with a page of it.
//
// # What is carried
//
// URL, title, language, published, modified, description, author and JSON-LD
// whole; content as plain text. Lost are the structure of blocks, summary,
// section, tags, kind and what other rooms keep. Archives (tag, date and
// search lists) and listings (/blog/, /news/) have no document, unless they are the
// home page (3.4). A page without a title goes by its
// first heading, else by the last segment of its URL. JSON-LD travels in the
// canonical form of RFC 8785; an element that has none is dropped. Bytes that
// are not UTF-8 become U+FFFD, and other line ends become line feeds.
//
// # Deviations
//
//   - content starts with a paragraph that is the title, so that the
//     fingerprint moves with the title. Reading, a first paragraph that is the
//     title is left out again.
//   - The fingerprint is a strong ETag over text (4.2), against RFC 9110: it
//     stays when nothing changes but case, quotes, white space or members other
//     than title and content. Last-Modified moves with those; who holds an
//     older state of them keeps it until the text changes.
//   - All content codings of a document have one strong ETag. That is why
//     there are no ranges.
//   - Vary is Accept, Accept-Encoding as the draft wants it (5.4), although
//     Accept decides nothing here.
//   - Cache-Control has private only where a key is needed (5.3 leaves the
//     choice): anybody may keep what is public, and has to ask again.
//   - description and author are members beyond the draft. Reading, an object
//     with none of the extended fields speaks for title and content only.
//   - structured_data is the JSON-LD object, or an array when there are several.
//   - The draft lets a client send the list's contentHash as If-None-Match for
//     a body that it does not hold (6.2). The reader never does: a 304 would
//     then stand for nothing.
//   - hash is read with and without its "sha256-": the draft says that it
//     matches the ETag value and shows bare digits (8.2).
//   - A document whose hash or ETag is not that of its content is fetched once more
//     with Cache-Control: no-cache. If that does not help, the page is accepted and
//     marked as unconfirmed.
//   - Validators compare weakly (RFC 9110, section 8.8.3.2), without "sha256-" and
//     the suffix of a content coding: proxies change tags when they compress.
//   - A list or document of draft-02 or a later draft is named in the error, and
//     not read. The checker does not judge it.
//   - An item is of draft-01 if it has an etag, which then counts; without etag
//     and contentHash its page is asked for every time.
//   - A list with an unknown version makes TCT unavailable; one without a
//     version is read.
//   - An M-URL on another origin than its list is skipped. M-URL documents over
//     32 MiB are not read, nor policies over 1 MiB.
package tct00
