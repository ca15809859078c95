// Package tct implements the drafts of the Collaboration Tunnel Protocol (TCT),
// draft-jurkovikj-collab-tunnel. A site has a JSON document for every page (its M-URL), and a list
// of all documents with their validators (the M-Sitemap). A client that has read a site once only
// fetches the changed documents. [Draft00], [Draft01] and [Draft03] are separate protocols. A site
// can publish all of them, because their paths do not overlap. The reader of draft-03 also reads
// draft-02.
//
// The sections of draft-00 have no numbers. This package numbers the headings in order: for
// example, 3 is Bidirectional Discovery, and 8 is the M-URL Response Format.
//
// The text of draft-03 was not available. The implementation follows the reference implementation
// of the draft's author, a plugin for WordPress, with its tests and validators. The publisher and
// the MUST rules follow what the plugin writes and rejects, so they are reliable. The behavior of
// the reader is inferred from draft-01, because there is no reference client. An index of lists is
// read but not published; its form is inferred, too. Requirements that only the validators have are
// SHOULD rules, because the draft may allow more. In rules of draft-03, the section is the subject
// of the rule: "root", "list" or "page".
//
// # Names
//
//   - Draft-00: /llm-sitemap.json is the list of all pages, one file, home page first.
//     /llm-policy.json is the policy descriptor, if the owner has set a policy; the list then has a
//     Link with rel=describedby to it. /llm-manifest.json maps URLs to M-URLs: an object with
//     profile ("tct-1"), version (1), the absolute URLs sitemap and policy, and patterns: pairs of
//     URI templates (RFC 6570), cUrl and mUrl, some with a note. The draft requires a manifest but
//     does not define its form.
//   - Draft-01: /llm-pages.json is the M-Sitemap. A site with more pages than fit in one list has
//     /llm-pages-1-of-4.json and so on. The number of lists is a power of two; a hash of a page's
//     identity selects its list.
//   - Draft-03: /tct-pages.json is the M-Sitemap, split as in draft-01.
//   - The M-URL of /post/ and of /post is /post/llm/ in draft-00, /post/llm.json in draft-01 and
//     /post/tct.json in draft-03, with the page's query: /post/?x=1 has /post/llm/?x=1. A page of
//     the site whose own path has this form keeps the path. If several pages map to the same name,
//     the first in order of URL gets it, and the next ones get /post/~2/llm/, /post/~3/llm/.
//   - A page whose canonical URL is on another host has the M-URL /~HOST/path/llm/.
//   - A last segment of tildes and digits gets one more tilde, which keeps names unique: /post/~2/
//     has /post/~~2/llm/.
//
// If / redirects to a page of the site, the document of that page is the document of the home page.
// In draft-00, it is the first item of the list (6.1). If a site publishes no home page, the
// document of / is a generated overview: the title, and the sections, each with one of its pages.
// If the site has no sections, the overview lists some pages.
//
// # Carried fields
//
// Documents carry URL, title, language, published, modified, description, author and JSON-LD
// completely. In draft-00 and draft-01, content is plain text, which loses the structure of blocks.
// In draft-03, it is Markdown, which loses the anchors of headings and turns definition lists into
// paragraphs. All drafts lose summary, section, tags and kind. Archives (tag, date and search
// lists) and listings (/blog/, /news/) have no document, unless they are the home page (3.4 of
// draft-00). The title of a page without one is its first heading, else the last segment of its
// URL. JSON-LD is encoded in the canonical form of RFC 8785; an element without that form is
// dropped. Bytes that are not UTF-8 become U+FFFD, and all line ends become line feeds.
//
// # Deviations of draft-00 and draft-01
//
// All but the first two also apply to draft-03.
//
//   - language, published, modified, structured_data, description and author extend draft-01;
//     description and author extend draft-00. They are present if known. If a document has none of
//     them, the reader knows only its title and content.
//   - All content codings of a document have the same strong ETag, contrary to RFC 9110. Therefore,
//     ranges are not supported.
//   - The drafts let a client send the list's validator as If-None-Match for a body that it does
//     not have (6.2; 1.8.1). The reader never does: a 304 would then refer to no stored body.
//   - A document whose hash or ETag does not match its content is fetched again with Cache-Control:
//     no-cache. If it still does not match, the page is accepted and marked as unconfirmed (1.8.4).
//   - Validators compare weakly (RFC 9110, section 8.8.3.2), without "sha256-" and the suffix of a
//     content coding: proxies change tags when they compress.
//   - For a list or document of another draft, the reader returns an error that names the draft.
//     The checker does not check it.
//   - A list with an unknown version makes TCT unavailable.
//   - An M-URL on another origin than its list is skipped, since validators are scoped to their
//     origin (1.7.3).
//   - The reader rejects M-URL documents over 32 MiB, policies over 1 MiB, and roots that link to
//     more than 1,000 lists.
//
// # Deviations of draft-00
//
//   - content starts with the title as a paragraph, so that the fingerprint changes with the title.
//     The reader removes a first paragraph that is equal to the title.
//   - The fingerprint is a strong ETag over text (4.2), contrary to RFC 9110. It does not change
//     with case, quotes, white space or members other than title and content. Last-Modified changes
//     with those. A client that has an older version of these keeps it until the text changes.
//   - Vary is Accept, Accept-Encoding as the draft requires (5.4), although Accept does not affect
//     the response.
//   - Cache-Control has private only if a key is required (5.3 allows both): caches may store
//     public documents, but must revalidate them.
//   - structured_data is the JSON-LD object, or an array if a page has several.
//   - hash is read with and without its "sha256-": according to the draft it matches the ETag
//     value, but the example shows plain digits (8.2).
//   - An item with an etag belongs to draft-01, and the etag is its validator. The reader requests
//     the page of an item without etag and contentHash every time.
//   - A list without a version is accepted.
//
// # Deviations of draft-01
//
//   - If a document is served without an ETag, its validator is its hash, provided that the hash
//     matches: the list's etag may belong to another body.
//   - An announced list that is not an M-Sitemap is skipped silently if another one is an M-Sitemap
//     (rel="index" has other uses, 1.4.1).
//   - The hash may match either the served bytes with the member cut out, whatever the server's
//     canonicalization, or their RFC 8785 form.
//   - The page links to the M-URL in its HTML, next to the link of draft-00 if the site has both.
//     The form of the hash shows to which draft a document found by a link belongs.
//   - The members of the M-Sitemap are in the order of the draft, not of RFC 8785: the draft
//     requires determinism only of M-URLs.
//   - A site has at most 64 lists, since each has a Link on the root (1.4.1). On larger sites, the
//     lists are longer.
//
// # Deviations of draft-03
//
//   - content is Markdown, as content_media_type declares, and carries headings, lists, tables and
//     code. Content that does not survive a round trip through Markdown becomes plain text, then
//     code.
//   - Members beyond the draft have the names that the reference uses: lastModified, published,
//     excerpt, author. structured_data is an array; objects that contain an empty object, an object
//     whose first name is 0, U+2028 or U+2029 are omitted, because the reference parses or writes
//     them differently.
//   - A language that is not well-formed is omitted.
//   - A list has at most 19,999 items, because the reference reads at most 100,000 values. Above
//     1.2 million pages, the 64 lists have more items.
//   - A document whose tag does not match its bytes is fetched again. If it still does not match,
//     it is unconfirmed, as in the earlier drafts. If a proxy has replaced or dropped the tag, the
//     hash of the bytes is used instead.
//   - Content of another media type than Markdown is read as plain text.
package tct
