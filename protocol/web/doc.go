// Package web implements what agents and crawlers read today: pages as
// Markdown, llms.txt, feeds of changes and sitemaps. No single specification has
// it all; each part keeps to its own:
//
//   - llms.txt, version 2 of August 2026 (https://llmstxt.org);
//   - text/markdown (RFC 7763) by Accept (RFC 9110, section 12.5.1), with the
//     header fields that hosts of documentation have made common;
//   - Atom (RFC 4287) with tombstones (RFC 6721), JSON Feed 1.1;
//   - sitemaps.org, and robots.txt (RFC 9309), where readers find the rest.
//
// # Names
//
//   - The Markdown of /post is /post.md, that of /a.html is /a.html.md, that of
//     /docs/ is /docs/index.md, that of / is /index.md; a query stays: /q?x=1 has
//     /q.md?x=1. A page of the site that has such a name keeps it. Of two pages
//     that want one name, such as /a/ and /a/index, the first in order of URL gets
//     it, the next one /a/~2/index.md, and so on.
//   - A last segment of tildes and digits gets one more tilde, so that no name
//     means two pages: /post/~2/ has /post/~~2/index.md.
//   - The C-URL itself returns the same Markdown to clients that prefer it to HTML,
//     if documents and pages have the same base.
//   - /llms.txt names every page. What is more than fits in one file is in
//     /docs/llms.txt and the like, each for the pages below its path, and in
//     /docs/llms-1.txt and so on where many are in one folder.
//   - /llms-full.txt has everything in one file, if the owner wants that.
//
// # What is carried
//
// Title, description, author, published, modified, language, section, tags and
// kind, in the front matter that starts the Markdown; content as blocks. What a
// page keeps is what a reader of its Markdown gets, and the Markdown that is
// published is that of what is kept: reading it gives the same again. So lost
// are summary, JSON-LD, what other protocols keep, anchors of headings, spans of
// cells, captions and sources of media, which become links, call-outs and
// definitions, which become quotes and paragraphs, and footnotes that nothing
// refers to. Content that no Markdown gives back is one block of code.
//
// Archives have no Markdown, and neither have pages without content and pages
// whose C-URL is not below the site's base, since a sitemap may not name those.
// If a client asks for the Markdown of a page without any, it gets the page as it
// is, with a field X-Markdown-Missing that says why.
//
// # Reading
//
// The sitemaps say which pages there are. One that has changed names all of its
// pages again; of those, the reader asks for what has another lastmod than when
// it was got, and for what has none, conditionally. A feed stands in for the
// sitemaps for a day at a time if it has a namespace for deletions and has named
// everything that the sitemaps say has changed since its oldest entry: a feed of
// posts has not. What it does not reach back to is read from the sitemaps.
//
// The Markdown of a page is where the page says, or where its name leads on a site
// whose other pages have theirs so, or at the page's own URL for who asks for
// Markdown. What names another page as its canonical one is not believed. Names
// are guessed only on sites that have llms.txt. A page without Markdown has to
// come another way, and a site without any is not for this reader.
//
// # Deviations
//
//   - llms.txt lists all pages, while its authors expect a selection: only the owner
//     can say which pages matter. Several files keep each one short.
//   - A negotiated response is private unless the owner says that the caches in
//     front of the site respect Vary. Some do not, and would show Markdown to
//     browsers.
//   - X-Markdown-Tokens is an estimate, one for each four characters.
package web
