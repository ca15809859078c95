// Package savings tells what mirroring a site has saved against having every
// page as HTML, from what was counted and from four coefficients. It is pure.
//
// The yardstick is a client that gets each page of the site once a pull, as
// HTML, whether or not it has changed, and reads all of it:
//
//	requests  one a page
//	bytes     what an HTML page of the site takes on the wire, times the pages
//	tokens    its bytes without coding, by BytesPerToken
//	energy    of the network alone: bytes on the wire, by KWhPerGB
//
// How large the HTML of a site is was measured where it was crawled or where
// pages had to come as HTML. Where it was not, it is estimated from the text
// of the pages. Whatever rests on a coefficient, or on some pages for others,
// is called an estimate. A pull that has cost more than it saved has saved
// less than nothing, and that is what it says.
//
// The energy that a model takes to read a token is left out: no figure for it
// is known that holds for more than one model and machine.
package savings
