// Package tree is what the origins that are folders have in common: a walk in
// the order of the URLs that follows symbolic links and never leaves the
// folder, the state of a file by which a change shows without reading it, and
// the reading of a file that somebody else may be writing.
package tree
