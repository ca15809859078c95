// Package export writes the pages of a mirror in forms that other programs
// take: JSON Lines, CSV of the metadata, a tree of Markdown, and Parquet.
//
// What is written is what the views show and nothing else, in the order of the
// sites that were given and of the identities of their pages. It depends on
// the views alone, so that the same state of a store gives the same bytes. One
// page is held at a time; beside it, Parquet holds one group of rows, and
// Markdown 24 bytes or so for each file, to tell their names apart.
//
// What a site says about the use of its content goes with every page of it.
package export
