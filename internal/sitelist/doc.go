// Package sitelist reads lists of sites for a fleet: text with one URL per line, OPML, sitemaps
// and sitemap indexes. It also describes fleets as text and JSON.
package sitelist
