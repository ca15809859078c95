// Package ingest has what publishing and pulling a site have in common: its URL,
// its pages, its primary source, and the records of both.
package ingest
