// Package savings computes the savings of mirroring a site, compared with fetching every page as
// HTML. It uses measured counts and four coefficients, and does no I/O.
//
// The baseline is a client that fetches each page of the site as HTML in every pull, even if it has
// not changed, and reads the whole page:
//
//	requests  one per page
//	bytes     the size of an HTML page on the wire, times the number of pages
//	tokens    the uncompressed bytes, divided by BytesPerToken
//	energy    of the network only: bytes on the wire, multiplied by KWhPerGB
//
// The size of a site's HTML is measured if the site was crawled, or if pages were fetched as HTML.
// Otherwise it is estimated from the text of the pages. Every figure that uses a coefficient, or a
// sample of the pages, is marked as an estimate. A pull that cost more than it saved has negative
// savings.
//
// The energy that a model uses to read a token is not included, because no known figure is valid
// for more than one model and machine.
package savings
