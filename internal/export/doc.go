// Package export writes the pages of a mirror in formats of other programs: JSON Lines, CSV of the
// metadata, a tree of Markdown files, Atom feeds, and Parquet.
//
// An export contains the pages of the given views, in the order of the sites and of the paths
// of their pages. It depends only on the views: the same state of a store produces the same
// bytes. It holds one page in memory. The export to Parquet also holds one row group. The export
// to Markdown also holds about 24 bytes per file, to keep file names distinct.
//
// In all formats except Atom, the terms of use of a site are part of every page.
package export
