// Package web implements the formats that agents and crawlers read today: pages as Markdown,
// llms.txt, feeds of changes, and sitemaps. There is no common specification. The formats have
// their own:
//
//   - llms.txt, version 2 of August 2026 (https://llmstxt.org);
//   - text/markdown (RFC 7763) by Accept (RFC 9110, section 12.5.1), with the header
//     fields that documentation hosts commonly send;
//   - Atom (RFC 4287) with tombstones (RFC 6721), JSON Feed 1.1;
//   - sitemaps.org, and robots.txt (RFC 9309), which names the sitemaps.
//
// # Names
//
//   - The Markdown of /post is /post.md, that of /a.html is /a.html.md, that of /docs/ is
//     /docs/index.md, that of / is /index.md; a query stays: /q?x=1 has /q.md?x=1. A page of the
//     site that itself has such a path keeps the path. If two pages map to the same name, such as
//     /a/ and /a/index, the first in order of URL gets the name, the next one gets /a/~2/index.md,
//     and so on.
//   - If the last segment of a path consists of tildes and digits, it gets one more tilde, which
//     keeps names unique: /post/~2/ has /post/~~2/index.md.
//   - The C-URL itself returns the same Markdown to clients that prefer it to HTML, if
//     documents and pages have the same base.
//   - /llms.txt names every page. Pages that do not fit in one file are in files such as
//     /docs/llms.txt, which lists the pages below /docs/, and in /docs/llms-1.txt and so on if a
//     folder has many pages.
//   - /llms-full.txt has the Markdown of all pages in one file, if the owner enables it.
//
// # Carried fields
//
// Front matter at the beginning of the Markdown contains title, description, author, published,
// modified, language, section, tags and kind. The content consists of blocks. A page is first
// reduced to the part that Markdown can carry, and the published Markdown is rendered from that
// part. Parsing the Markdown returns the same reduced page. The protocol loses summary, JSON-LD,
// fields of other protocols, anchors of headings, spans of cells, captions and sources of media,
// and footnotes without a reference. Media become links; callouts and definitions become quotes and
// paragraphs. Content that does not survive a round trip through Markdown becomes one block of
// code.
//
// Archives and pages without content have no Markdown. Pages whose C-URL is not below the site's
// base have no Markdown either, because a sitemap must not list them. If a client requests Markdown
// of a page that has none, the response is the unchanged page, with the reason in the field
// X-Markdown-Missing.
//
// # Reading
//
// The sitemaps list the pages. If a sitemap has changed, the reader reads all of it. It requests
// the pages whose lastmod has changed, and makes conditional requests for pages without a lastmod.
// A feed replaces the sitemaps for a day at a time under two conditions: it declares that it lists
// deletions, and it lists every change since its oldest entry that the sitemaps show. A feed of
// blog posts meets neither condition. Older changes are read from the sitemaps.
//
// The reader finds the Markdown of a page through a link on the page, through the naming rule of
// the site's other pages, or at the page's own URL by Accept. It rejects Markdown with another page
// as its canonical URL. It guesses names only on sites that have llms.txt. Pages without Markdown
// must be read in another way. A site without any Markdown cannot be read by this protocol.
//
// # Deviations
//
//   - llms.txt lists all pages, while its authors expect a selection: only the owner can decide
//     which pages matter. Dividing the list keeps each file short.
//   - A negotiated response is private unless the owner states that the caches in front
//     of the site respect Vary. Some do not, and would serve Markdown to browsers.
//   - X-Markdown-Tokens is an estimate, one for every four characters.
package web
