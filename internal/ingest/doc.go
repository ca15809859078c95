// Package ingest keeps a site of a store equal to where its pages come from, and
// has what publishing and pulling a site have in common: its URL, its pages, its
// primary source, and the records of both.
package ingest
