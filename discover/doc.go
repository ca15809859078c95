// Package discover finds all ways to read a site, estimates the cost of each, and chooses the
// cheapest one.
//
//	site, err := discover.Probe(ctx, client, "https://example.com/", &discover.Options{Protocols: all.Protocols()})
//	plan := site.Plan(nil)
//
// # Probing
//
// [Probe] fetches robots.txt and the root. Each protocol then probes the URLs that its
// specification defines. Probe also fetches the usage policy documents. From the sitemaps (some of
// those in an index) and up to three pages, it estimates the cost of reading the HTML pages. A site
// without protocols takes about ten requests, and a site with five protocols about twenty-five. The
// protocols share a cache, so Probe fetches nothing twice. A probe has limits on requests, bytes
// and time.
//
// With [Options].Quick, Probe first looks for files that contain all pages
// ([protocol.Protocol].Collections). It stops if such a file has the pages that the sitemaps list,
// and is so cheap to read and refresh that a full probe would cost more than it could save. For a
// site without protocols, Probe makes no estimates.
//
// A [SiteReport] is plain data and encodes as JSON. A program can store it, and plan again later
// without requests.
//
// # Choosing
//
// [SiteReport.Plan] is a pure function. It compares the ways by bytes: the bytes of bodies, plus
// [Model].Header bytes for the header fields of each request and its response. It ignores delays
// between requests, which are the same for all ways. The cost of a refresh depends on the fraction
// of changed pages ([Model].Changed), and on the probability that nothing has changed.
//
// Plan adds charges for what a way lacks:
//
//   - A page without content (the way only lists it, or has only its summary) adds the cost of the
//     cheapest way to fetch a single page: the HTML page if no protocol has single pages.
//     [Route].Fill lists these ways.
//   - A page that comes as text has no headings, lists, tables or code. The charge is a quarter of
//     an HTML page, on the assumption that one in four pages is read again for its structure.
//   - A page that the way does not list is lost, and adds the cost of ten HTML pages. A twentieth
//     of the pages may be missing without a charge, because protocols count pages differently; if a
//     count is an estimate, a quarter. Half of the pages of a sitemap may be missing, because it
//     may list archive pages, which no protocol carries.
//   - A way that does not report deletions is read from the start every seventh refresh
//     ([Model].Sweep).
//
// If the server sends a list as a delta ([Way].SendsChanges), or the client has a dictionary for a
// collection ([Model].HasDictionary), a refresh costs only the changes. The delta of a collection
// also shows which pages were deleted.
//
// The first sync and the refresh are chosen separately. If refreshes use a different way than the
// first sync, the cost of reading all pages by that way once is spread over the expected refreshes
// ([Model].Rounds). There is no charge if the site was read by that way before ([Model].Previous).
// For example, the first sync may read a snapshot, and the refreshes a list of validators.
package discover
