// Package tct implements the drafts of the Collaboration Tunnel Protocol (TCT),
// draft-jurkovikj-collab-tunnel: a JSON document beside every page (its M-URL), and a
// list of them all with their validators (the M-Sitemap), so that a client that has
// read a site once reads only what has changed. [Draft00], [Draft01] and [Draft03] are
// protocols of their own; a site can have all of them, since no name means something in
// two. The reader of draft-03 reads draft-02 as well.
//
// The text of draft-00 has no numbers of sections; those here are in the order of its
// headings: 3 is Bidirectional Discovery, 8 the M-URL Response Format.
//
// The text of draft-03 was not at hand. What the package does was gathered from the
// reference implementation of its author, a plugin for WordPress, and from the tests and
// validators beside it. The publisher and the rules that count as MUST follow what that
// implementation writes and refuses, so they are sure. The reader is inferred: there is no
// reference client, and draft-01 says what one may do. So is the form of an index of
// lists, which is read and not published. Rules that only the validators hold count as
// SHOULD, since the draft may allow more. Its sections are named "root", "list" and
// "page", for what a rule is about.
//
// # Names
//
//   - Draft-00: /llm-sitemap.json is the list of all pages, one file, home page first.
//     /llm-policy.json is the policy descriptor, if the owner has said anything; the
//     list then has a Link with rel=describedby to it. /llm-manifest.json says which
//     URLs have which M-URLs: an object with profile ("tct-1"), version (1), the
//     absolute URLs sitemap and policy, and patterns: pairs of URI templates (RFC
//     6570), cUrl and mUrl, with a note where there is more to say. The draft asks for
//     it and leaves its form open.
//   - Draft-01: /llm-pages.json is the M-Sitemap. A site of more pages than fit in one
//     list has /llm-pages-1-of-4.json and so on: a power of two of them, each page in
//     the one that a hash of its identity names.
//   - Draft-03: /tct-pages.json is the M-Sitemap, split as in draft-01.
//   - The M-URL of /post/ and of /post is /post/llm/ in draft-00, /post/llm.json in
//     draft-01 and /post/tct.json in draft-03, with the page's query: /post/?x=1 has
//     /post/llm/?x=1. A page of the site that has such a name keeps it. Of several pages
//     that want one name the first in order of URL gets it, the next ones /post/~2/llm/,
//     /post/~3/llm/.
//   - A page whose canonical URL is elsewhere has /~HOST/path/llm/.
//   - A last segment of tildes and digits gets one more tilde, so that no name means
//     two pages: /post/~2/ has /post/~~2/llm/.
//
// A site whose / redirects to a page of it has no other document for it: in draft-00
// that page is the first of the list (6.1). One that publishes no home page at all has
// a synthesised overview as that page's document: title, description, and the
// sections, each with a page of it.
//
// # What is carried
//
// URL, title, language, published, modified, description, author and JSON-LD whole;
// content as plain text in draft-00 and draft-01, which lose the structure of blocks, and
// as Markdown in draft-03, which loses the anchors of headings and makes paragraphs of
// definition lists. All lose summary, section, tags and kind. Archives (tag, date and search lists) and listings
// (/blog/, /news/) have no document, unless they are the home page (3.4 of draft-00). A
// page without a title goes by its first heading, else by the last segment of its URL.
// JSON-LD travels in the canonical form of RFC 8785; an element that has none is
// dropped. Bytes that are not UTF-8 become U+FFFD, and other line ends become line
// feeds.
//
// # Deviations of draft-00 and draft-01
//
// All but the first two hold for draft-03, too.
//
//   - language, published, modified, structured_data, description and author are
//     members beyond draft-01, description and author beyond draft-00, present when
//     known. Reading, an object with none of them speaks for title and content only.
//   - All content codings of a document have one strong ETag, against RFC 9110: that is
//     why there are no ranges.
//   - The drafts let a client send the list's validator as If-None-Match for a body that
//     it does not hold (6.2; 1.8.1). The reader never does: a 304 would then stand for
//     nothing.
//   - A document whose hash or ETag is not that of its content is fetched once more with
//     Cache-Control: no-cache. If that does not help, the page is accepted and marked
//     as unconfirmed (1.8.4).
//   - Validators compare weakly (RFC 9110, section 8.8.3.2), without "sha256-" and the
//     suffix of a content coding: proxies change tags when they compress.
//   - A list or document of another draft is named in the error, and not read. The
//     checker does not judge it.
//   - A list with an unknown version makes TCT unavailable.
//   - An M-URL on another origin than its list is skipped, since validators are scoped to
//     their origin (1.7.3).
//   - M-URL documents over 32 MiB are not read, nor policies over 1 MiB, and of a root's
//     lists no more than 1,000.
//
// # Deviations of draft-00
//
//   - content starts with a paragraph that is the title, so that the fingerprint moves
//     with the title. Reading, a first paragraph that is the title is left out again.
//   - The fingerprint is a strong ETag over text (4.2), against RFC 9110: it stays when
//     nothing changes but case, quotes, white space or members other than title and
//     content. Last-Modified moves with those; who holds an older state of them keeps
//     it until the text changes.
//   - Vary is Accept, Accept-Encoding as the draft wants it (5.4), although Accept
//     decides nothing here.
//   - Cache-Control has private only where a key is needed (5.3 leaves the choice):
//     anybody may keep what is public, and has to ask again.
//   - structured_data is the JSON-LD object, or an array when there are several.
//   - hash is read with and without its "sha256-": the draft says that it matches the
//     ETag value and shows plain digits (8.2).
//   - An item is of draft-01 if it has an etag, which then counts; without etag and
//     contentHash its page is asked for every time.
//   - A list without a version is read.
//
// # Deviations of draft-01
//
//   - Read without an ETag, a document has its hash as its validator, if that holds: the
//     list's etag may be of another body.
//   - A list that is announced but is no M-Sitemap is passed over silently while another
//     one is (rel="index" has other uses, 1.4.1).
//   - The hash is verified two ways: over the served bytes with the member cut out,
//     whatever the server's canonicalization, and over their RFC 8785 form.
//   - The M-URL is linked in HTML, beside that of draft-00 if the site has both. A
//     document found by a link is of the draft that its hash has the form of.
//   - The M-Sitemap's order of members is the draft's own, not that of RFC 8785: the
//     draft asks for determinism of M-URLs only.
//   - There are at most 64 lists, since each has a Link on the root (1.4.1); beyond that
//     the lists grow.
//
// # Deviations of draft-03
//
//   - content is Markdown (content_media_type says so), so that headings, lists, tables
//     and code are carried. Markdown that says another thing when it is read again becomes
//     plain text, then code.
//   - Members beyond the draft go by the names of the reference: lastModified, published,
//     excerpt, author. structured_data is an array; objects in it that have an empty object
//     or a U+2028 in them are left out, because the reference reads them otherwise.
//   - A language that is not well-formed is left out.
//   - A list has at most 19,999 items, because the reference reads 100,000 values. Above
//     1.2 million pages the 64 lists grow beyond that.
//   - A document whose tag is not that of its bytes is fetched again, and unconfirmed if
//     that does not help, as in the earlier drafts. Where a proxy has made the tag, or
//     dropped it, the hash of the bytes stands for it.
//   - Content of another media type than Markdown is read as plain text.
package tct
