// Package crawl reads a live website as a [millrace.Source]. It works with any website.
//
//	c, err := crawl.New(client, "https://example.com/", &crawl.Options{KnownRefs: knownRefs})
//
// The site is the folder of the root: all URLs of the same origin whose path is in the folder of
// the root. The crawl follows links, sitemaps (those in robots.txt, otherwise those at the usual
// paths) and the feeds to which the home page links. It removes fragments, tracking parameters and
// session IDs from addresses, and ignores the order of parameters. It recognizes images, scripts,
// archives and office files by their extensions, and does not fetch them.
//
// # The stream
//
// A crawl fetches pages while it yields changes, because a link does not prove that a page exists.
// The refs that the sink has stored ([Options.KnownRefs]) are the database of the crawl. The sink
// stores them in the same transaction as the pages. The stream contains these entries:
//
//   - A page is a Put with the page. Its version holds the server's validators and a hash of the
//     page's content.
//   - An unchanged page, or one that is not due yet, is a Put with the stored version and without a
//     page. A page without validators, or with nonces in its HTML, is unchanged if its content is.
//   - An address without its own page is a Put with an alias for the address of the page. Examples
//     are redirects, duplicates, and files that are not HTML. The crawl fetches such an address
//     again after a week.
//   - An address that was found but not fetched yet is a Put with an alias for itself. It precedes
//     the page that links to it, so an interrupted crawl resumes where it stopped.
//   - A page that no longer exists is a [*millrace.SkipError] that is Absent. This is the case if
//     the server refuses it (404, 410 and others), it requires a login, robots.txt disallows it, or
//     it redirects to another address. The checkpoint at the end deletes it. Package mirror first
//     confirms deletions if a site loses a fifth of its pages at once.
//   - A page that is temporarily unavailable is a SkipError. The stored page is kept.
//   - Addresses that robots.txt or a limit excludes result in one SkipError per shape or robots.txt
//     rule, with an example and their number. All pages with noindex result in one SkipError, and
//     so do all redirects to other sites.
//   - A complete checkpoint ends the stream, because the run has named every stored address that
//     still exists. It is missing if the run fails.
//
// A later run needs one conditional request for each page and list. A 304 response does not contain
// the links of a page. Therefore the cursor contains:
//
//   - the validators of the lists, because an unchanged list has no new addresses
//   - up to 20,000 lost pages and broken links, for 60 days. The next run fetches each of them,
//     because the site may have changed during the run. After that, every run of the first day
//     fetches the lost pages; later, and for broken links, the addresses are fetched once a week
//   - the limits and the rules of robots.txt that excluded addresses. When a limit is raised or the
//     rules change, the next run fetches every page once without conditions
//
// A page's HTMLSize is the size of the response body. A page keeps its HTMLSize if it is extracted
// again without a request, or if its content is unchanged although its server sends no validators.
//
// # Changed rules
//
// Every page has a [millrace.Page.Original]: the HTML and the header fields that extraction reads,
// up to 4 MB. If the sink stores the originals ([Options.Original]), a newer extractor or other
// rules ([Options.Rules]) need no requests. Each run first extracts the affected pages again and
// yields them with their stored validators. Then the run continues as usual, and requests for
// unchanged pages result in a 304.
//
// Earlier decisions about addresses stay valid. A page is fetched without conditions, like a new
// page, if its original is missing, or if the new rules find no content, a redirect, a login form
// or another address. If a page that was extracted again is lost in the same run, the next run
// deletes it. One request determines again how the site responds to an address that does not exist.
// For addresses without a page, no HTML is stored. If the new rules would find content there, it
// appears when the address is fetched again after a week.
//
// # Identity of a page
//
// A page's identity is its address or its rel=canonical:
//
//   - Another page of the site: the page is a duplicate if the other page exists and about half of
//     the text is equal. A template with the same canonical link on every page therefore loses no
//     page.
//   - An address under the root's canonical URL on another host: the same address here. The site is
//     a copy, such as a test site or one behind a proxy, and its links and sitemaps are mapped in
//     the same way.
//   - An address on another site: the page takes that address. It keeps its own address if another
//     page already has that address, or if that address is a home page.
//
// A page is also a duplicate of a variant if both have the same text. A variant is the same address
// with or without a final slash, or with the name of the directory's default document. A redirect
// is an alias of its target.
//
// # Protection against wrong responses
//
// A page that resembles the response for an address that does not exist is a soft 404. The crawl
// fetches a nonexistent address again when a page differs completely from the stored one. If a site
// returns the same page with status 200 for every address, the crawl changes nothing; if even the
// root is this page, the run ends. If a site stops responding for a short time, the crawl waits.
//
// Stored pages that sitemaps or feeds report as newer are fetched first. If neither the page nor
// Last-Modified has a time, the newest modification time in these lists is stored as a hint. A page
// that has not changed keeps its hint.
//
// Addresses of one shape have the same first path segment, depth and parameters. Each shape has a
// budget, which pages with new text or links increase. An endless calendar or the facets of a shop
// exhaust the budget, but a forum does not. Addresses in sitemaps need no budget. The crawl skips
// addresses whose path repeats itself, and addresses with more than 8 parameters or 2,048 bytes.
//
// # Frequency
//
// The first run of a process fetches every page. Later runs of the same Crawl fetch a page again
// after an interval. The first interval is a tenth of the page's age, but at least an hour and at
// most a day. If the page has changed, the interval is halved, but is at least 5 minutes. Otherwise
// it grows by half, but is at most a day. Pages that a list reports as newer, and pages that a
// sitemap no longer contains, are fetched at once.
//
// # Memory
//
// A run stores about 40 bytes for each address. A long queue is written to a temporary file. Only
// one page larger than 1 MB is parsed at a time. A run that extracts pages again stores 8 bytes for
// each of these pages.
package crawl
