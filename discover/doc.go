// Package discover finds all ways to read a site, estimates the cost of each, and chooses the
// cheapest one.
//
//	site, err := discover.Probe(ctx, client, "https://example.com/", &discover.Options{Protocols: all.Protocols()})
//	plan := site.Plan(nil)
//
// # Probing
//
// [Probe] fetches robots.txt and the root. Each protocol then probes the URLs that its
// specification defines. Finally, Probe fetches the documents about the use of the content.
// From the sitemaps (some of those in an index) and three pages, it estimates the cost of reading
// the HTML pages. A site without protocols takes about ten requests, and a site with five
// protocols about twenty-five. The protocols share a cache, so Probe fetches nothing twice. Limits
// on requests, bytes and time protect it from every server.
//
// With [Options].Quick, Probe first looks for files that contain all pages
// ([protocol.Protocol].Collections). It stops if such a file has the pages that the sitemaps list,
// and if the file and its refreshes cost no more than a full probe. Then no other way could save
// more than the cost of finding it. For a site without protocols, it makes no estimates.
//
// A [SiteReport] is plain data and encodes as JSON. A program can store it, and plan again later
// without requests.
//
// # Choosing
//
// [SiteReport.Plan] is a pure function. It compares the ways by their number of bytes: those of
// bodies, plus [Model].Header for the header fields of each request and its response. It ignores
// delays between requests, which are the same for all ways. The cost of a refresh depends on the
// fraction of changed pages ([Model].Changed), and on the probability that nothing has changed.
//
// A way is charged for what it lacks:
//
//   - A page without content (the way only names it, or has only its summary) costs as much as
//     fetching it by the cheapest way to single pages: a page of HTML if no protocol has it.
//     [Route].Fill names these ways.
//   - A page that comes as text has no headings, lists, tables or code. The charge is a quarter of
//     a page of HTML, on the assumption that one in four pages is read again for its structure.
//   - A page that the way does not name is lost, and costs ten pages of HTML. A twentieth of the
//     pages may be missing without a charge, because protocols count pages differently. Half of the
//     pages of a sitemap may be missing, because it may name lists of pages, which no protocol
//     carries.
//   - A way that does not report deletions is read from the start every seventh refresh
//     ([Model].Sweep).
//
// If the server sends a list as changes ([Way].SendsChanges), or the client has a dictionary for a
// collection ([Model].HasDictionary), the cost is the cost of the changes. A collection that the
// server sends as changes also shows which pages were deleted.
//
// The first sync and the refresh are chosen separately. If refreshes use a different way than the
// first sync, they are charged for reading all pages by that way once, spread over the expected
// refreshes ([Model].Rounds). There is no charge if the site was read by that way before
// ([Model].Previous). For example, the first sync may read a snapshot, and the refreshes a list of
// validators.
package discover
