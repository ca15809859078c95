// Package export writes the pages of a mirror in formats of other programs: JSON Lines, CSV
// of the metadata, a tree of Markdown files, and Parquet.
//
// An export contains the pages of the given views, in the order of the sites and of the
// paths of their pages. It depends on the views alone: the same state of a store gives the
// same bytes. It holds one page in memory. Parquet also holds one row group, and Markdown
// about 24 bytes per file, to keep file names distinct.
//
// Every page has the terms of use of its site.
package export
