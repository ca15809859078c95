// Package ingest keeps a site of a store in sync with its source. It also contains the code that
// publishing and pulling share: the site's URL, its pages, its primary source, and their records.
package ingest
