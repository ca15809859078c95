// Package discover finds every way into a site, what each costs, and the cheapest
// one.
//
//	site, err := discover.Probe(ctx, client, "https://example.com/", &discover.Options{Protocols: all.Protocols()})
//	plan := site.Plan(nil)
//
// # Probing
//
// [Probe] fetches robots.txt and the root. Each protocol then probes where its
// specification lets a client look. Last, Probe fetches the documents about the
// use of the content, and measures the plain web by the sitemaps (some of an
// index) and three pages. A site that has only pages takes about ten requests,
// and one with five protocols about twenty-five. Nothing is fetched twice: the
// protocols share a cache. Limits on requests, bytes and time hold whatever the
// server does.
//
// With [Options].Quick, Probe first looks for files of all pages
// ([protocol.Protocol].Collections). It stops there if such a file has what the
// sitemaps name, and if the file and its refreshes cost no more than a full
// probe: no other way could save what finding it costs. It still looks for a
// protocol that reports deletions if that saves more than it takes. It does not
// measure a site without protocols.
//
// A [SiteReport] is plain data and encodes as JSON. A program can store it, and plan
// again later without a request.
//
// # Choosing
//
// [SiteReport.Plan] is pure. It compares the ways by bytes: those of bodies, and
// [Model].Header for the header fields of each request and response. It ignores
// delays between requests, which are the same for all ways. The cost of a refresh
// assumes the share of changed pages that the model gives, and weighs in how
// likely it is that nothing has changed.
//
// A way that lacks something is charged for it:
//
//   - A page without content (the way names it, or has only its summary) costs
//     what the cheapest way to single pages takes for it. That is a page of HTML
//     if no protocol has it. [Route].Fill names these ways.
//   - A page that comes as text has no headings, lists, tables or code. It is
//     charged a quarter of a page of HTML ([Model].Thin), since one of four pages
//     would be read again for its structure.
//   - A page that the way does not name is lost. Each costs ten pages of HTML,
//     beyond a twentieth of the pages, which protocols may count differently, and
//     beyond the half of a sitemap that may be lists of pages, which no protocol
//     carries.
//   - A way that does not report deletions is read from the start every seventh
//     refresh ([Model].Sweep), unless another way reports them for less than one
//     such reading. Then each refresh asks that one ([Route].Deletions), because
//     a deleted page should not stay for a week.
//
// The first sync and the refresh are chosen separately. Refreshing by another way
// than the first sync costs reading everything by it once, spread over the
// expected refreshes ([Model].Rounds), unless the site was read by it before
// ([Model].Held). A snapshot may bring the content, and a list of validators may
// keep it fresh.
package discover
