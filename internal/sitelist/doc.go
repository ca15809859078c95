// Package sitelist reads lists of sites for a fleet: lines of URLs, OPML, and sitemaps, also
// sitemaps of sitemaps. It describes fleets in text and JSON.
package sitelist
