// Package tree contains what the origins of folders share. It walks a folder in the order of the
// URLs: the walk follows symbolic links, but never leaves the folder. It detects changes of a file
// without reading the file, and reads files that another program may be writing.
package tree
