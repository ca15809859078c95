// Package tree contains the code shared by the origins that read a folder. It walks a folder in the
// order of the URLs. The walk follows symbolic links, but never leaves the folder. The package
// detects changes of a file without reading the file, and reads files that another program may be
// writing.
package tree
