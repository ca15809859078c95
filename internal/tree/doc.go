// Package tree contains the common parts of folder origins: a walk in the order of the URLs that
// follows symbolic links and never leaves the folder, the state of a file that shows a change
// without reading it, and the reading of a file during writes.
package tree
