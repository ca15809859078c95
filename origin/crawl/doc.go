// Package crawl is a live website as a [millrace.Source], whatever it is made
// with.
//
//	c, err := crawl.New(client, "https://example.com/", &crawl.Options{Held: held})
//
// The site is what lies in the folder of the root: the same origin, and a path
// under that of the root. It is found by its links, its sitemaps (those of
// robots.txt, else where they usually are) and the feeds that its home page
// announces. Addresses are asked for without fragments, tracking parameters
// and session ids; the order of parameters counts for nothing. Images, scripts,
// archives and office files are known by their endings and never asked for.
//
// # What the stream says
//
// A crawl asks for pages in Changes, because a link is no claim that there is
// a page. What the sink remembers of the crawl ([Options.Held]) is the data
// base of the crawl, durable together with the pages:
//
//   - a page: Put with the page, and a version that holds the server's
//     validators and a hash of what the page says;
//   - a page that stands, or is not due yet: Put with the version that is held
//     and without a page. A page without validators, or with nonces in its
//     HTML, stands when it says the same;
//   - an address without a page of its own, such as a redirect, a duplicate or
//     a file that is no HTML: Put with a page that says only what address is
//     meant. Such an address is asked for again after a week;
//   - an address that was found and not looked at yet: the same, with its own
//     address. It comes before the page that links to it, so that a crawl
//     that is killed goes on where it was;
//   - a page that is gone (404, 410 and other refusals), wants a login, is
//     disallowed by robots.txt now or leads to another address now: a
//     [*millrace.SkipError] that is Absent. It goes with the Mark at the end,
//     if package mirror believes it: a site that loses a fifth of its pages
//     at once is doubted, whichever way it loses them;
//   - a page that cannot be had for now: a SkipError. It stays;
//   - addresses that were left out because of robots.txt or a limit: one
//     SkipError for each shape, with an example and their number; likewise one
//     for all pages of the run that ask not to be indexed, and one for all
//     redirects to other sites;
//   - one Mark, Whole, because everything that is held was named. It is left
//     out when the run fails.
//
// A later run costs one conditional request for each page and list. Its cursor
// holds what the pages do not tell because they answer 304:
//
//   - the validators of the lists: an unchanged list names nothing new;
//   - the addresses that have lost their page, and links that led nowhere, some
//     20,000 for 60 days. The next run asks for each of them, because the site
//     may have changed while it was read. Then a page that was lost is asked
//     for in every run for a day, all others once a week, until it is a page
//     again;
//   - the limits and the rules of robots.txt that have kept addresses out. Once
//     they are lifted, every page is read without conditions, once.
//
// The HTML size of a page is the size of its body. It does not change if the page is
// extracted again without a request, or if its content was unchanged.
//
// # Other rules
//
// Every page comes with what it was made of, [millrace.Page.Original]: the HTML
// and those fields of the response that extraction reads, up to 4 MB. A sink
// that keeps it ([Options.Original]) is asked for it when the extractor is a
// newer one, or when its rules are others ([Options.Rules]): each run begins
// with the pages that others have made, makes them again without any request,
// and yields them with the validators that are held. After that the run goes its
// usual way: a page that stands answers 304.
//
// Addresses keep what was decided about them. A page is asked for without
// conditions, as one that is new, if nothing is kept of it, or if by these rules
// it has no content, is a redirect or a form to log in, or goes by another
// address. One that goes in the very run that has made it again goes with the
// next. What an address that cannot exist gives is found out once more, by one
// request. Addresses without a page keep no HTML: rules that would find content
// there show it when the week of such an address is over.
//
// # What a page is called
//
// Its address, or what its rel=canonical says:
//
//   - another page of the site: the page is a duplicate, if the other one is
//     there and about half of the text is alike. A template that puts the same
//     canonical link on every page costs no page;
//   - an address under the one on another host by which the root goes: the same
//     address here. The site is a copy, as for a test or behind a proxy, and
//     its links and sitemaps are read in the same way;
//   - an address on another site: the page goes by that, unless another page
//     of different address does already, and unless that is a home page.
//
// A page also is a duplicate of its twin, the same address with or without a
// slash at its end or the name of the directory's default document, if both
// say the same. A redirect means its target.
//
// # What is not believed
//
// A page that looks like what the site gives for an address that cannot exist
// is a soft 404. That is found out again when a page says something wholly
// other than what is held of it: a site that answers everything with one page,
// and status 200, changes nothing, and ends the run if its root is that page.
// A site that does not answer for a moment is waited for. The time of a change
// in a sitemap or feed decides only what is asked for first, and when the page
// itself does not say, it is kept as a hint. Addresses of one shape (the same
// first name, depth and parameters) are asked for as long as enough of them
// bring new text or links: an endless calendar or the facets of a shop run
// out, a forum does not. Sitemaps need no such budget. Paths that repeat
// themselves, more than 8 parameters and more than 2,048 bytes are left out.
//
// # How often a page is asked for
//
// The first run of a process asks for every page. Later runs of the same Crawl
// ask for a page after a tenth of its age, from an hour to a day, then after
// half as long if it has changed (at least 5 minutes) and half as long again if
// it has not (at most a day). What lists say is newer is asked for at once, and
// so is what a sitemap names no longer.
//
// # Memory
//
// A run keeps some 30 bytes for each address; the queue goes to a temporary
// file when it is long. Pages larger than 1 MB are taken apart one at a time. A
// run that makes pages again remembers 8 bytes for each of them.
package crawl
