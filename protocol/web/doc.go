// Package web implements what agents and crawlers read today: pages as Markdown, llms.txt,
// feeds of changes and sitemaps. No single specification covers all of it; each part follows
// its own:
//
//   - llms.txt, version 2 of August 2026 (https://llmstxt.org);
//   - text/markdown (RFC 7763) by Accept (RFC 9110, section 12.5.1), with the
//     header fields that documentation hosts commonly send;
//   - Atom (RFC 4287) with tombstones (RFC 6721), JSON Feed 1.1;
//   - sitemaps.org, and robots.txt (RFC 9309), where readers find the rest.
//
// # Names
//
//   - The Markdown of /post is /post.md, that of /a.html is /a.html.md, that of
//     /docs/ is /docs/index.md, that of / is /index.md; a query stays: /q?x=1 has
//     /q.md?x=1. A page of the site that has such a name keeps it. Of two pages
//     with one name, such as /a/ and /a/index, the first in order of URL gets
//     it, the next one gets /a/~2/index.md, and so on.
//   - A last segment of tildes and digits gets one more tilde, so that no name
//     means two pages: /post/~2/ has /post/~~2/index.md.
//   - The C-URL itself returns the same Markdown to clients that prefer it to HTML,
//     if documents and pages have the same base.
//   - /llms.txt names every page. Pages that do not fit in one file are in
//     /docs/llms.txt and the like, each for the pages below its path, and in
//     /docs/llms-1.txt and so on if one folder has many.
//   - /llms-full.txt has everything in one file, if the owner wants that.
//
// # What is carried
//
// Front matter at the start of the Markdown has title, description, author, published,
// modified, language, section, tags and kind. The content is blocks. A page keeps what a
// reader of its Markdown gets, and the published Markdown is rendered from that: reading it
// returns the same page. Lost are summary, JSON-LD, fields of other protocols, anchors of
// headings, spans of cells, captions and sources of media, which become links, callouts and
// definitions, which become quotes and paragraphs, and footnotes without a reference. Content
// that does not survive a round trip through Markdown is one block of code.
//
// Archives have no Markdown. Neither have pages without content, and pages whose C-URL is not
// below the site's base, since a sitemap may not name those. If a client asks for the Markdown
// of a page without any, it gets the page unchanged, with a field X-Markdown-Missing that
// names the reason.
//
// # Reading
//
// The sitemaps list the pages. If a sitemap has changed, the reader reads it whole, and
// requests the pages with another lastmod than before, and conditionally those without one. A
// feed replaces the sitemaps for a day at a time under two conditions: it has a namespace for
// deletions, and it lists everything that has changed since its oldest entry according to the
// sitemaps. A feed of posts does not. Older changes are read from the sitemaps.
//
// The Markdown of a page is where the page links to, or where the rule of the site's other
// pages leads, or at the page's own URL by Accept. Markdown that names another page as its
// canonical one is rejected. Names are guessed only on sites that have llms.txt. A page
// without Markdown has to come another way. A site without any cannot be read by this
// protocol.
//
// # Deviations
//
//   - llms.txt lists all pages, while its authors expect a selection: only the owner
//     can decide which pages matter. Several files keep each one short.
//   - A negotiated response is private unless the owner states that the caches in
//     front of the site respect Vary. Some do not, and would serve Markdown to
//     browsers.
//   - X-Markdown-Tokens is an estimate, one for every four characters.
package web
